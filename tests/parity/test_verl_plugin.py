"""The plugin for verl's registries on verl's own recorded tensors; and the files of a run."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch
import verl_table
import yaml

from rlnb.interop import Inexpressible, from_verl
from rlnb.interop.verl_files import verl_config, verl_words_and_plugin, write_verl
from rlnb.interop.verl_plugin import advantage_estimator, policy_loss
from rlnb.objective import ANNEX, ZOO, Batch, Objective, prompt_mean

OTHER = ("use_kl_loss", "entropy_coeff", "rollout_is", "bypass_mode")  # verl's own, beside the loss
SAID = [
    case
    for case in verl_table.recorded()["losses"]
    if case["denominators"] == "global"
    and case["batch"] == "ragged"
    and case["words"]["loss_mode"] in ("vanilla", "gspo", "cispo", "sapo", "geo_mean", "dppo_tv")
    and case["words"].get("loss_agg_mode") != "seq-mean-token-sum-norm"
    and not set(OTHER) & case["words"].keys()
]


def asked(objective, case, dp_size: int = 1):
    """Loss per micro-batch and gradient, the function being called as verl's actor calls it."""
    raw = verl_table.recorded()["batches"][case["batch"]]
    mask = torch.tensor(raw["mask"])
    tensors = {k: torch.tensor(v, dtype=torch.float64) for k, v in raw.items() if type(v) is list}
    info = {"dp_size": dp_size, "batch_num_tokens": int(mask.sum()), "global_batch_size": len(mask)}
    config = SimpleNamespace(global_batch_info=info)
    losses, gradients = [], []
    for rows in torch.arange(len(mask)).split(len(mask) // 2):
        log_prob = tensors["log_prob"][rows].clone().requires_grad_()
        loss, metrics = policy_loss(objective)(
            old_log_prob=tensors["old_log_prob"][rows],
            log_prob=log_prob,
            advantages=tensors["advantages"][rows],
            response_mask=mask[rows].bool(),
            loss_agg_mode="token-mean",
            config=config,
        )
        assert metrics == {}
        losses.append(loss.item())
        gradients.append(torch.autograd.grad(loss, log_prob)[0])
    return torch.tensor(losses, dtype=torch.float64), torch.cat(gradients)[mask.bool()]


def test_the_plugin_gives_verls_recorded_losses_and_gradients():
    assert len(SAID) >= 20
    for case in SAID:
        losses, gradient = asked(from_verl(**case["words"]).objective, case)
        theirs = torch.tensor(case["loss"], dtype=torch.float64)
        assert (losses - theirs).abs().max() < 1e-10, case["words"]
        wanted = torch.tensor(case["gradient"], dtype=torch.float64)
        assert (gradient - wanted).abs().max() < 1e-10, case["words"]


def test_several_processes_multiply_what_averaging_gradients_undoes():
    one, two = (asked(ZOO["dapo"], SAID[0], n)[1] for n in (1, 2))
    assert torch.equal(two, 2 * one) and one.abs().max() > 0


@pytest.mark.parametrize("name", ["vespo", "sspo"])
def test_a_loss_without_a_word_is_the_objectives_own(name):
    objective = ANNEX[name]
    batch, logprobs = verl_table.batch_of("ragged")
    wanted = torch.autograd.grad(objective(batch).loss, logprobs)[0][batch.mask]
    gradient = asked(objective, {"batch": "ragged"})[1]
    assert (gradient - wanted).abs().max() < 1e-12
    assert verl_words_and_plugin(objective)[1:] == (True, False)


def test_rows_of_a_prompt_are_found_in_any_order():
    rewards = torch.tensor([1.0, 0.0, 0.0, 1.0, 1.0, 0.0])
    names = ["a", "b", "a", "b", "a", "b"]
    per_token = torch.zeros(6, 3).index_put_((torch.arange(6), torch.tensor(2)), rewards)
    mask = torch.ones(6, 3)
    made, returns = advantage_estimator(ZOO["maxrl"])(per_token, mask, index=names)
    order = torch.tensor([0, 2, 4, 1, 3, 5])
    batch = Batch(torch.zeros(6, 3), mask, rewards[order], 3)
    assert torch.equal(made[order], ZOO["maxrl"].prepare(batch).advantages)
    assert torch.equal(made, returns) and made.abs().max() > 0
    with pytest.raises(ValueError, match="groups have 2 to 4 answers"):
        advantage_estimator(ZOO["maxrl"])(per_token, mask, index=["a"] * 4 + ["b"] * 2)


@pytest.mark.parametrize("name", ["scalerl", "dppo_topk", "entropy_shaped"])
def test_what_verl_does_not_pass_is_refused(name):
    with pytest.raises(Inexpressible, match="has no word for|have no word for"):
        verl_words_and_plugin({**ZOO, **ANNEX}[name])
    with pytest.raises(Inexpressible, match="rows and tokens of a step"):
        policy_loss(ZOO["dapo"].replace(weights=prompt_mean))


def test_files_say_each_word_once_with_its_reason(tmp_path):
    read = pytest.importorskip("pyarrow.parquet").read_table
    pairs = [("4+3=?", "7"), ("1+1=?", "2")]
    paths = write_verl(tmp_path, ZOO["mgpo"], train=pairs, test=pairs[:1], model="m", gpus=2)
    assert {path.name for path in paths} == {
        "trainer.yaml", "reward.py", "rlnb_plugin.py", "run.sh", "train.parquet", "test.parquet",
    }  # fmt: skip
    text = (tmp_path / "trainer.yaml").read_text(encoding="utf-8")
    config = yaml.safe_load(text)
    assert config["defaults"] == ["ppo_trainer", "_self_"]
    assert config["algorithm"]["adv_estimator"] == "rlnb"
    assert config["actor_rollout_ref"]["actor"]["optim"]["lr"] == 1e-6
    body = text[text.index("_self_") :].splitlines()[1:]
    assert all("  # " in line for line in body if line and not line.endswith(":"))
    made: dict = {}
    exec((tmp_path / "reward.py").read_text(encoding="utf-8"), made)
    row = read(tmp_path / "train.parquet").to_pylist()[0]
    truth, extra = row["reward_model"]["ground_truth"], row["extra_info"]
    assert made["compute_score"]("", "so7", truth, extra) == 1.0
    assert made["compute_score"]("", "so8", truth, extra) == 0.0
    plugin = (tmp_path / "rlnb_plugin.py").read_text(encoding="utf-8")
    said = plugin.split("register(")[1].rsplit(", loss=", 1)[0]
    scope: dict = {}
    exec("from rlnb.objective import *", scope)
    assert eval(said, scope) == ZOO["mgpo"]
    assert isinstance(eval(said, scope), Objective)


def test_the_constant_length_of_dr_grpo_is_the_answers_limit():
    text = verl_config(ZOO["dr_grpo"], model="m", max_completion_length=256)
    assert yaml.safe_load(text)["actor_rollout_ref"]["actor"]["loss_scale_factor"] == 256
