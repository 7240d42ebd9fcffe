"""The method table of page 14: what a composition says of itself, and what it mends and breaks.

`row` reads critic, baseline, ratio, trust region, aggregation, KL and models off the parts, so
none of those cells is written by hand. `NOTES` holds a phrase each for what a method mends and
what it breaks, with the page that shows it or the paper that reports it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import astuple, dataclass, fields
from typing import Any

from rlnb import objective as o
from rlnb.classroom.figures import Bundle
from rlnb.objective import Objective
from rlnb.objective.part import spell

__all__ = ["NOTES", "STAND_IN", "Note", "Row", "methods_table", "notes_table", "row"]


@dataclass(frozen=True)
class Row:
    """The computed cells of one method. models: networks whose weights the update needs."""

    critic: str
    baseline: str
    ratio: str
    trust_region: str
    aggregation: str
    kl: str
    models: int


BASELINES: Mapping[type, Callable[[Any], str]] = {
    o.raw_reward: lambda p: "none",
    o.batch_mean: lambda p: "batch mean",
    o.leave_one_out: lambda p: "mean of the others",
    o.greedy_baseline: lambda p: "greedy answer",
    o.return_to_go: lambda p: "none",
    o.gae: lambda p: "critic",
    o.group_center: lambda p: "group mean",
    o.group_zscore: lambda p: "group mean, ÷ group std",
    o.batch_zscore: lambda p: f"{p.center} mean, ÷ batch std",
    o.max_rl: lambda p: "group mean, ÷ group mean",
}
CREDITS: Mapping[type, Callable[[Any], str]] = {
    o.whiten: lambda p: "mean of all tokens, ÷ their std",
    o.mgpo_weight: lambda p: f"× more near p = ½, λ {p.strength:g}",
    o.entropy_shaped: lambda p: "+ entropy bonus",
    o.length_preference: lambda p: "× factor of the length",
    o.press_top: lambda p: f"× {p.factor:g} at wrong forks",
}
RATIOS: Mapping[type, Callable[[Any], str]] = {
    o.token: lambda p: "token",
    o.topk_mix: lambda p: "token, gradient shared with the top K",
    o.sequence: lambda p: "answer (geometric mean)",
    o.sequence_token: lambda p: "answer, gradient by token",
    o.product: lambda p: "answer (product)",
    o.gmpo: lambda p: "answer (mean of clipped tokens)",
    o.soft_sequence: lambda p: "answer (mean of soft tokens)",
}
# ratios that tame themselves, under the plain surrogate rho A
TAMED: Mapping[type, Callable[[Any], str]] = {
    o.gmpo: lambda p: f"tokens cut at e^±{p.epsilon:g}",
    o.soft_sequence: lambda p: f"soft gate per token, τ {p.tau:g}",
}
SURROGATES: Mapping[type, Callable[[Any], str]] = {
    o.clip: lambda p: "cut outside {:g} to {:g}".format(*p.edges),
    o.cispo: lambda p: f"weight at most {p.cap:g}",
    o.sapo: lambda p: f"soft gate, τ {p.tau_pos:g} / {p.tau_neg:g}",
    o.vespo: lambda p: "soft weight",
    o.kl_cov: lambda p: f"pays {p.coefficient:g}·abs(log ρ) on {p.fraction:.2%} of tokens",
    o.logprob: lambda p: "none",
    o.ratio: lambda p: "none",
}
GATES: Mapping[type, Callable[[Any], str]] = {
    o.divergence_mask: lambda p: (
        f"dropped past {'TV' if p.kind == 'tv' else 'KL'}{' of the top K' if p.top_k else ''} "
        f"{p.low:g}, outward"
    ),
    o.sequence_mask: lambda p: (
        f"wrong answer dropped past {p.threshold:g} nats a token"
        f"{', to the engine' if p.anchor == 'sampling' else ''}"
    ),
    o.clip_cov: lambda p: f"{p.fraction:.2%} of tokens silenced",
    o.engine_ratio: lambda p: f"× engine ratio, {p.kind} at {p.high:g}",
    o.top_entropy: lambda p: f"top {p.quantile:.0%} of entropy only",
}
AGGREGATIONS: Mapping[type, Callable[[Any], str]] = {
    o.sequence_mean: lambda p: "per answer",
    o.token_mean: lambda p: "per token",
    o.local_token_mean: lambda p: "per token of the micro-batch",
    o.constant_length: lambda p: "constant",
    o.sequence_sum: lambda p: "sum",
    o.prompt_mean: lambda p: "per prompt",
}


def row(objective: Objective) -> Row:
    """The seven cells that the parts decide. A part without a word here is spelled as code.

    models: the policy, a reference where a KL needs `ref_logprobs`, a critic where `values` are
    needed. What sampled the answers is stored as log-probs and counts for nothing; neither does a
    reward model or a second copy of the policy in an inference engine.

    >>> from rlnb.objective import ZOO
    >>> row(ZOO["grpo"]).kl, row(ZOO["grpo"]).models, row(ZOO["gspo"]).ratio
    ('k3 in the loss, β 0.04', 2, 'answer (geometric mean)')
    """
    needs = objective.needs
    baseline = [_word(BASELINES, objective.advantage)]
    baseline += [_word(CREDITS, p) for p in objective.credit]
    if baseline[0] == "none":
        baseline = baseline[1:] or baseline
    return Row(
        critic="yes" if "values" in needs else "no",
        baseline=" ".join(baseline),
        ratio=_ratio(objective),
        trust_region=_trust(objective),
        aggregation=_word(AGGREGATIONS, objective.weights),
        kl=_kl(objective),
        models=1 + ("ref_logprobs" in needs) + ("values" in needs),
    )


def _word(words: Mapping[type, Callable[[Any], str]], part: Any) -> str:
    # sequence_mean and its like may stand without parentheses, as classes
    known = words.get(part if isinstance(part, type) else type(part))
    return known(part) if known else spell(part)


def _ratio(objective: Objective) -> str:
    if isinstance(objective.surrogate, o.logprob) and not objective.gates:
        return "none"
    anchor = getattr(objective.ratio, "anchor", "old")
    return _word(RATIOS, objective.ratio) + (", to the engine" if anchor == "sampling" else "")


def _trust(objective: Objective) -> str:
    own = _word(SURROGATES, objective.surrogate)
    if isinstance(objective.surrogate, o.ratio) and type(objective.ratio) in TAMED:
        own = _word(TAMED, objective.ratio)
    gates = [_word(GATES, gate) for gate in objective.gates]
    return "; ".join([own] * (own != "none" or not gates) + gates)


def _kl(objective: Objective) -> str:
    found = [
        f"k1 in the reward, β {p.beta:g}" if p.estimator == "k1" else spell(p)
        for p in objective.shape
        if isinstance(p, o.kl_in_reward)
    ]
    for p in objective.terms:
        if "ref_logprobs" in getattr(p, "needs", ()):
            corrected = "corrected " if p.corrected else ""
            found.append(f"{corrected}{p.kind} in the loss, β {p.coefficient:g}")
    return "; ".join(found) or "none"


@dataclass(frozen=True)
class Note:
    """What a method mends, what it breaks or costs, and where that is shown or reported."""

    fixes: str
    breaks: str
    source: str


def _arxiv(number: str) -> str:
    return f"[{number}](https://arxiv.org/abs/{number})"


def _page(stem: str) -> str:
    return f"[{stem[:2]}]({stem}.ipynb)"


_P02, _P03, _P05 = _page("02_reinforce"), _page("03_baselines"), _page("06_ppo")
_P07, _P08, _P09 = _page("09_grpo_biases"), _page("10_dr_grpo"), _page("11_dapo")
_P10, _P11, _HERE = _page("12_soft_trust_regions"), _page("13_gspo"), "this page"

# cells whose number is this course's or a library's, since the paper's was not verified
STAND_IN: Mapping[str, tuple[str, ...]] = {
    "cispo": ("trust_region",),
    "scalerl": ("trust_region",),
    "dppo": ("trust_region",),
    "dppo_kl": ("trust_region",),
    "dppo_topk": ("trust_region",),
    "mgpo": ("baseline",),
    "sspo": ("trust_region",),
    "clip_cov": ("trust_region",),
    "kl_cov": ("trust_region",),
    "deepseek_v3_2": ("trust_region", "kl"),
}

NOTES: Mapping[str, Note] = {
    "reinforce": Note(
        "a gradient for what is only sampled", "noise grows with the mean reward", _P02
    ),
    "reinforce_batch_mean": Note(
        "less noise, for free", "one baseline for easy and hard prompts", _P03
    ),
    "rloo": Note("an unbiased baseline per prompt", "several answers per prompt", _P03),
    "remax": Note("a baseline from one more answer", "the greedy answer may be untypical", _P03),
    "reinforce_plus_plus": Note("one scale for the batch", "the baseline knows no prompt", _P03),
    "ppo": Note(
        "several updates per batch, credit per token", "a second network, which may err", _P05
    ),
    "grpo": Note("no critic", "1/std and 1/T tilt prompts and lengths", _P07),
    "dr_grpo": Note("neither tilt", "the step follows reward scale and constant", _P08),
    "dapo": Note("rare tokens may rise further; no 1/T", "1/std still tilts prompts", _P09),
    "gspo": Note("token noise averages out", "one outlier may silence an answer", _P11),
    "gspo_token": Note("advantages may differ inside an answer", "GSPO wherever they do not", _P11),
    "gmpo": Note("an outlier is cut before the mean", "its uncut tokens share one weight", _P11),
    "cispo": Note("no token dies", "the weight is bounded, the movement is not", _P10),
    "sapo": Note("no token dies, no corner", "weighs up to 1.57, at ρ near 2 (A > 0)", _P10),
    "dppo": Note("asks how much probability moved", "needs the engine's log-probs", _P10),
    "dppo_kl": Note("the same, in nats", "needs the engine's log-probs", _P10),
    "dppo_topk": Note("sees what moves beside the token", "needs both policies' top K", _P10),
    "scalerl": Note("one std for the batch, no dead token", "needs the engine's log-probs", _HERE),
    "maxrl": Note("hard prompts weigh 1/p", "advantages up to G − 1; rewards 0 and 1 only", _HERE),
    "mgpo": Note("prompts near ½ weigh more", "1/std underneath pulls the other way", _HERE),
    "luspo": Note("GSPO without 1/T", "long answers move more", _arxiv("2602.05261")),
    "vespo": Note("a smooth weight on the true ratio", "products fade or grow with length", _HERE),
    "sspo": Note(
        "GMPO's mean with a soft gate (not verified)",
        "one weight for all tokens",
        _arxiv("2602.19327"),
    ),
    "clip_cov": Note(
        "slows the fall of entropy", "random; depends on the micro-batch", _arxiv("2505.22617")
    ),
    "kl_cov": Note(
        "slows the fall of entropy", "no clip; depends on the micro-batch", _arxiv("2505.22617")
    ),
    "simko": Note("presses a right answer's rivals less", "top-K log-probs with gradient", _HERE),
    "lambda_grpo": Note(
        "leans to long or short by one number", "a trained λ follows the loss", _HERE
    ),
    "entropy_shaped": Note("a bonus where unsure, sign kept", "spares wrong unsure tokens", _HERE),
    "deepseek_v3_2": Note(
        "the KL term has the KL's gradient", "a reference; stale wrong answers teach nothing", _HERE
    ),
}


def methods_table(methods: Mapping[str, Objective], first: Iterable[str] = ()) -> Bundle:
    """The computed cells as a table: Markdown where it can be shown, lines of text elsewhere.

    `first`: these rows on top, the others folded (all rows, none folded, when empty). A * marks
    a cell of STAND_IN.
    """
    heads = ["method", *(f.name.replace("_", " ") for f in fields(Row))]
    heads[-2:] = "KL here", "models here"
    return _table(heads, {name: _cells(name, row(m)) for name, m in methods.items()}, first)


def _cells(name: str, cells: Row) -> list[str]:
    return [
        f"{getattr(cells, f.name)}{'*' * (f.name in STAND_IN.get(name, ()))}" for f in fields(Row)
    ]


def notes_table(methods: Iterable[str], first: Iterable[str] = ()) -> Bundle:
    """Mends, breaks, source; `first` as in `methods_table`."""
    return _table(
        ["method", "mends", "breaks, or costs", "shown or reported"],
        {name: list(astuple(NOTES[name])) for name in methods},
        first,
    )


def _table(heads: list[str], rows: Mapping[str, list[str]], first: Iterable[str]) -> Bundle:
    on_top = list(first) or list(rows)
    rest = [name for name in rows if name not in on_top]
    marked = _markdown(heads, rows, on_top)
    if rest:
        marked += (
            f"\n\n<details><summary>the other {len(rest)}</summary>\n\n"
            f"{_markdown(heads, rows, rest)}\n\n</details>"
        )
    plain = [
        "; ".join(
            [name, *(f"{head} {cell}" for head, cell in zip(heads[1:], rows[name], strict=True))]
        )
        for name in on_top + rest
    ]
    return Bundle({"text/markdown": marked, "text/plain": "\n".join(plain)})


def _markdown(heads: list[str], rows: Mapping[str, list[str]], names: list[str]) -> str:
    # * would be read as emphasis where a row has two
    lines = [
        heads,
        ["---"] * len(heads),
        *([f"`{name}`", *(cell.replace("*", "\\*") for cell in rows[name])] for name in names),
    ]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)
