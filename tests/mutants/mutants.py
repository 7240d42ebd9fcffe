"""Bugs that someone could write, and the tests that must notice them.

A mutant is a line of the package put wrongly: a sign, a denominator, a forgotten stop-gradient, an
option that nothing reads. Each is one that was made somewhere, or survived in this project once.
`run.py` plants them one at a time. A part, a loop or a check that is new brings a mutant along.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["MUTANTS", "Mutant"]


@dataclass(frozen=True)
class Mutant:
    """file      relative to the project's root
    old, new  texts; `old` occurs exactly once in the file
    why       one sentence: how it happens, or why nobody sees it
    tests     files or node ids; at least one of them must go red
    """

    file: str
    old: str
    new: str
    why: str
    tests: tuple[str, ...]

    @property
    def name(self) -> str:
        return f"{self.file}: {self.why}"

    @property
    def all_text(self) -> str:
        return "\n".join((self.name, self.old, self.new, *self.tests))

    def applied_to(self, source: str) -> str:
        """The source with the mutant in it. ValueError unless `old` occurs exactly once."""
        if (count := source.count(self.old)) != 1:
            raise ValueError(f"{self.file}: {self.old!r} occurs {count} times, expected once.")
        return source.replace(self.old, self.new)


def _in(file: str, *rows: tuple[str, ...]) -> list[Mutant]:
    """Mutants of one file, from rows (why, old, new, *tests)."""
    return [Mutant(file, row[1], row[2], row[0], row[3:]) for row in rows]


MUTANTS: tuple[Mutant, ...] = (
    *_in(
        "rlnb/objective/advantages.py",
        (
            "n and n - 1 are mistaken for each other in every rewrite of a std",
            'correction=int(std == "bessel")',
            'correction=int(std != "bessel")',
            "tests/objective/test_advantages.py::test_group_zscore_population_and_bessel",
        ),
        (
            "the leave-one-out factor upside down: the direction stays right",
            "* (size / (size - 1))",
            "* ((size - 1) / size)",
            "tests/objective/test_advantages.py::"
            "test_leave_one_out_is_the_centred_reward_times_g_over_g_minus_1",
        ),
        (
            "the guard for equal rewards of 0.7 looks superfluous",
            "return rewards, torch.where(spread, deviation, torch.zeros_like(deviation))",
            "return rewards, deviation",
            "tests/objective/test_advantages.py::test_equal_rewards_give_exactly_zero",
        ),
        (
            "eps as a floor instead of a summand: equal to six digits",
            "scale = standard_deviation(rewards, self.std, dim=1) + self.eps",
            "scale = standard_deviation(rewards, self.std, dim=1).clamp(min=self.eps)",
            "tests/objective/test_advantages.py::test_eps_is_added_to_the_std",
        ),
        (
            "whose std is it: ScaleRL's is that of the centred rewards",
            'spread = deviation if self.of == "centred" else rewards',
            "spread = rewards",
            "tests/objective/test_advantages.py::"
            "test_scalerl_divides_by_one_std_of_the_centred_rewards",
        ),
        (
            "an option that nothing reads any more",
            'none = 0.0 if self.no_success == "zero" else -1.0',
            "none = 0.0",
            "tests/objective/test_advantages.py::"
            "test_max_rl_without_a_success_is_zero_or_minus_one",
        ),
        (
            "GAE takes the value of a tool token for the successor's",
            "value_next = torch.where(here, values[:, t], value_next)",
            "value_next = values[:, t]",
            "tests/objective/test_advantages.py::test_gae_steps_over_masked_tokens",
        ),
        (
            "GAE runs through tool output instead of over it",
            "running = torch.where(here, delta + self.gamma * self.lam * running, running)",
            "running = delta + self.gamma * self.lam * running",
            "tests/objective/test_advantages.py::test_gae_steps_over_masked_tokens",
        ),
        (
            "the return is discounted over tool output and padding too",
            "running = torch.where(here, token_rewards[:, t] + self.gamma * running, running)",
            "running = token_rewards[:, t] + self.gamma * running",
            "tests/objective/test_advantages.py::test_return_to_go_discounts_what_is_still_to_come",
        ),
    ),
    *_in(
        "rlnb/objective/ratios.py",
        (
            "GSPO's mean over the padded width instead of the answer's length",
            "mean = self.per_token(batch).sum(1) / batch.lengths.clamp(min=1)",
            "mean = self.per_token(batch).mean(1)",
            "tests/objective/test_terms.py::"
            "test_sequence_corrected_k3_uses_the_undetached_sequence_ratio",
        ),
        (
            "GSPO-token without its stop-gradient: the value is the same",
            ".clamp(min=1)).detach()",
            ".clamp(min=1))",
            "tests/objective/test_worked_example.py::test_loss_and_gradient_of_the_worked_example",
        ),
        (
            "the anchor 'sampling' is read and the old policy taken",
            'return batch.required("sampling_logprobs", type(self).__name__).detach()',
            "return batch.anchor_logprobs",
            "tests/objective/test_methods.py::test_scalerl_loss_by_hand",
        ),
        (
            "GMPO without its min and max: a plain clamp kills the mending side too",
            "advantages > 0, torch.minimum(log_ratio, banded), torch.maximum(log_ratio, banded)",
            "advantages > 0, banded, banded",
            "tests/objective/test_gmpo.py::test_the_upper_width_is_its_own",
        ),
        (
            "GMPO's upper width is read and not used",
            "banded = log_ratio.clamp(-self.epsilon, high)",
            "banded = log_ratio.clamp(-self.epsilon, self.epsilon)",
            "tests/objective/test_gmpo.py::test_the_upper_width_is_its_own",
        ),
        (
            "padding counts as tokens of entropy 0 in the fork quantile",
            "torch.where(batch.mask, entropies, torch.nan).nanquantile(",
            "torch.where(batch.mask, entropies, 0.0).quantile(",
            "tests/objective/test_ratios.py::"
            "test_fork_tokens_lie_above_the_quantile_of_their_own_answer_without_padding",
        ),
        (
            "SimKO's share is added and not taken from the sampled token",
            "shared = (1 - self.alpha) * batch.logprobs + self.alpha * rivals",
            "shared = batch.logprobs + self.alpha * rivals",
            "tests/objective/test_methods.py::test_every_gate_is_one_where_nothing_has_moved",
        ),
    ),
    *_in(
        "rlnb/objective/surrogates.py",
        (
            "the clip without the min, as many read it",
            "value = torch.minimum(free * advantages, rho.clamp(*self.edges) * advantages)",
            "value = rho.clamp(*self.edges) * advantages",
            "tests/interop/test_explanation.py::test_a_delta_inside_the_band_cuts_both_signs",
        ),
        (
            "clip-higher is accepted and ignored",
            "1 + (self.epsilon if self.high is None else self.high)",
            "1 + self.epsilon",
            "tests/interop/test_explanation.py::test_a_delta_inside_the_band_cuts_both_signs",
        ),
        (
            "the dual clip on both signs",
            "return torch.where(advantages < 0, torch.maximum(value, "
            "self.dual * advantages), value)",
            "return torch.maximum(value, self.dual * advantages)",
            "tests/interop/test_explanation.py::test_a_delta_inside_the_band_cuts_both_signs",
        ),
        (
            "the clip share counts tokens that the min leaves alive",
            "(advantages > 0) & (rho > high)",
            "(rho > high)",
            "tests/objective/test_metrics.py::test_metrics_count_only_cut_tokens",
        ),
        (
            "CISPO differentiates its weight",
            "rho = log_ratio.detach().exp()",
            "rho = log_ratio.exp()",
            "tests/interop/test_explanation.py::test_at_one_step_the_named_losses_share_their_gate",
        ),
        (
            "SAPO's slope at 1 becomes tau instead of 1",
            "torch.sigmoid(tau * d) * (4 / tau)",
            "torch.sigmoid(tau * d) * 4",
            "tests/objective/test_surrogates.py::test_sapo_gate_at_known_ratios",
        ),
        (
            "SAPO's second temperature is never used; both are near 1",
            "torch.full_like(advantages, self.tau_neg),",
            "torch.full_like(advantages, self.tau_pos),",
            "tests/objective/test_surrogates.py::test_sapo_gate_at_known_ratios",
        ),
        (
            "VESPO differentiates its weight",
            "log_w = log_ratio.detach().clamp(",
            "log_w = log_ratio.clamp(",
            "tests/objective/test_methods.py::test_every_gate_is_one_where_nothing_has_moved",
        ),
        (
            "KL-Cov by absolute covariance: right on most batches",
            "chosen[cov.topk(count).indices] = 1.0",
            "chosen[cov.abs().topk(count).indices] = 1.0",
            "tests/objective/test_covariance_parts.py::"
            "test_kl_cov_takes_the_largest_covariance_and_not_the_largest_size",
        ),
    ),
    *_in(
        "rlnb/objective/gates.py",
        (
            "DPPO's mask without its direction: tokens that come back are dropped",
            "(log_p > log_q) & (moved > high)",
            "moved > high",
            "tests/objective/test_gates.py::test_the_mask_looks_at_the_direction",
        ),
        (
            "the sequence mask by the sum: long answers are always masked",
            "gap = (self.behaviour(batch) - "
            "batch.logprobs.detach()).sum(1) / batch.lengths.clamp(min=1)",
            "gap = (self.behaviour(batch) - batch.logprobs.detach()).sum(1)",
            "tests/objective/test_gates.py::"
            "test_sequence_mask_drops_a_bad_answer_that_has_become_unlikely",
        ),
        (
            "the engine's ratio upside down: its mean is near 1 both ways",
            'gap = batch.anchor_logprobs - batch.required("sampling_logprobs", "engine_ratio")',
            'gap = batch.required("sampling_logprobs", "engine_ratio") - batch.anchor_logprobs',
            "tests/objective/test_gates.py::"
            "test_engine_ratio_truncates_and_masks_token_and_product",
        ),
        (
            "the lower edge of the engine's band is not read",
            "torch.where((omega < low) | (omega > high), 0.0, omega)",
            "torch.where(omega > high, 0.0, omega)",
            "tests/objective/test_gates.py::"
            "test_engine_ratio_truncates_and_masks_token_and_product",
        ),
        (
            "padding lowers the entropy threshold",
            "torch.quantile(entropies[batch.mask], 1 - self.quantile)",
            "torch.quantile(entropies, 1 - self.quantile)",
            "tests/objective/test_gates.py::test_top_entropy_keeps_a_share_of_the_tokens",
        ),
        (
            "Clip-Cov draws among tokens that the band has cut already",
            "batch.mask & ~cut & (cov > self.low)",
            "batch.mask & (cov > self.low)",
            "tests/objective/test_covariance_parts.py::"
            "test_clip_cov_draws_among_the_tokens_that_the_band_left_alive",
        ),
        (
            "the mean of a covariance over padding",
            "(advantages - advantages[mask].mean())",
            "(advantages - advantages.mean())",
            "tests/objective/test_covariance_parts.py::"
            "test_the_means_of_the_covariance_leave_padding_out",
        ),
    ),
    *_in(
        "rlnb/objective/weights.py",
        (
            "empty rows count whatever was asked",
            "return totals.rows if count_empty else totals.nonempty_rows.clamp(min=1)",
            "return totals.rows",
            "tests/objective/test_weights.py::test_a_fully_masked_row_counts_as_its_weights_say",
        ),
        (
            "the token mean over the micro-batch: the gradient accumulation bug of 2024",
            "torch.ones_like(batch.completion_mask) / totals.tokens",
            "torch.ones_like(batch.completion_mask) / batch.lengths.sum()",
            "tests/objective/test_composition.py::"
            "test_losses_of_any_split_add_up_also_inside_groups",
        ),
        (
            "Dr. GRPO's constant is the padded width, as in a widely copied snippet",
            "* self.constant(batch))",
            "* one.shape[1])",
            "tests/objective/test_weights.py::test_constant_length_never_takes_the_padded_width",
        ),
        (
            "the prompt mean over rows: a factor G that Adam hides",
            "1 / (totals.prompts * totals.row_group_tokens.clamp(min=1))",
            "1 / (totals.rows * totals.row_group_tokens.clamp(min=1))",
            "tests/objective/test_weights.py::test_per_token_weights",
        ),
    ),
    *_in(
        "rlnb/objective/terms.py",
        (
            "k3 of the inverse ratio: also positive, the other KL",
            "return torch.expm1(-log_ratio) + log_ratio",
            "return torch.expm1(log_ratio) - log_ratio",
            "tests/objective/test_terms.py::test_gradients_of_the_kl_estimators_as_losses",
        ),
        (
            "a reference that is trained along",
            'batch.required("ref_logprobs", self.kind).detach()',
            'batch.required("ref_logprobs", self.kind)',
            "tests/objective/test_terms.py::test_no_gradient_reaches_the_reference",
        ),
        (
            "the KL's sequence ratio as a product instead of a geometric mean",
            "moved = batch.expand(moved.sum(1) / batch.lengths.clamp(min=1))",
            "moved = batch.expand(moved.sum(1))",
            "tests/objective/test_terms.py::"
            "test_sequence_corrected_k3_uses_the_undetached_sequence_ratio",
        ),
        (
            "the corrected KL loses its gradient through the ratio: the value is the same",
            '(moved.detach() if self.corrected == "detached" else moved).exp() * value',
            "moved.detach().exp() * value",
            "tests/objective/test_terms.py::test_gradients_of_the_kl_estimators_as_losses",
        ),
        (
            "straight through, and the estimator's own gradient on top",
            "value = slope - slope.detach() + value.detach()",
            "value = slope - slope.detach() + value",
            "tests/objective/test_terms.py::"
            "test_straight_through_has_the_estimators_value_and_k2s_slope",
        ),
        (
            "the value clip takes the smaller error: optimistic instead of pessimistic",
            "return torch.maximum(error, (near",
            "return torch.minimum(error, (near",
            "tests/objective/test_terms.py::test_value_loss_takes_the_worse_of_clipped_and_plain",
        ),
        (
            "the entropy bonus becomes a penalty",
            'return -batch.required("entropies", "entropy_bonus")',
            'return batch.required("entropies", "entropy_bonus")',
            "tests/objective/test_entropy_bonus.py::test_minimising_the_loss_raises_the_entropy",
        ),
    ),
    *_in(
        "rlnb/objective/shapes.py",
        (
            "the KL penalty pays for leaving the reference",
            "batch.anchor_logprobs - reference)",
            "reference - batch.anchor_logprobs)",
            "tests/objective/test_shapes.py::test_kl_in_the_reward_is_subtracted_where_it_arises",
        ),
        (
            "the overlong penalty has no floor",
            "over.clamp(0, 1)",
            "over.clamp(min=0)",
            "tests/objective/test_shapes.py::test_overlong_at_known_lengths",
        ),
        (
            "the last token by counting: wrong as soon as tool output stands between",
            "last = (batch.completion_mask * steps).argmax(1, keepdim=True)",
            "last = (batch.completion_mask.sum(1, keepdim=True).long() - 1).clamp(min=0)",
            "tests/objective/test_advantages.py::test_gae_steps_over_masked_tokens",
        ),
    ),
    *_in(
        "rlnb/objective/credit.py",
        (
            "whitening without Bessel",
            'degrees = (tokens - int(self.std == "bessel")).clamp(min=1)',
            "degrees = tokens",
            "tests/objective/test_methods.py::"
            "test_reinforce_plus_plus_whitens_the_penalised_return_over_tokens",
        ),
        (
            "MGPO turned round: the easy and the hopeless prompts weigh most",
            "return (-self.strength * apart).exp()",
            "return (self.strength * apart).exp()",
            "tests/objective/test_credit.py::test_mgpo_weight_of_an_accuracy",
        ),
        (
            "SimKO presses the likeliest token of right answers too",
            "& likeliest & (advantages < 0)",
            "& likeliest",
            "tests/objective/test_credit.py::"
            "test_simko_presses_the_likeliest_token_of_wrong_answers_at_forks",
        ),
    ),
    *_in(
        "rlnb/objective/batch.py",
        (
            "0 times nan is nan: a padding token spoils the step",
            "where, value, torch.zeros((), dtype=value.dtype, device=value.device)\n",
            "where, value, value * 0\n",
            "tests/objective/test_composition.py::"
            "test_masked_tokens_get_exactly_zero_gradient_whatever_they_hold",
        ),
        (
            "a step's prompts counted as rows",
            "len(lengths) // size,",
            "len(lengths),",
            "tests/objective/test_methods.py::test_scalerl_loss_by_hand",
        ),
        (
            "a minibatch's prompts counted as rows",
            "len(ids),\n",
            "len(lengths),\n",
            "tests/objective/test_weights.py::test_a_minibatch_counts_its_prompts_and_not_its_rows",
        ),
        (
            "a minibatch keeps the denominators of the step",
            "return replace(part, totals=Totals.of(part.batch.lengths, part.group))",
            "return part",
            "tests/objective/test_composition.py::test_minibatch_recomputes_its_totals",
        ),
        (
            "an old policy with a gradient: on-policy the ratio's gradient is 0",
            "return old.detach()",
            "return old",
            "tests/objective/test_methods.py::test_at_the_old_policy_every_gate_is_one",
        ),
        (
            "a batch is refused for what stands under the mask",
            "bad = mask & ~torch.isfinite(value)",
            "bad = ~torch.isfinite(value)",
            "tests/objective/test_composition.py::"
            "test_masked_tokens_get_exactly_zero_gradient_whatever_they_hold",
        ),
    ),
    *_in(
        "rlnb/objective/composition.py",
        (
            "a gate that is differentiated",
            "gate(clean, advantages, log_ratio).detach()",
            "gate(clean, advantages, log_ratio)",
            "tests/objective/test_composition.py::test_gates_multiply_and_carry_no_gradient",
        ),
        (
            "a term's own weights are ignored",
            "c = weights if own is None else torch.where(mask, own(clean, totals), 0.0)",
            "c = weights",
            "tests/parity/test_verl.py::test_ours_is_verls",
        ),
        (
            "advantages that were given are whitened a second time",
            "            if batch.advantages is None:\n                for",
            "            if True:\n                for",
            "tests/objective/test_given_advantages.py::"
            "test_given_advantages_are_not_whitened_again",
        ),
        (
            "the critic is asked for the advantage instead of the return",
            'made["returns"] = advantages + clean.values.detach()',
            'made["returns"] = advantages',
            "tests/objective/test_credit.py::test_whitening_comes_after_the_critics_target",
        ),
    ),
    *_in(
        "rlnb/objective/report.py",
        (
            "the sign of the kl metric: k3 is positive either way",
            '"k3", batch.logprobs.detach() - ref)',
            '"k3", ref - batch.logprobs.detach())',
            "tests/objective/test_metrics.py::"
            "test_the_kl_metric_is_k3_of_policy_over_reference_per_token",
        ),
        (
            "reward_std with the other correction",
            "groups.std(1).mean()",
            "groups.std(1, correction=0).mean()",
            "tests/objective/test_metrics.py::test_metrics_count_only_cut_tokens",
        ),
        (
            "the clip share over padding too",
            "(hit & mask).sum() / mask.sum().clamp(min=1)",
            "(hit & mask).sum() / mask.numel()",
            "tests/objective/test_clip_share.py::"
            "test_padding_is_not_in_the_denominator_of_the_clip_share",
        ),
    ),
    *_in(
        "rlnb/objective/zoo.py",
        (
            "GSPO's band with one zero less",
            '"gspo": Objective(group_zscore(), clip(3e-4, high=4e-4)',
            '"gspo": Objective(group_zscore(), clip(3e-3, high=4e-3)',
            "tests/objective/test_published_numbers.py::test_the_band_is_the_published_one",
        ),
        (
            "DPPO with CISPO's cap",
            "cispo(20.0)",
            "cispo(5.0)",
            "tests/objective/test_published_numbers.py::"
            "test_the_cap_of_the_detached_ratio_is_the_published_one",
        ),
    ),
    *_in(
        "rlnb/objective/naming.py",
        (
            "a convention changes a method's name",
            "wanted = objective.canonical()\n    return next",
            "wanted = objective\n    return next",
            "tests/objective/test_composition.py::test_names_ignore_conventions_and_nothing_else",
        ),
    ),
    *_in(
        "rlnb/interop/trl.py",
        (
            "the off-policy mask compares with the trainer although vLLM sampled",
            'anchor="sampling" if vllm else "old"',
            'anchor="old"',
            "tests/interop/test_trl_and_verl_words.py::test_trl_round_trip",
        ),
        (
            "delta inside clip-higher's band is no dual clip",
            "if delta is not None and delta > 1 + (epsilon if high is None else high):",
            "if delta is not None and delta > 1 + epsilon:",
            "tests/parity/test_trl.py::test_rlnb_computes_what_trl_computes",
        ),
        (
            "the default of an older TRL",
            '"use_bias_correction_kl": True',
            '"use_bias_correction_kl": False',
            "tests/interop/test_trl_and_verl_words.py::test_names_from_trl",
        ),
        (
            "the KL's ratio stays per token at sequence level",
            'by_sequence = corrected and _level(words) == "sequence"',
            "by_sequence = False",
            "tests/interop/test_trl_and_verl_words.py::test_trl_round_trip",
        ),
        (
            "verl's eps for TRL's: the loss moves in the fourth digit",
            "EPS = 1e-4",
            "EPS = 1e-6",
            "tests/interop/test_trl_and_verl_words.py::test_trl_defaults_are_not_the_paper",
        ),
        (
            "the entropy is averaged like the policy term",
            "entropy_bonus(coefficient, weights=local_token_mean())",
            "entropy_bonus(coefficient)",
            "tests/interop/test_trl_and_verl_words.py::test_trl_round_trip",
        ),
        (
            "TRL writes the cap itself into epsilon_high, verl the width",
            'surrogates.cispo(words.number("epsilon") if cap is None else cap)',
            'surrogates.cispo(1 + (words.number("epsilon") if cap is None else cap))',
            "tests/interop/test_trl_and_verl_words.py::"
            "test_cispo_with_trls_default_caps_at_the_lower_epsilon",
        ),
    ),
    *_in(
        "rlnb/interop/verl.py",
        (
            "the upper edge from the lower width: both are 0.2 by default",
            "surrogates.cispo(1 + high, floor",
            "surrogates.cispo(1 + low, floor",
            "tests/interop/test_trl_and_verl_words.py::test_verl_round_trip",
        ),
        (
            "verl's dual clip, which is always on, is left out",
            "return clip(low, upper, dual=top if top <= exp(20) else None), token, ()",
            "return clip(low, upper), token, ()",
            "tests/interop/test_trl_and_verl_words.py::test_verl_round_trip",
        ),
        (
            "KL and entropy are averaged like the policy term",
            "return None if own == ROW else own",
            "return None",
            "tests/parity/test_verl.py::test_ours_is_verls",
        ),
        (
            "the other GSPO: same value, same gradient while advantages are equal in a row",
            "ratios.sequence_token(anchor)",
            "ratios.sequence(anchor)",
            "tests/interop/test_trl_and_verl_words.py::test_verl_round_trip",
        ),
        (
            "REINFORCE++ baseline without its whitening",
            "return group_center(), (WHITEN,)",
            "return group_center(), ()",
            "tests/parity/test_verl.py::test_the_table_lists_every_loss",
        ),
        (
            "a constant is supposed where verl has the padded width",
            "return padded_length() if factor is None else constant_length(int(factor))",
            "return constant_length() if factor is None else constant_length(int(factor))",
            "tests/interop/test_trl_and_verl_words.py::test_verl_round_trip",
        ),
    ),
    *_in(
        "rlnb/interop/naming_evidence.py",
        (
            "a method is named although words that decide it were not read",
            "    if doubts:\n",
            "    if False:\n",
            "tests/interop/test_evidence.py::"
            "test_a_dictionary_that_cannot_be_read_is_printed_and_nothing_is_named",
        ),
    ),
    *_in(
        "rlnb/interop/labs_row.py",
        (
            "GPPO's edge below keeps the ratio: the clip is then no clip at all",
            "rho < below), self.low * below, rho)",
            "rho < below), self.low * rho, rho)",
            "tests/interop/test_labs.py::test_gppo_keeps_the_edge_where_the_clip_is_silent",
        ),
        (
            "TOPR's taper for right answers, too: then it is truncated importance sampling",
            "torch.where(advantages < 0, weight, 1.0)",
            "weight",
            "tests/interop/test_labs.py::"
            "test_the_weight_of_a_wrong_answer_tapers_and_a_right_one_s_is_one",
        ),
    ),
    *_in(
        "rlnb/training/studies/race/large.py",
        (
            "every run starts from the first of the other bases",
            "arm.bases[seed % len(arm.bases)]",
            "arm.bases[0]",
            "tests/training/test_race.py::"
            "test_other_bases_are_made_once_and_a_run_starts_from_the_one_of_its_seed",
        ),
    ),
    *_in(
        "rlnb/training/studies/race/verdicts.py",
        (
            "both arms are read at the dearer one's end: np.interp repeats the last point",
            "spent = min(curves",
            "spent = max(curves",
            "tests/training/test_race.py::test_at_equal_cpu_the_dearer_arm_is_read_before_its_end",
        ),
    ),
    *_in(
        "rlnb/interop/shell_source.py",
        (
            "arguments below a comment count although bash does not pass them",
            "if made and orphan and found and last_end >= 0:",
            "if made and orphan and False:",
            "tests/interop/test_evidence.py::"
            "test_a_comment_or_an_empty_line_in_a_continuation_ends_the_command",
        ),
        (
            "of two branches the last counts",
            'value, note = f"{old[0]} or {value}, by a branch", UNKNOWN',
            "pass",
            "tests/interop/test_evidence.py::"
            "test_each_command_has_its_report_and_a_branch_is_not_followed",
        ),
    ),
    *_in(
        "rlnb/interop/openrlhf.py",
        (
            "OpenRLHF's means over a micro-batch are taken for those of the step",
            'if given.get("step_averages") else local_token_mean()',
            "if True else local_token_mean()",
            "tests/interop/test_evidence.py::"
            "test_openrlhfs_older_flags_mean_averages_over_the_micro_batch",
        ),
    ),
    *_in(
        "rlnb/toys/exact.py",
        (
            "the multinomial coefficient with n for n!: right up to pairs",
            "ways //= math.factorial(repeats)",
            "ways //= repeats",
            "tests/toys/test_exact.py::"
            "test_groups_of_four_are_counted_with_their_multinomial_probability",
        ),
    ),
    *_in(
        "rlnb/toys/moments.py",
        (
            "the variance counts the diagonal twice",
            "step.square().sum(1) - row_mean.square().sum((1, 2))",
            "step.square().sum(1)",
            "tests/toys/test_moments.py::test_moments_equal_brute_force",
        ),
        (
            "outcomes are merged although a shape tells them apart",
            "return known and not objective.shape and not objective.credit",
            "return known",
            "tests/toys/test_moments.py::test_moments_equal_brute_force",
        ),
        (
            "the greedy answer is looked for in the padding too",
            "steps = (best[policy._state] == policy._token) | ~policy.mask.bool()",
            "steps = best[policy._state] == policy._token",
            "tests/toys/test_moments.py::test_merging_classes_changes_the_count_and_nothing_else",
        ),
        (
            "the multinomial coefficient with n for n!: right up to pairs",
            "ways //= math.factorial(repeats)",
            "ways //= repeats",
            "tests/toys/test_moments.py::test_moments_equal_brute_force",
        ),
    ),
    *_in(
        "rlnb/toys/router.py",
        (
            "routing replay is accepted and ignored",
            "chosen = ranked[..., : self.top] if routes is None else routes[:, :, layer]",
            "chosen = ranked[..., : self.top]",
            "tests/toys/test_router.py::test_own_routes_change_nothing_and_other_routes_are_obeyed",
        ),
    ),
    *_in(
        "rlnb/toys/scaling.py",
        (
            "a fitted pass rate above 1",
            "ceiling = np.minimum(ceiling, highest)",
            "ceiling = ceiling",
            "tests/toys/test_scaling.py::test_held_ends_stay_and_the_ceiling_is_bounded",
        ),
    ),
    *_in(
        "rlnb/training/sampling/sampler.py",
        (
            "the seed is ignored: every run is another run",
            ".exponential_(generator=generator)",
            ".exponential_()",
            "tests/training/test_sampler.py::test_the_same_seed_gives_the_same_rows",
        ),
        (
            "log-probabilities behind the end token",
            "logprobs[rows, t] = torch.where(open_, logprob, 0.0)",
            "logprobs[rows, t] = logprob",
            "tests/training/test_sampler.py::test_sampled_logprobs_equal_teacher_forcing",
        ),
        (
            "the nucleus loses the token that crosses its edge",
            "before = ordered.softmax(-1).cumsum(-1) - ordered.softmax(-1)",
            "before = ordered.softmax(-1).cumsum(-1)",
            "tests/training/test_sampler.py::test_top_k_and_top_p_keep_what_they_say",
        ),
    ),
    *_in(
        "rlnb/training/sampling/scoring.py",
        (
            "the longest prompts of a micro-batch lose their first tokens",
            "first = int(mask.argmax(1).min())",
            "first = int(mask.argmax(1).max())",
            "tests/training/test_sampler.py::"
            "test_batched_teacher_forcing_equals_each_row_by_itself",
        ),
        (
            "a nucleus is scored with the whole vocabulary: the ratio is not 1",
            "if drawn.top_k or drawn.top_p < 1.0:",
            "if drawn.top_k:",
            "tests/training/test_training_step.py::"
            "test_what_cannot_be_trained_is_refused_before_anything_is_sampled",
        ),
    ),
    *_in(
        "rlnb/training/models/adapters.py",
        (
            "the reference of a KL is the policy itself, adapters on",
            "layer.enable_adapters(False)",
            "layer.enable_adapters(True)",
            "tests/training/test_adapters.py::test_the_reference_is_the_base",
        ),
        (
            "a merged model is the base",
            "        layer.merge()\n",
            "",
            "tests/training/test_adapters.py::"
            "test_the_final_model_is_an_adapter_merged_on_request_and_loads",
        ),
    ),
    *_in(
        "rlnb/training/update.py",
        (
            "a scaled gradient is clipped as if it were not scaled",
            "        run.scaler.unscale_(run.optimizer)\n",
            "",
            "tests/training/test_optimizers.py::"
            "test_a_scaled_loss_leaves_the_gradient_in_its_own_size",
        ),
    ),
    *_in(
        "rlnb/training/rollouts.py",
        (
            "scores of micro-batches by length stay in the order of length",
            "torch.cat(list(parts))[rollout.lengths.argsort(stable=True).argsort()]",
            "torch.cat(list(parts))",
            "tests/training/test_adapters.py::test_the_reference_is_the_base",
        ),
        (
            "scores are put back by the order and not by its inverse",
            "torch.cat(list(parts))[rollout.lengths.argsort(stable=True).argsort()]",
            "torch.cat(list(parts))[rollout.lengths.argsort(stable=True)]",
            "tests/training/test_adapters.py::test_the_reference_is_the_base",
        ),
        (
            "answers are verified against other prompts, in a right-looking order",
            "asked = [problems[i // recipe.num_generations]",
            "asked = [problems[i % recipe.prompts]",
            "tests/training/test_rows_and_gradients.py::"
            "test_every_answer_is_verified_against_its_own_prompt",
        ),
        (
            "a truncated answer is paid",
            "rewards.to(device) * done",
            "rewards.to(device)",
            "tests/training/test_training_step.py::test_a_truncated_completion_earns_nothing",
        ),
        (
            "a truncated greedy answer is paid: ReMax's baseline is too high",
            "torch.tensor(given) * greedy.finished[:, 0]",
            "torch.tensor(given)",
            "tests/training/test_reported_numbers.py::"
            "test_a_greedy_answer_that_was_cut_off_is_not_paid",
        ),
        (
            "reward_std with the other correction",
            "groups.std(1).mean()",
            "groups.std(1, correction=0).mean()",
            "tests/training/test_reported_numbers.py::"
            "test_the_rollouts_entropy_is_per_token_and_its_std_bessels",
        ),
        (
            "entropy as a mean of means: short answers weigh more",
            "(rollout.entropies.sum() / lengths.sum())",
            "(rollout.entropies.sum(1) / lengths).mean()",
            "tests/training/test_reported_numbers.py::"
            "test_the_rollouts_entropy_is_per_token_and_its_std_bessels",
        ),
        (
            "the reference is the policy itself: the KL is 0 and nobody notices",
            "_score(run, reference, rollout)",
            "_score(run, run.behaviour, rollout)",
            "tests/training/test_training_step.py::"
            "test_kl_in_the_reward_reads_the_frozen_reference",
        ),
        (
            "on-policy, the engine's log-probabilities stand in for the trainer's",
            "not recipe.on_policy or (run.engine is not None and early(run.objective))",
            "not recipe.on_policy",
            "tests/training/test_precision.py::"
            "test_where_old_logprobs_matter_the_trainers_are_scored",
        ),
    ),
    *_in(
        "rlnb/training/update.py",
        (
            "each minibatch keeps the step's denominators: Adam hides the scale",
            "prepared.minibatch(index), rows[index]",
            "prepared.rows(index), rows[index]",
            "tests/training/test_training_step.py::"
            "test_each_minibatch_is_divided_by_its_own_rows_and_tokens",
        ),
        (
            "after a filter the rows of the rollout are not those of the step",
            "prepared.minibatch(index), rows[index]",
            "prepared.minibatch(index), index",
            "tests/training/test_rows_and_gradients.py::"
            "test_after_a_filter_the_ratio_is_one_on_the_weights_that_sampled",
        ),
        (
            "the clip share over the rows that were evaluated only",
            "tally.add(name, metrics[name], tokens / total)",
            "tally.add(name, metrics[name], tokens / evaluated)",
            "tests/training/test_reported_numbers.py::"
            "test_a_clip_share_is_of_all_tokens_also_of_those_left_out",
        ),
        (
            "the largest ratio taken where the gap is largest: it may be the smallest",
            'ENGINE + "max": omega.max().item()',
            'ENGINE + "max": omega[gap.abs().argmax()].item()',
            "tests/training/test_reported_numbers.py::"
            "test_an_engines_largest_difference_may_be_below_zero",
        ),
        (
            "every micro-batch is normalised on its own: the gradient accumulation bug",
            "objective.evaluate(mini.rows(piece).replace(**fresh))",
            "objective.evaluate(mini.minibatch(piece).replace(**fresh))",
            "tests/training/test_training_step.py::"
            "test_micro_batches_give_the_gradient_of_the_whole_step",
        ),
        (
            "rows with advantage 0 are skipped although a KL still pulls on them",
            'if objective.terms or "ref_logprobs" in objective.needs or not known:',
            "if not known:",
            "tests/training/test_training_step.py::test_no_row_is_silent_where_a_term_pulls_on_it",
        ),
        (
            "the gradients of minibatches pile up",
            "run.optimizer.zero_grad(set_to_none=False)",
            "pass",
            "tests/training/test_rows_and_gradients.py::"
            "test_a_second_pass_over_a_rollout_begins_with_no_gradient",
        ),
    ),
    *_in(
        "rlnb/training/run.py",
        (
            "staleness is reported and the newest weights sample",
            "self.behaviour.load_state_dict(self.past[0], strict=not self.adapted)",
            "self.behaviour.load_state_dict(self.past[-1])",
            "tests/training/test_switches.py::test_the_log_tells_a_stale_step_from_a_fresh_one",
        ),
        (
            "one update less of staleness than asked",
            "while len(self.past) > self.recipe.staleness + 1:",
            "while len(self.past) > self.recipe.staleness:",
            "tests/training/test_switches.py::"
            "test_a_stale_rollout_is_compared_with_the_policy_that_sampled_it",
        ),
    ),
    *_in(
        "rlnb/training/loop.py",
        (
            "no evaluation and no checkpoint at the last step",
            "(number % every == 0 or number == last)",
            "number % every == 0",
            "tests/training/test_rows_and_gradients.py::"
            "test_the_last_step_is_evaluated_and_kept_whatever_its_number",
        ),
        (
            "a resumed run counts its tokens from 0",
            'run.num_tokens = state["num_tokens"]',
            "pass",
            "tests/training/test_killed.py::"
            "test_a_disk_that_fills_up_is_one_sentence_and_the_last_checkpoint_is_whole",
        ),
    ),
    *_in(
        "rlnb/training/checkpoint.py",
        (
            "the torch generator is saved and not restored",
            'torch.set_rng_state(states["torch"])',
            "pass",
            "tests/training/test_loop.py::test_a_killed_run_resumes_as_if_nothing_had_happened",
        ),
        (
            "a resumed run samples from the start of its seed again",
            'generator.set_state(states["sampler"])',
            "generator.get_state()",
            "tests/training/test_killed.py::test_a_run_that_was_lengthened_is_the_long_run",
        ),
        (
            "past weights in the order of text: 10 before 2",
            "weights.setdefault(int(age), {})[name] = value",
            "weights.setdefault(age, {})[name] = value",
            "tests/training/test_past_weights.py::"
            "test_more_than_ten_past_weights_come_back_oldest_first",
        ),
        (
            "a checkpoint with changed files is taken",
            "if _sha256(folder / name) != expected:",
            "if not expected:",
            "tests/training/test_faults.py::test_every_damaged_file_of_a_checkpoint_is_noticed",
        ),
        (
            "only the newest checkpoint is kept",
            "KEPT = 2 ",
            "KEPT = 1 ",
            "tests/training/test_faults.py::test_every_damaged_file_of_a_checkpoint_is_noticed",
        ),
        (
            "any final model is taken for that of the last checkpoint",
            "== weights[file.name]",
            "> ''",
            "tests/training/test_faults.py::test_a_run_without_its_final_model_has_something_to_do",
        ),
    ),
    *_in(
        "rlnb/training/run_folder.py",
        (
            "a lock that any number of runs can have at once",
            "fcntl.LOCK_EX | ",
            "fcntl.LOCK_SH | ",
            "tests/training/test_faults.py::test_a_folder_that_is_claimed_is_not_claimed_again",
        ),
        (
            "a dead process keeps its lock where the system has none",
            "    except (ProcessLookupError, OverflowError):\n        return False",
            "    except (ProcessLookupError, OverflowError):\n        return True",
            "tests/training/test_faults.py::"
            "test_where_the_system_has_no_locks_a_living_process_is_one",
        ),
    ),
    *_in(
        "rlnb/training/divergence.py",
        (
            "activations whose square overflows count as healthy",
            "hidden.float().square().isfinite()",
            "hidden.float().isfinite()",
            "tests/training/test_faults.py::"
            "test_divergence_names_its_step_and_keeps_the_last_good_checkpoint",
        ),
    ),
    *_in(
        "rlnb/training/question_files.py",
        (
            "a question of the test file is trained on",
            "if q not in test and not",
            "if not",
            "tests/training/test_question_files.py::"
            "test_a_test_file_beside_it_holds_the_held_out_problems",
        ),
    ),
    *_in(
        "rlnb/training/tasks/worked.py",
        (
            "the first number counts, and an answer may be changed afterwards",
            "text.rpartition(MARK)",
            "text.partition(MARK)",
            "tests/training/test_question_files.py::"
            "test_only_the_number_behind_the_last_mark_counts",
        ),
    ),
    *_in(
        "rlnb/training/metrics_file.py",
        (
            "a torn line in the middle of a record is passed over in silence",
            "if not (error.torn and number == len(lines)):",
            "if not error.torn:",
            "tests/training/test_metrics_file.py::"
            "test_a_torn_last_line_is_ignored_and_a_torn_middle_is_not",
        ),
    ),
    *_in(
        "rlnb/training/evaluation.py",
        (
            "pass@k by plugging in the rate: biased",
            "return 1.0 - math.comb(n - correct, k) / math.comb(n, k)",
            "return 1.0 - (1.0 - correct / n) ** k",
            "tests/training/test_evaluation.py::test_pass_at_k_by_hand",
        ),
        (
            "past 1,024 rows an answer gets another prompt's opening",
            "openings[start + i // num_generations]",
            "openings[i // num_generations]",
            "tests/training/test_evaluation.py::"
            "test_answers_in_several_rounds_keep_their_own_problem_and_opening",
        ),
        (
            "a truncated answer counts as right",
            "view(len(problems), num_generations) * finished",
            "view(len(problems), num_generations)",
            "tests/training/test_evaluation.py::"
            "test_a_truncated_answer_is_wrong_even_if_it_reads_right",
        ),
        (
            "entropy per token as a mean of means",
            "(answers.entropy.sum() / answers.length.sum())",
            "(answers.entropy / answers.length).mean()",
            "tests/training/test_summary.py::test_entropy_is_per_token_and_not_per_answer",
        ),
    ),
    *_in(
        "rlnb/training/rewards.py",
        (
            "dynamic sampling keeps the groups that are all right",
            "(groups.amax(1) > groups.amin(1))",
            "(groups.amax(1) > 0)",
            "tests/training/test_training_step.py::test_dynamic_sampling_keeps_the_mixed_groups",
        ),
        (
            "a bonus without a bound pays for a mistake",
            'counted = min(text.count("wait"), self.most)',
            'counted = text.count("wait")',
            "tests/training/test_rewards.py::test_no_bonus_pays_for_a_mistake",
        ),
    ),
    *_in(
        "rlnb/training/prompt_pool.py",
        (
            "a prompt leaves after one lucky visit",
            "enough = len(counted) >= (self.visits or 1)",
            "enough = True",
            "tests/training/test_prompt_pool.py::test_a_prompt_seen_fewer_times_than_visits_stays",
        ),
        (
            "the pool runs dry",
            "may_leave = len(self.problems) - len(self.retired) - len(problems)",
            "may_leave = len(self.problems)",
            "tests/training/test_prompt_pool.py::"
            "test_a_step_keeps_its_size_and_the_best_leave_first",
        ),
    ),
    *_in(
        "rlnb/training/tasks/chain.py",
        (
            "a right digit and anything behind it",
            "answer == problem.answer)",
            "answer.startswith(problem.answer))",
            "tests/training/test_tasks.py::test_only_the_exact_answer_after_the_last_so_counts",
        ),
        (
            "the first answer counts instead of the last",
            '_, marker, answer = text.rpartition("so")',
            '_, marker, answer = text.partition("so")',
            "tests/training/test_tasks.py::test_only_the_exact_answer_after_the_last_so_counts",
        ),
    ),
    *_in(
        "rlnb/classroom/checking/outcome.py",
        (
            "a number passes for a column of equal ones by broadcasting",
            "    if came.shape != expected.shape:\n        return False\n    tolerance",
            "    tolerance",
            "tests/classroom/test_check.py::test_a_wrong_shape_is_named_with_both_shapes",
        ),
        (
            "a check that compares values only: CISPO without its stop-gradient passes",
            "return all(same(gradients[name], g, tolerance) for name, g "
            "in expected.gradients.items())",
            "return True",
            "tests/classroom/test_check_exercises.py::test_each_mistake_is_named",
        ),
        (
            "a reference that answers nan matches nobody",
            "equal_nan=True\n    )\n\n\ndef agree",
            "equal_nan=False\n    )\n\n\ndef agree",
            "tests/classroom/test_check_exercises.py::test_each_mistake_is_named",
        ),
    ),
    *_in(
        "rlnb/classroom/checking/silent_bug.py",
        (
            "a test that sees nothing is praised",
            "        if on_broken.passed:",
            "        if False:",
            "tests/classroom/test_silent_bug.py::test_a_test_that_sees_no_difference_is_told_so",
        ),
    ),
    *_in(
        "rlnb/classroom/checking/name_this.py",
        (
            "REINFORCE and REINFORCE++ become one answer",
            'text.lower().replace("+", "plus")',
            "text.lower()",
            "tests/classroom/test_names.py::test_spelling_does_not_matter",
        ),
    ),
    *_in(
        "rlnb/classroom/checking/judge.py",
        (
            "a function that changes its input passes",
            "if (edited := _edited(came)) is not None:\n        return edited\n    for probe",
            "for probe",
            "tests/classroom/test_check.py::test_edited_inputs_are_caught",
        ),
    ),
    *_in(
        "rlnb/classroom/explorers/gae.py",
        (
            "two numbers in the wrong order: both lie between 0 and 1",
            "zeros, torch.ones_like(critic), rewards, 1, values=critic)\n "
            "   table = gae(gamma=gamma, lam=lam)",
            "zeros, torch.ones_like(critic), rewards, 1, values=critic)\n "
            "   table = gae(gamma=lam, lam=gamma)",
            "tests/classroom/test_explorer_numbers.py::"
            "test_gae_wrong_critic_turns_the_sign_at_small_lambda",
        ),
    ),
    *_in(
        "rlnb/interop/trl_trainer.py",
        (
            "each micro-batch counts as a whole step",
            "loss = objective.loss(prepared) * (processes * split / accumulated)",
            "loss = objective.loss(prepared) * (processes * split)",
            "tests/parity/test_trl_trainer.py::"
            "test_a_training_ends_at_the_weights_of_trls_own[dapo-accumulation 4]",
        ),
        (
            "averaging gradients over processes divides the loss once more",
            "loss = objective.loss(prepared) * (processes * split / accumulated)",
            "loss = objective.loss(prepared) * (split / accumulated)",
            "tests/parity/test_trl_trainer.py::test_two_processes_end_at_the_weights_of_trls_two",
        ),
        (
            "a token that the engine could not score is nan in every ratio",
            "torch.where(reported.isnan(), known, reported)",
            "reported",
            "tests/parity/test_trl_trainer.py::test_the_engines_logprobs_correct_as_trl_corrects",
        ),
        (
            "another objective goes on from the checkpoint in silence",
            "if before != repr(self.objective):",
            "if False:",
            "tests/parity/test_trl_trainer.py::test_a_resumed_training_is_the_uninterrupted_one",
        ),
    ),
    *_in(
        "rlnb/interop/trl_pieces.py",
        (
            "means of micro-batches are added instead of averaged",
            "return self.local(batch, totals) / self.pieces",
            "return self.local(batch, totals)",
            "tests/parity/test_trl_trainer.py::"
            "test_a_training_ends_at_the_weights_of_trls_own[bnpo-accumulation 4]",
        ),
    ),
    *_in(
        "rlnb/interop/verl_plugin.py",
        (
            "advantages stay in the order of the groups",
            "made[order] = alone.prepare(batch, check=False).advantages",
            "made = alone.prepare(batch, check=False).advantages",
            "tests/parity/test_verl_plugin.py::test_rows_of_a_prompt_are_found_in_any_order",
        ),
    ),
    *_in(
        "rlnb/training/distributed.py",
        (
            "processes share rows twice",
            "return rows[rank::size]",
            "return rows[rank:]",
            "tests/training/test_distributed.py::"
            "test_two_processes_have_the_gradient_and_the_metrics_of_one",
        ),
    ),
    *_in(
        "rlnb/classroom/paper/slides.py",
        (
            "the replies to wrong guesses are on the slide, for all to read",
            'return (text, "") if at < 0 else (text[:at].rstrip(), text[at:])',
            'return (text, "")',
            "tests/classroom/test_paper.py::test_a_slide_has_one_idea",
        ),
        (
            "a lead is longer than its slide",
            "<= min(LEAD, LINES - lines)",
            "<= LINES",
            "tests/browser/test_paper_in_chromium.py::test_no_slide_overflows",
        ),
    ),
    *_in(
        "rlnb/classroom/paper/handout.py",
        (
            "answers stand where they are asked",
            """body.append(f'<p class="see-line">""",
            """body.append(f'{told}<p class="see-line">""",
            "tests/classroom/test_paper.py::test_a_handout_keeps_every_answer_to_the_end",
        ),
    ),
    *_in(
        "rlnb/classroom/paper/mathml.py",
        (
            "\\frac12 reads twelve",
            "if token[:1].isdigit() and len(token) > 1:",
            "if False:",
            "tests/classroom/test_paper.py::test_formulas_by_hand",
        ),
    ),
    *_in(
        "rlnb/classroom/ledger.py",
        (
            "a cell that begins with a heading is linked under the one before",
            "heading = headings[0]",
            "pass",
            "tests/classroom/test_ledger.py::test_the_link_of_a_statement_leads_to_its_cell",
        ),
    ),
    *_in(
        "rlnb/classroom/breaking/lab.py",
        (
            "a test that fails on the right function kills everything",
            "if said := _fails(test, bench.function):",
            "if said := None:",
            "tests/classroom/test_break_it.py::"
            "test_a_test_that_fails_on_the_right_function_is_left_out_and_named",
        ),
        (
            "the last test decides about a bug, not any",
            "killed[name][i] = killed[name][i] or bool(",
            "killed[name][i] = bool(",
            "tests/classroom/test_break_it.py::test_a_bug_stays_dead_whatever_test_comes_after",
        ),
    ),
    *_in(
        "rlnb/classroom/class_table.py",
        (
            "counted against what the old course had",
            "sum(len(getattr(p, kind)) for kind in kinds) for p in pages]",
            "c[1] for c in counts[:-1]]",
            "tests/classroom/test_class_table.py::test_a_file_of_an_older_course_is_held_to_todays",
        ),
    ),
)
