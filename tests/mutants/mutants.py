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
            "tests/objective/test_parts.py::test_group_zscore_population_and_bessel",
        ),
        (
            "the leave-one-out factor upside down: the direction stays right",
            "* (size / (size - 1))",
            "* ((size - 1) / size)",
            "tests/objective/test_parts.py::"
            "test_leave_one_out_is_the_centred_reward_times_g_over_g_minus_1",
        ),
        (
            "the guard for equal rewards of 0.7 looks superfluous",
            "return rewards, torch.where(spread, deviation, torch.zeros_like(deviation))",
            "return rewards, deviation",
            "tests/objective/test_parts.py::test_equal_rewards_give_exactly_zero",
        ),
        (
            "eps as a floor instead of a summand: equal to six digits",
            "scale = standard_deviation(rewards, self.std, dim=1) + self.eps",
            "scale = standard_deviation(rewards, self.std, dim=1).clamp(min=self.eps)",
            "tests/objective/test_parts.py::test_eps_is_added_to_the_std",
        ),
        (
            "whose std is it: ScaleRL's is that of the centred rewards",
            'spread = deviation if self.of == "centred" else rewards',
            "spread = rewards",
            "tests/objective/test_recent_methods.py::"
            "test_scalerl_divides_by_one_std_of_the_centred_rewards",
        ),
        (
            "an option that nothing reads any more",
            'none = 0.0 if self.no_success == "zero" else -1.0',
            "none = 0.0",
            "tests/objective/test_recent_methods.py::"
            "test_max_rl_without_a_success_is_zero_or_minus_one",
        ),
        (
            "GAE takes the value of a tool token for the successor's",
            "value_next = torch.where(here, values[:, t], value_next)",
            "value_next = values[:, t]",
            "tests/objective/test_parts.py::test_gae_steps_over_masked_tokens",
        ),
        (
            "GAE runs through tool output instead of over it",
            "running = torch.where(here, delta + self.gamma * self.lam * running, running)",
            "running = delta + self.gamma * self.lam * running",
            "tests/objective/test_parts.py::test_gae_steps_over_masked_tokens",
        ),
        (
            "the return is discounted over tool output and padding too",
            "running = torch.where(here, token_rewards[:, t] + self.gamma * running, running)",
            "running = token_rewards[:, t] + self.gamma * running",
            "tests/objective/test_parts.py::test_return_to_go_discounts_what_is_still_to_come",
        ),
    ),
    *_in(
        "rlnb/objective/ratios.py",
        (
            "GSPO's mean over the padded width instead of the answer's length",
            "mean = self.per_token(batch).sum(1) / batch.lengths.clamp(min=1)",
            "mean = self.per_token(batch).mean(1)",
            "tests/objective/test_newer_parts.py::"
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
            "return batch.sampling_logprobs.detach()",
            "return batch.anchor_logprobs",
            "tests/objective/test_recent_methods.py::test_scalerl_loss_by_hand",
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
            "SimKO's share is added and not taken from the sampled token",
            "shared = (1 - self.alpha) * batch.logprobs + self.alpha * rivals",
            "shared = batch.logprobs + self.alpha * rivals",
            "tests/objective/test_recent_methods.py::"
            "test_every_gate_is_one_where_nothing_has_moved",
        ),
    ),
    *_in(
        "rlnb/objective/surrogates.py",
        (
            "the clip without the min, as many read it",
            "value = torch.minimum(free * advantages, rho.clamp(*self.edges) * advantages)",
            "value = rho.clamp(*self.edges) * advantages",
            "tests/objective/test_explain_config.py::test_a_delta_inside_the_band_cuts_both_signs",
        ),
        (
            "clip-higher is accepted and ignored",
            "1 + (self.epsilon if self.high is None else self.high)",
            "1 + self.epsilon",
            "tests/objective/test_explain_config.py::test_a_delta_inside_the_band_cuts_both_signs",
        ),
        (
            "the dual clip on both signs",
            "return torch.where(advantages < 0, torch.maximum(value, "
            "self.dual * advantages), value)",
            "return torch.maximum(value, self.dual * advantages)",
            "tests/objective/test_explain_config.py::test_a_delta_inside_the_band_cuts_both_signs",
        ),
        (
            "the clip share counts tokens that the min leaves alive",
            "(advantages > 0) & (rho > high)",
            "(rho > high)",
            "tests/objective/test_parts.py::test_metrics_count_only_cut_tokens",
        ),
        (
            "CISPO differentiates its weight",
            "rho = log_ratio.detach().exp()",
            "rho = log_ratio.exp()",
            "tests/objective/test_explain_config.py::"
            "test_at_one_step_the_named_losses_share_their_gate",
        ),
        (
            "SAPO's slope at 1 becomes tau instead of 1",
            "torch.sigmoid(tau * d) * (4 / tau)",
            "torch.sigmoid(tau * d) * 4",
            "tests/objective/test_newer_parts.py::test_sapo_gate_at_known_ratios",
        ),
        (
            "SAPO's second temperature is never used; both are near 1",
            "torch.full_like(advantages, self.tau_neg),",
            "torch.full_like(advantages, self.tau_pos),",
            "tests/objective/test_newer_parts.py::test_sapo_gate_at_known_ratios",
        ),
        (
            "VESPO differentiates its weight",
            "log_w = log_ratio.detach().clamp(",
            "log_w = log_ratio.clamp(",
            "tests/objective/test_recent_methods.py::"
            "test_every_gate_is_one_where_nothing_has_moved",
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
            "tests/objective/test_recent_methods.py::test_the_mask_looks_at_the_direction",
        ),
        (
            "the sequence mask by the sum: long answers are always masked",
            "batch.logprobs.detach()).sum(1) / batch.lengths.clamp(min=1)",
            "batch.logprobs.detach()).sum(1)",
            "tests/objective/test_newer_parts.py::"
            "test_sequence_mask_drops_a_bad_answer_that_has_become_unlikely",
        ),
        (
            "the engine's ratio upside down: its mean is near 1 both ways",
            "gap = batch.anchor_logprobs - batch.sampling_logprobs",
            "gap = batch.sampling_logprobs - batch.anchor_logprobs",
            "tests/objective/test_newer_parts.py::"
            "test_engine_ratio_truncates_and_masks_token_and_product",
        ),
        (
            "the lower edge of the engine's band is not read",
            "torch.where((omega < low) | (omega > high), 0.0, omega)",
            "torch.where(omega > high, 0.0, omega)",
            "tests/objective/test_newer_parts.py::"
            "test_engine_ratio_truncates_and_masks_token_and_product",
        ),
        (
            "padding lowers the entropy threshold",
            "torch.quantile(entropies[batch.mask], 1 - self.quantile)",
            "torch.quantile(entropies, 1 - self.quantile)",
            "tests/objective/test_newer_parts.py::test_top_entropy_keeps_a_share_of_the_tokens",
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
            "tests/objective/test_parts.py::test_a_fully_masked_row_counts_as_its_weights_say",
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
            "return one / (_rows(totals, self.count_empty) * length)",
            "return one / (_rows(totals, self.count_empty) * one.shape[1])",
            "tests/objective/test_parts.py::test_constant_length_never_takes_the_padded_width",
        ),
        (
            "the prompt mean over rows: a factor G that Adam hides",
            "1 / (totals.prompts * totals.row_group_tokens.clamp(min=1))",
            "1 / (totals.rows * totals.row_group_tokens.clamp(min=1))",
            "tests/objective/test_parts.py::test_per_token_weights",
        ),
    ),
    *_in(
        "rlnb/objective/terms.py",
        (
            "k3 of the inverse ratio: also positive, the other KL",
            "return torch.expm1(-log_ratio) + log_ratio",
            "return torch.expm1(log_ratio) - log_ratio",
            "tests/objective/test_parts.py::test_gradients_of_the_kl_estimators_as_losses",
        ),
        (
            "the KL's sequence ratio as a product instead of a geometric mean",
            "moved = batch.expand(moved.sum(1) / batch.lengths.clamp(min=1))",
            "moved = batch.expand(moved.sum(1))",
            "tests/objective/test_newer_parts.py::"
            "test_sequence_corrected_k3_uses_the_undetached_sequence_ratio",
        ),
        (
            "the corrected KL loses its gradient through the ratio: the value is the same",
            '(moved.detach() if self.corrected == "detached" else moved).exp() * value',
            "moved.detach().exp() * value",
            "tests/objective/test_parts.py::test_gradients_of_the_kl_estimators_as_losses",
        ),
        (
            "straight through, and the estimator's own gradient on top",
            "value = slope - slope.detach() + value.detach()",
            "value = slope - slope.detach() + value",
            "tests/objective/test_newer_parts.py::"
            "test_straight_through_has_the_estimators_value_and_k2s_slope",
        ),
        (
            "the value clip takes the smaller error: optimistic instead of pessimistic",
            "return torch.maximum(error, (near",
            "return torch.minimum(error, (near",
            "tests/objective/test_parts.py::test_value_loss_takes_the_worse_of_clipped_and_plain",
        ),
        (
            "the entropy bonus becomes a penalty",
            "return -batch.entropies",
            "return batch.entropies",
            "tests/objective/test_entropy_bonus.py::test_minimising_the_loss_raises_the_entropy",
        ),
    ),
    *_in(
        "rlnb/objective/shapes.py",
        (
            "the KL penalty pays for leaving the reference",
            "kl_estimate(self.estimator, batch.anchor_logprobs - batch.ref_logprobs)",
            "kl_estimate(self.estimator, batch.ref_logprobs - batch.anchor_logprobs)",
            "tests/objective/test_parts.py::test_kl_in_the_reward_is_subtracted_where_it_arises",
        ),
        (
            "the overlong penalty has no floor",
            "over.clamp(0, 1)",
            "over.clamp(min=0)",
            "tests/objective/test_newer_parts.py::test_overlong_at_known_lengths",
        ),
        (
            "the last token by counting: wrong as soon as tool output stands between",
            "last = (batch.completion_mask * steps).argmax(1, keepdim=True)",
            "last = (batch.completion_mask.sum(1, keepdim=True).long() - 1).clamp(min=0)",
            "tests/objective/test_parts.py::test_gae_steps_over_masked_tokens",
        ),
    ),
    *_in(
        "rlnb/objective/credit.py",
        (
            "whitening without Bessel",
            'degrees = (tokens - int(self.std == "bessel")).clamp(min=1)',
            "degrees = tokens",
            "tests/objective/test_parts.py::"
            "test_reinforce_plus_plus_whitens_the_penalised_return_over_tokens",
        ),
        (
            "MGPO turned round: the easy and the hopeless prompts weigh most",
            "return (-self.strength * apart).exp()",
            "return (self.strength * apart).exp()",
            "tests/objective/test_recent_methods.py::test_mgpo_weight_of_an_accuracy",
        ),
        (
            "SimKO presses the likeliest token of right answers too",
            "(batch.sampled_rank == 0) & (advantages < 0)",
            "(batch.sampled_rank == 0)",
            "tests/objective/test_recent_methods.py::"
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
            "tests/objective/test_recent_methods.py::test_scalerl_loss_by_hand",
        ),
    ),
    *_in(
        "rlnb/training/sampler.py",
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
        "rlnb/training/scoring.py",
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
        "rlnb/training/rollouts.py",
        (
            "answers are verified against other prompts, in a right-looking order",
            "asked = [problems[i // recipe.num_generations]",
            "asked = [problems[i % recipe.prompts]",
            "tests/training/test_loop.py::test_twenty_short_steps_lift_pass_at_1_by_a_fifth",
        ),
        (
            "a truncated answer is paid",
            "rewards.to(device) * done",
            "rewards.to(device)",
            "tests/training/test_hostile_outputs.py::test_the_package_has_no_means_to_run_a_text",
        ),
        (
            "the reference is the policy itself: the KL is 0 and nobody notices",
            "_score(run, run.reference, rollout)",
            "_score(run, run.behaviour, rollout)",
            "tests/training/test_training_step.py::"
            "test_kl_in_the_reward_reads_the_frozen_reference",
        ),
        (
            "on-policy, the engine's log-probabilities stand in for the trainer's",
            "trainers = run.engine is not None or not recipe.on_policy",
            "trainers = not recipe.on_policy",
            "tests/training/test_precision.py::test_the_switches_of_precision_are_flags",
        ),
    ),
    *_in(
        "rlnb/training/update.py",
        (
            "after a filter the rows of the rollout are not those of the step",
            "prepared.minibatch(index), rows[index]",
            "prepared.minibatch(index), index",
            "tests/training/test_rows_and_gradients.py::"
            "test_after_a_filter_the_ratio_is_one_on_the_weights_that_sampled",
        ),
        (
            "the largest ratio taken where the gap is largest: it may be the smallest",
            'ENGINE + "max": omega.max().item()',
            'ENGINE + "max": omega[gap.abs().argmax()].item()',
            "tests/training/test_precision.py::test_the_switches_of_precision_are_flags",
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
            "self.behaviour.load_state_dict(self.past[0])",
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
            "tests/training/test_killed.py::test_kill_9_again_and_again_changes_nothing",
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
            "tests/training/test_killed.py::test_kill_9_again_and_again_changes_nothing",
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
            "a truncated answer counts as right",
            "view(len(problems), num_generations) * finished",
            "view(len(problems), num_generations)",
            "tests/training/test_hostile_outputs.py::test_the_package_has_no_means_to_run_a_text",
        ),
    ),
)
