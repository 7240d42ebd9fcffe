"""The report of an evaluation, of answers written down by hand."""

from __future__ import annotations

import torch

from rlnb.training import Answers
from rlnb.training.evaluation import summary


def test_entropy_is_per_token_and_not_per_answer(chain):
    # 8 tokens with 4 nats in all; the mean of the two answers' own means would be 1.25
    problem = chain.parse("4+3=?")
    answers = Answers(
        [problem], ["so7", "4+3=7so7"],
        right=torch.tensor([[1.0, 1.0]]),
        finished=torch.tensor([[True, True]]),
        length=torch.tensor([[1, 7]]),
        entropy=torch.tensor([[2.2, 1.8]]),
    )  # fmt: skip
    assert abs(summary(chain, answers)["entropy"] - 4.0 / 8) < 1e-6
