"""What labs say they ran: every row runs, and reads back where a library has words for it."""

from __future__ import annotations

import pytest
import torch

from rlnb.interop import from_prime_rl, from_trl, from_verl, to_trl, to_verl
from rlnb.interop.labs import LABS, NO_ROW, engine_gap_squared, lab
from rlnb.interop.labs_row import (
    edge_weight,
    inside_band,
    mean_over_right,
    old_gap_squared,
    right_likelihood,
    tapered,
)
from rlnb.objective import (
    ANNEX,
    ZOO,
    Batch,
    Objective,
    clip,
    difference,
    name_of,
    product,
    raw_reward,
)
from rlnb.toys import running_batch

WRITTEN = [row for row in LABS if row.objective is not None]
IN_TRL = {
    "DeepSeekMath",
    "Qwen3-VL",
    "DeepSeek-R1",
    "GSPO",
    "OLMo 3 Think",
    "DeepSeek-V3.2",
    "GLM-5 reasoning",
    "80/20",
    "Polaris",
    "INTELLECT-2",
    "SAPO",
}
IN_VERL = {
    "DeepSeekMath",
    "DeepSeek-R1",
    "GSPO",
    "Qwen3-VL",
    "Polaris",
    "INTELLECT-2",
    "SAPO",
    "DPPO",
    "Clip-Cov",
    "KL-Cov, 32B",
    "KL-Cov, 7B",
}

# who -> the words in which somebody published the configuration, and the parts in which these
# words, read with the library's defaults, are not the row. TRL: its paper index at f2cd577.
# verl: the scripts named in the rows, in the words of 0.9.1
IN_TRL_S_INDEX = {
    # TRL corrects the KL by default, the paper does not
    "DeepSeek-R1": (dict(loss_type="grpo", beta=0.001, epsilon=10.0), {"terms"}),
    "GSPO": (
        dict(
            importance_sampling_level="sequence",
            loss_type="grpo",
            beta=0.0,
            epsilon=3e-4,
            epsilon_high=4e-4,
        ),
        set(),
    ),
    # the printed formula averages per prompt
    "DAPO": (dict(loss_type="dapo", epsilon=0.2, epsilon_high=0.28, beta=0.0), {"weights"}),
    # the index names no average, and TRL's default is all tokens alike
    "INTELLECT-2": (dict(delta=4, epsilon=0.2, beta=0.001), {"terms", "weights"}),
    "80/20": (
        dict(loss_type="dapo", epsilon=0.2, epsilon_high=0.28, beta=0.0, top_entropy_quantile=0.2),
        set(),
    ),
    # "partially reproduce", says the index
    "ScaleRL": (
        dict(loss_type="cispo", epsilon_high=5.0, scale_rewards="batch"),
        {"advantage", "weights", "ratio"},
    ),
    "SAPO": (
        dict(
            loss_type="sapo",
            sapo_temperature_pos=1.0,
            sapo_temperature_neg=1.05,
            scale_rewards="group",
        ),
        set(),
    ),
}
IN_VERL_S_SCRIPTS = {
    "GSPO": (
        dict(
            loss_mode="gspo",
            loss_agg_mode="seq-mean-token-mean",
            clip_ratio_low=3e-4,
            clip_ratio_high=4e-4,
            clip_ratio_c=10.0,
        ),
        {"ratio"},  # verl's gspo is GSPO-token
    ),
    "SAPO": (dict(loss_mode="sapo", tau_pos=1.0, tau_neg=1.05), set()),
    # the script keeps the trainer's old policy, and divides by the padded length
    "DPPO": (
        dict(
            norm_adv_by_std_in_grpo=False,
            loss_mode="dppo_tv",
            loss_agg_mode="seq-mean-token-sum-norm",
            clip_ratio_low=0.15,
            clip_ratio_high=0.15,
            clip_ratio_c=10000.0,
        ),
        {"weights", "ratio", "gates"},
    ),
    "Clip-Cov": (
        dict(
            loss_mode="clip_cov",
            loss_agg_mode="token-mean",
            clip_ratio_low=1.0,
            clip_ratio_high=1.0,
            clip_cov_ratio=0.0002,
            clip_cov_lb=1.0,
            clip_cov_ub=5.0,
        ),
        set(),
    ),
    "KL-Cov, 32B": (
        dict(loss_mode="kl_cov", loss_agg_mode="token-mean", kl_cov_ratio=2e-4, ppo_kl_coef=1.0),
        set(),
    ),
    "KL-Cov, 7B": (
        dict(loss_mode="kl_cov", loss_agg_mode="token-mean", kl_cov_ratio=2e-3, ppo_kl_coef=1.0),
        set(),
    ),
    "Polaris": (dict(clip_ratio_low=0.2, clip_ratio_high=0.28), set()),
    # dual-clip at 10, out of reach of the row's numbers; the formula averages per prompt
    "DAPO": (
        dict(
            clip_ratio_low=0.2, clip_ratio_high=0.28, clip_ratio_c=10.0, loss_agg_mode="token-mean"
        ),
        {"surrogate", "weights"},
    ),
}


