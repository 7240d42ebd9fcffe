"""The method table: each computed cell is also what the loss does on the running batch."""

from __future__ import annotations

import dataclasses
import re

import pytest
import torch

from rlnb.classroom.pictures.method_table import NOTES, STAND_IN, methods_table, notes_table, row
from rlnb.objective import ANNEX, ZOO, Objective, group_center, overlong, token_mean
from rlnb.toys import running_batch

METHODS = ZOO | ANNEX
EACH = pytest.mark.parametrize("name", METHODS)
COURSE = {
    "02_reinforce",
    "03_baselines",
    "06_ppo",
    "09_grpo_biases",
    "10_dr_grpo",
    "11_dapo",
    "12_soft_trust_regions",
    "13_gspo",
}


def batch():
    return running_batch(complete=True).replace(generator=torch.Generator().manual_seed(0))


def gradient(objective, b):
    return torch.autograd.grad(objective(b).loss, b.logprobs, retain_graph=True)[0]


def without_terms(objective):
    return objective.replace(terms=())


@EACH
def test_a_critic_and_a_reference_are_counted_where_the_loss_cannot_do_without(name):
    objective, cells = METHODS[name], row(METHODS[name])
    for field, used in (("values", cells.critic == "yes"), ("ref_logprobs", cells.kl != "none")):
        poor = batch().replace(**{field: None})
        if used:
            with pytest.raises(ValueError, match=field):
                objective(poor)
        else:
            assert torch.equal(gradient(objective, poor), gradient(objective, batch()))
    assert cells.models == 1 + (cells.critic == "yes") + (cells.kl != "none")


@EACH
def test_a_ratio_is_named_where_the_gradient_depends_on_who_sampled(name):
    objective, b = without_terms(METHODS[name]).replace(shape=()), batch()
    fresh = b.replace(old_logprobs=b.logprobs.detach(), sampling_logprobs=b.logprobs.detach())
    same = torch.allclose(gradient(objective, b), gradient(objective, fresh))
    assert same == (row(METHODS[name]).ratio == "none")
    if row(METHODS[name]).ratio.endswith("to the engine"):
        other_engine = b.replace(sampling_logprobs=b.sampling_logprobs - 0.3)
        assert not torch.allclose(gradient(objective, b), gradient(objective, other_engine))


@EACH
def test_one_ratio_per_answer_means_one_number_per_row(name):
    objective, b = METHODS[name], batch()
    prepared = objective.prepare(b)
    log_ratio = objective.ratio(prepared.batch.cleaned(), prepared.advantages).detach()
    spread = torch.stack([x[m].max() - x[m].min() for x, m in zip(log_ratio, b.mask, strict=True)])
    per_answer = row(objective).ratio.startswith("answer")
    assert (spread.max() < 1e-12) == per_answer


@EACH
def test_the_aggregation_is_seen_in_the_weights(name):
    b = batch()
    c = METHODS[name](b).weights
    lengths, prompts = b.lengths, torch.tensor([16.0] * 4 + [14.0] * 4)
    wanted = {
        "per answer": 1 / (8 * lengths),
        "per token": torch.full((8,), 1 / 30),
        "constant": torch.full((8,), 1 / 64),
        "sum": torch.full((8,), 1 / 8),
        "per prompt": 1 / (2 * prompts),
    }[row(METHODS[name]).aggregation]
    torch.testing.assert_close(c[:, 0], wanted.to(c.dtype))


@EACH
def test_the_baseline_is_seen_in_the_advantages(name):
    b, cells = batch(), row(METHODS[name])
    A = METHODS[name](b).advantages
    r = b.rewards.view(2, 4)
    centred = r - r.mean(1, keepdim=True)
    std = r.std(1, correction=0, keepdim=True)
    by_word = {
        "none": r,
        "batch mean": r - r.mean(),
        "mean of the others": centred * 4 / 3,
        "greedy answer": r - torch.tensor([[1.0], [0.0]]),
        "critic": r - 0.5,
        "group mean": centred,
        "group mean, ÷ group std": centred / std,
        "group mean, ÷ batch std": centred / centred.std(correction=0),
        "group mean, ÷ group mean": centred / r.mean(1, keepdim=True),
    }
    word = next(
        (w for w in sorted(by_word, key=len, reverse=True) if cells.baseline.startswith(w)), None
    )
    if cells.baseline.startswith("mean of all tokens"):
        assert abs(A[b.mask].mean()) < 1e-12 and A[b.mask].std() == pytest.approx(1, abs=1e-6)
        return
    last = A[torch.arange(8), b.lengths.long() - 1].view(2, 4)  # gae discounts earlier tokens
    if cells.baseline == word:
        torch.testing.assert_close(last, by_word[word].to(A.dtype), rtol=1e-5, atol=1e-5)
    else:  # a credit came on top: something differs, no sign does
        assert METHODS[name].credit
        plain = METHODS[name].replace(credit=())(b).advantages
        assert not torch.allclose(plain, A) and torch.equal(plain.sign(), A.sign())


