"""verl 0.9.1: what its words for the KL do that their reader may not expect."""

from __future__ import annotations

from rlnb.interop.traps import Trap, is_number, number

__all__ = ["KL_TRAPS"]

KL_TRAPS: tuple[Trap, ...] = (
    Trap(
        "kl_coef_off",
        lambda c: (
            is_number(c.kl_loss_coef)
            and "kl_loss_coef" in c.given
            and c.kl_loss_coef != 0
            and c.use_kl_loss is False
        ),
        lambda c: (
            f"kl_loss_coef={number(c.kl_loss_coef)} does nothing, because use_kl_loss is "
            "False (the default): there is no KL term. Write use_kl_loss=True, or take the "
            "coefficient out."
        ),
    ),
    Trap(
        "kl_coef_zero",
        lambda c: c.use_kl_loss is True and c.kl_loss_coef == 0,
        lambda c: (
            "use_kl_loss=True with kl_loss_coef=0.0 runs the reference model on every "
            "answer and multiplies its term by 0. Write use_kl_loss=False."
        ),
    ),
    Trap(
        "kl_reward_off",
        lambda c: (
            is_number(c.kl_coef)
            and "kl_coef" in c.given
            and c.kl_coef != 0
            and c.use_kl_in_reward is False
        ),
        lambda c: (
            f"kl_ctrl.kl_coef={number(c.kl_coef)} does nothing, because use_kl_in_reward is "
            "False (the default). Write algorithm.use_kl_in_reward=True, or take it out."
        ),
    ),
    Trap(
        "kl_twice",
        lambda c: (
            c.use_kl_loss is True and c.use_kl_in_reward is True and c.kl_loss_coef and c.kl_coef
        ),
        lambda c: (
            f"the KL is paid twice, in the loss (kl_loss_coef={c.kl_loss_coef}) and in the "
            f"reward (kl_coef={c.kl_coef}), on different scales: the second is summed over "
            "the answer's tokens. Keep one: use_kl_in_reward=False."
        ),
    ),
    Trap(
        "kl_no_gradient",
        lambda c: c.use_kl_loss is True and c.kl_loss_type in ("kl", "k1") and c.kl_loss_coef,
        lambda c: (
            f"kl_loss_type={c.kl_loss_type} as a loss has expected gradient 0: the term is "
            "logged and restrains nothing. Write kl_loss_type=low_var_kl (GRPO's k3) or k2 "
            "(the gradient of KL(pi || ref))."
        ),
    ),
    Trap(
        "adaptive_kl",
        lambda c: c.use_kl_in_reward is True and c["kl_ctrl.type"] == "adaptive",
        lambda c: (
            f"the adaptive KL controller aims at target_kl={c.target_kl} nats per token, "
            "not per answer: over 500 tokens that is "
            f"{500 * c.target_kl if is_number(c.target_kl) else '500 times as many'} nats, "
            "where RLHF's usual target is 6. Write a target 1/T of the one you mean."
        ),
    ),
)
