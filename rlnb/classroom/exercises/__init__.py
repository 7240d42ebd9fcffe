"""The exercises of the course: content, judged by rlnb/classroom/checking. Run: `rlnb.check`.

In the order of the pages (rlnb/classroom/check.py has the table):

01  own_draws, sft, divergence
02  likelihood, reinforce, groups (leave-one-out)
03  baselines
04  weighting, kl_reward
05  clipping, credit
06  groups (z-score), kl, grpo
09  informative_groups, two_divisors
08  aggregation
09  dapo
10  soft_trust, mass_moved
11  sequence_level
12  max_rl, scaling, retired_prompts, deepseek
15  preferences, reward_model
21  run_log

A module is written in one order: the reference, its known mistakes, each under the sentence that is
said to it, then the probes and the `Exercise`.
"""

from __future__ import annotations