def gates(objective, log_ratio, sign):
    """The weight on grad log pi of one token per row, at this log-ratio and sign of A."""
    size = len(log_ratio)
    old = torch.full((size, 1), 0.3, dtype=torch.float64).log()
    lp = (old + log_ratio[:, None]).requires_grad_()
    b = running_batch(complete=True)
    new = b.replace(
        logprobs=lp,
        completion_mask=torch.ones(size, 1, dtype=torch.float64),
        rewards=torch.zeros(size, dtype=torch.float64),
        num_generations=1,
        old_logprobs=old,
        sampling_logprobs=old,
        ref_logprobs=old,
        values=None,
        old_values=None,
        greedy_rewards=None,
        entropies=torch.zeros(size, 1),
        sampled_rank=torch.ones(size, 1),
        topk_logprobs=torch.cat((lp.detach(), lp.detach() - 1), 1)[:, None],
        old_topk_logprobs=torch.cat((old, old - 1), 1)[:, None],
        advantages=torch.full((size,), float(sign)),
        generator=torch.Generator().manual_seed(0),
    )
    out = without_terms(objective)
    prepared = out.prepare(new)
    value = out.surrogate(
        prepared.batch.cleaned(),
        prepared.advantages,
        out.ratio(prepared.batch.cleaned(), prepared.advantages),
    )
    for gate in out.gates:
        value = (
            value
            * gate(
                prepared.batch.cleaned(),
                prepared.advantages,
                out.ratio(prepared.batch, prepared.advantages),
            ).detach()
        )
    return torch.autograd.grad(value.sum(), lp)[0][:, 0] * sign


@EACH
def test_the_trust_region_is_seen_in_the_weight_of_a_token(name):
    cells = row(METHODS[name])
    word = cells.trust_region
    rho = torch.tensor([0.2, 0.5, 0.9, 0.99, 1.0, 1.001, 1.1, 1.5, 3.0], dtype=torch.float64)
    up, down = (gates(METHODS[name], rho.log(), sign) for sign in (1, -1))
    if edges := re.match(r"cut outside ([\d.]+) to ([\d.]+)", word):
        low, high = (float(x) for x in edges.groups())
        silenced = "silenced" in word  # Clip-Cov may also silence a token inside the band
        for w, dead in ((up, rho > high), (down, rho < low)):
            assert (w[dead] == 0).all()
            assert silenced or "dropped" in word or (w[~dead] > 0).all()
    elif cap := re.match(r"weight at most ([\d.]+)", word):
        assert max(up.max(), down.max()) <= float(cap[1])
        if "dropped" in word:  # p = 0.3: TV 0.15 is crossed at ratios 0.5 and 1.5
            assert up[-1] == 0 and down[0] == 0 and up[0] > 0 and down[-1] > 0
        else:
            assert min(up.min(), down.min()) > 0
    elif word.startswith("tokens cut at"):
        assert up[-1] == 0 and down[0] == 0 and up[0] > 0 and down[-1] > 0
    elif word.startswith("soft"):
        assert min(up.min(), down.min()) > 0 and up[4] == pytest.approx(1, abs=0.03)
        assert (up[-1] < rho[-1]) and (down[-1] < rho[-1])
    elif "log ρ" in word:
        assert (up > 0).all() and not torch.allclose(up, rho)
    else:
        assert word == "none" and (up > 0).all()


def test_words_for_parts_that_no_named_method_has_are_their_code():
    def mine(b, r):
        return b.expand(b.rewards)

    strange = Objective(mine, ZOO["grpo"].surrogate, token_mean, shape=overlong(8, cache=2))
    assert row(strange).baseline == "mine"
    assert row(ZOO["grpo"].replace(terms=())).models == 1
    assert row(ZOO["ppo"].replace(terms=ZOO["grpo"].terms)).models == 3
    assert row(ZOO["dr_grpo"].replace(advantage=group_center())).kl == "none"


def test_every_method_has_its_note_and_every_note_a_source():
    assert set(NOTES) == set(METHODS)
    for name, note in NOTES.items():
        assert note.fixes and note.breaks, name
        assert len(note.fixes) <= 46 and len(note.breaks) <= 46, name
        link = re.fullmatch(
            r"\[(\d\d)\]\((\w+)\.ipynb\)|\[([\d.]+)\]\(https://arxiv\.org/abs/"
            r"(\d{4}\.\d{5})\)|this page",
            note.source,
        )
        assert link, (name, note.source)
        if link[2]:
            assert link[2] in COURSE and link[1] == link[2][:2]


def test_the_tables_are_markdown_with_a_line_per_method_and_text_for_the_rest():
    for table, columns in ((methods_table(METHODS), 8), (notes_table(METHODS), 4)):
        lines = table.data["text/markdown"].splitlines()
        assert len(lines) == len(METHODS) + 2
        assert {line.count("|") for line in lines} == {columns + 1}
        text = table.data["text/plain"].splitlines()
        assert [line.partition(";")[0] for line in text] == list(METHODS)
    assert dataclasses.astuple(row(ZOO["ppo"]))[-1] == 2


def test_the_rows_to_know_come_first_and_the_others_are_folded():
    table = methods_table(METHODS, first=("grpo", "ppo"))
    shown, folded = table.data["text/markdown"].split("<details>")
    assert [line.split("|")[1].strip() for line in shown.strip().splitlines()[2:]] == [
        "`grpo`",
        "`ppo`",
    ]
    assert folded.count("\n| `") == len(METHODS) - 2 and folded.endswith("</details>")
    names = [line.partition(";")[0] for line in table.data["text/plain"].splitlines()]
    assert names[:2] == ["grpo", "ppo"] and sorted(names) == sorted(METHODS)


def test_a_star_stands_on_a_number_that_is_not_the_papers():
    text = methods_table(METHODS).data["text/plain"].splitlines()
    starred = {line.partition(";")[0]: line.count("*") for line in text if "*" in line}
    assert starred == {name: len(cells) for name, cells in STAND_IN.items()}
    v32 = next(line for line in text if line.startswith("deepseek_v3_2"))
    assert "β 0.04*" in v32 and "0.5 nats a token, to the engine*" in v32
    for name, cells in STAND_IN.items():
        assert all(re.search(r"\d", getattr(row(METHODS[name]), cell)) for cell in cells), name