def name(row):
    return row.who


@pytest.mark.parametrize("row", LABS, ids=name)
def test_a_row_has_a_source_and_either_a_composition_or_the_reason_why_not(row):
    assert row.source and row.letter in ("A", "B", "C")
    assert (row.objective is None) == bool(row.why_not)
    assert row.near in ZOO or row.near in ANNEX or lab(row.near)
    assert lab(row.who) is row


def test_no_row_twice_and_an_unknown_one_is_a_sentence():
    assert len({row.who for row in LABS}) == len(LABS)
    with pytest.raises(ValueError, match="no row 'OpenAI'; there are DeepSeekMath"):
        lab("OpenAI")


@pytest.mark.parametrize("row", WRITTEN, ids=name)
def test_a_row_runs_on_the_running_batch(row):
    batch = running_batch(complete=True)
    out = row.objective(batch)
    (slope,) = torch.autograd.grad(out.loss, batch.logprobs)
    assert torch.isfinite(slope).all() and slope.any()


@pytest.mark.parametrize("row", WRITTEN, ids=name)
def test_trl_s_words_read_back_to_the_row(row):
    try:
        words = to_trl(row.objective)
    except ValueError:
        assert row.who not in IN_TRL
        return
    assert row.who in IN_TRL
    back = from_trl(**words)
    assert back.objective.canonical() == row.objective.canonical()
    assert name_of(back.objective) == name_of(row.objective)


@pytest.mark.parametrize("row", WRITTEN, ids=name)
def test_verl_s_words_read_back_up_to_what_it_says_it_adds(row):
    try:
        words = to_verl(row.objective)
    except ValueError:
        assert row.who not in IN_VERL
        return
    assert row.who in IN_VERL
    back = from_verl(**words).objective.canonical()
    changed = {change.part for change in difference(back, row.objective.canonical())}
    if row.who == "DPPO":  # verl's constant is the padded width unless it is told a length
        assert changed == {"weights"} and "loss_scale_factor" in str(words.differences)
        return
    assert changed <= {"surrogate", "ratio"}  # a dual clip out of reach, GSPO-token
    assert not changed or words.differences
    if not changed:
        assert name_of(back) == name_of(row.objective)
    batch = running_batch(complete=True)

    def gradient(objective):
        drawn = batch.replace(generator=torch.Generator().manual_seed(0))  # Clip-Cov draws tokens
        return torch.autograd.grad(objective(drawn).loss, batch.logprobs)[0]

    mine, theirs = (gradient(o) for o in (row.objective.canonical(), back))
    torch.testing.assert_close(mine, theirs, rtol=0, atol=1e-12)


@pytest.mark.parametrize("who", IN_TRL_S_INDEX)
def test_the_configuration_published_in_trl_s_words_is_the_row(who):
    words, apart = IN_TRL_S_INDEX[who]
    agrees_up_to(from_trl(**words).objective, lab(who).objective, apart)


@pytest.mark.parametrize("who", IN_VERL_S_SCRIPTS)
def test_the_configuration_published_in_verl_s_words_is_the_row(who):
    words, apart = IN_VERL_S_SCRIPTS[who]
    agrees_up_to(from_verl(adv_estimator="grpo", **words).objective, lab(who).objective, apart)


def test_prime_rl_s_own_words_are_its_row_but_for_the_pull():
    read = from_prime_rl({"loss.type": "default", "loss.kl_tau": 0.0}).objective
    agrees_up_to(read, lab("prime-rl default").objective, {"terms"})


def agrees_up_to(read, row, apart):
    """What a library reads differs from the row in exactly these parts; in none: the same name."""
    read, row = read.canonical(), row.canonical()
    assert {change.part for change in difference(row, read)} == apart
    if not apart:
        assert name_of(read) == name_of(row)


def test_the_numbers_that_the_reports_give():
    assert lab("DeepSeek-R1").objective.surrogate.epsilon == 10
    assert [term.coefficient for term in lab("DeepSeek-R1").objective.terms] == [0.001]
    (gate,) = lab("GLM-5 reasoning").objective.gates
    assert (gate.level, gate.kind, gate.low, gate.high) == ("token", "mask", 0.5, 2.0)
    (gate,) = lab("OLMo 3 Think").objective.gates
    assert (gate.level, gate.kind, gate.low, gate.high) == ("token", "truncate", None, 2.0)
    assert lab("Kimi k1.5").objective is None


def test_the_pull_towards_the_engine_is_the_square_of_the_log_ratio():
    batch = running_batch(complete=True)
    moved = batch.logprobs - batch.sampling_logprobs
    torch.testing.assert_close(engine_gap_squared(batch), moved**2)


def test_the_rows_that_carry_a_method_s_name():
    named = {row.who: name_of(row.objective) for row in WRITTEN if name_of(row.objective)}
    assert named == {
        "DeepSeekMath": "grpo",
        "GSPO": "gspo",
        "Qwen3-VL": "sapo",
        "VibeThinker": "mgpo",
        "ScaleRL": "scalerl",
        "DeepSeek-V3.2": "deepseek_v3_2",
        "SAPO": "sapo",
        "Clip-Cov": "clip_cov",
        "KL-Cov, 32B": "kl_cov",
        "SimKO": "simko",
    }


def test_what_has_no_row_says_why_and_is_no_row():
    assert not set(NO_ROW) & {row.who for row in LABS}
    assert all(len(why) > 40 for why in NO_ROW.values())


# The rows' own parts


def three_tokens(rewards=(1.0, 0.0)):
    """Two answers with ratios 0.5, 1, 2 each, rewards as given."""
    old = torch.full((2, 3), -2.0)
    now = (old + torch.tensor([0.5, 1.0, 2.0]).log()).requires_grad_()
    return Batch(now, torch.ones(2, 3), torch.tensor(rewards), 2, old_logprobs=old)


def slope(part, batch, advantages):
    """d(sum of values)/d log pi, with the ratio per token."""
    log_ratio = batch.logprobs - batch.old_logprobs
    (out,) = torch.autograd.grad(part(batch, advantages, log_ratio).sum(), batch.logprobs)
    return out


def test_gppo_keeps_the_edge_where_the_clip_is_silent():
    batch, A = three_tokens(), torch.tensor([[1.0] * 3, [-1.0] * 3])
    found = slope(edge_weight(0.2, band_high=0.28), batch, A)
    torch.testing.assert_close(found, torch.tensor([[0.5, 1.0, 1.28], [-0.8, -1.0, -2.0]]))
    clipped = slope(clip(0.2, high=0.28), batch, A)
    alive = clipped != 0
    torch.testing.assert_close(found[alive], clipped[alive])
    assert (~alive).nonzero().tolist() == [[0, 2], [1, 0]]


def test_ce_gppo_halves_it_below_and_is_silent_beyond_the_dual_clip():
    batch, A = three_tokens(), torch.tensor([[1.0] * 3, [-1.0] * 3])
    found = slope(edge_weight(0.2, low=0.5, dual=1.5), batch, A)
    torch.testing.assert_close(found, torch.tensor([[0.5, 1.0, 1.2], [-0.4, -1.0, 0.0]]))


def test_the_weight_of_a_wrong_answer_tapers_and_a_right_one_s_is_one():
    old = torch.full((4, 2), -2.0)
    now = old + torch.tensor([[2.0, 3.0], [0.5, 0.4], [2.0, 3.0], [0.5, 0.4]]).log()
    batch = Batch(now.requires_grad_(), torch.ones(4, 2), torch.tensor([1.0, 1.0, -1.0, -1.0]), 4,
                  old_logprobs=old)  # fmt: skip
    topr = Objective(raw_reward(), tapered(), lab("TOPR").objective.weights, ratio=product())
    assert topr == lab("TOPR").objective
    (out,) = torch.autograd.grad(topr(batch).loss, now)
    # -(1/4) times: 1 and 1 for right answers, min(6, 1) and 0.2 for wrong ones
    wanted = torch.tensor([[-0.25] * 2, [-0.25] * 2, [0.25] * 2, [0.05] * 2])
    torch.testing.assert_close(out, wanted)
    with pytest.raises(ValueError, match="tapered"):
        Objective(raw_reward(), tapered(), topr.weights)(batch)


def test_a_band_without_a_sign_drops_both_sides():
    batch = three_tokens()
    log_ratio = (batch.logprobs - batch.old_logprobs).detach()
    for sign in (1.0, -1.0):
        kept = inside_band(0.2, high=1.5)(batch, torch.full((2, 3), sign), log_ratio)
        assert kept.tolist() == [[0.0, 1.0, 1.0]] * 2
    assert inside_band(0.2)(batch, torch.ones(2, 3), log_ratio)[0].tolist() == [0.0, 1.0, 0.0]


def test_the_likelihood_is_that_of_right_answers_and_its_mean_over_their_tokens():
    batch = three_tokens()
    out = right_likelihood(batch)
    assert (out[1] == 0).all() and torch.equal(out[0], -batch.logprobs[0])
    weights = mean_over_right(batch, None)
    assert (weights * out).sum().item() == pytest.approx(-batch.logprobs[0].mean().item())
    torch.testing.assert_close(old_gap_squared(batch)[0, 2], torch.tensor(2.0).log() ** 2)
