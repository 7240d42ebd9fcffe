"""A training configuration, in whatever form it lies around, to the words of TRL or verl.

Text is read and never run: Python source by its syntax tree, YAML by the safe loader, shell
scripts word by word. What is not a literal is listed as not read.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any

from rlnb.interop.literals import scalar
from rlnb.interop.python_source import CONFIGS, has_python_config, read_python
from rlnb.interop.shell_source import read_flags, read_overrides
from rlnb.interop.trl import TRL_DEFAULTS, TRL_SILENT
from rlnb.interop.verl import VERL_DEFAULTS, VERL_SILENT

__all__ = ["Configuration", "read_configuration"]

LONGEST = 200_000  # characters; the longest public script we met has 17,000
DEEPEST = 40  # levels of YAML or JSON
WIDEST = 20_000  # values

Pairs = Sequence[tuple[str, str]]  # (word, what stands there)
ACTOR, POLICY = "actor_rollout_ref.actor.", "actor_rollout_ref.actor.policy_loss."
ALGORITHM, KL_CTRL = "algorithm.", "algorithm.kl_ctrl."
CORRECTION = "algorithm.rollout_correction."
# Where verl 0.9.1 looks for each word; set elsewhere, it does nothing or is refused.
HOMES = {
    **dict.fromkeys(
        (
            "loss_mode",
            "clip_cov_ratio",
            "clip_cov_lb",
            "clip_cov_ub",
            "kl_cov_ratio",
            "ppo_kl_coef",
            "dro_beta",
        ),
        POLICY,
    ),
    **dict.fromkeys(
        (
            "clip_ratio",
            "clip_ratio_low",
            "clip_ratio_high",
            "clip_ratio_c",
            "loss_agg_mode",
            "loss_scale_factor",
            "entropy_coeff",
            "tau_pos",
            "tau_neg",
            "use_kl_loss",
            "kl_loss_coef",
            "kl_loss_type",
            "ppo_epochs",
            "ppo_mini_batch_size",
        ),
        ACTOR,
    ),
    **dict.fromkeys(
        (
            "adv_estimator",
            "norm_adv_by_std_in_grpo",
            "gamma",
            "lam",
            "use_kl_in_reward",
            "kl_penalty",
        ),
        ALGORITHM,
    ),
    **dict.fromkeys(("kl_coef", "horizon", "target_kl"), KL_CTRL),
    **dict.fromkeys(("rollout_is", "rollout_rs", "bypass_mode"), CORRECTION),
}
VERL_HINT = re.compile(r"\b(?:actor_rollout_ref|algorithm)\.[a-z_.]+=")
FLAG = re.compile(r"(?:^|\s)--([A-Za-z][\w-]*)")
OTHERS = {"swift rlhf": "ms-swift", "openrlhf": "OpenRLHF", "nemo_rl": "NeMo RL", "slime": "slime"}
LOOKED_FOR = (
    "a GRPOConfig(...), RLOOConfig(...) or GMPOConfig(...) call, TRL's words as YAML, JSON or "
    "--word value, or verl's actor_rollout_ref.actor.* and algorithm.* words"
)


@dataclass(frozen=True)
class Configuration:
    """What a configuration says, before anything is concluded from it.

    library: "trl" or "verl". kind: TRL's class, or "verl". words: the library's own words, verl's
    without their path. not_read: (word, what stands there). misplaced: (path written, path that
    verl looks at). notes: what was assumed, a sentence each. where: what was read.
    """

    library: str
    kind: str
    words: Mapping[str, Any]
    where: str
    not_read: tuple[tuple[str, str], ...] = ()
    misplaced: tuple[tuple[str, str], ...] = ()
    notes: tuple[str, ...] = field(default=())


def read_configuration(source: Any) -> Configuration:
    """The words of a configuration: text of any supported kind, a mapping, or a config object.

    Raises ValueError in one sentence for text that is too long, too deep, broken, or of a library
    other than TRL and verl; TypeError for something that is no configuration at all.

    >>> read_configuration("loss_type: dr_grpo\\nbeta: 0.0").words
    {'loss_type': 'dr_grpo', 'beta': 0.0}
    """
    if isinstance(source, str):
        return _from_text(source)
    if isinstance(source, Mapping):
        return _from_mapping(source, "a mapping")
    if is_dataclass(source) and not isinstance(source, type):
        return _from_object(source)
    raise TypeError(
        f"a configuration is text, a mapping or a config object, got a "
        f"{type(source).__name__}; pass the text of the file, not its path."
    )


def _from_text(text: str) -> Configuration:
    if len(text) > LONGEST:
        raise ValueError(
            f"the text has {len(text):,} characters and a configuration at most "
            f"{LONGEST:,}; pass the file that holds the training arguments."
        )
    if "\0" in text:
        raise ValueError(
            "the text holds NUL characters, so it is not a configuration; "
            "pass a Python, YAML, JSON or shell file."
        )
    if not text.strip():
        raise ValueError(f"the configuration is empty; looked for {LOOKED_FOR}.")
    source = _notebook_source(text) or _fenced(text) or text
    if has_python_config(source):
        kind, words, skipped, where = read_python(source)
        return _trl(kind, words, where, skipped)
    if VERL_HINT.search(text):
        words, skipped, notes = read_overrides(text)
        if words or skipped:
            return _verl(words, "the hydra arguments of a shell script", skipped, notes)
    if any(flag.replace("-", "_") in _trl_words() for flag in FLAG.findall(text)):
        _refuse_others(text)
        words, skipped, notes = read_flags(text)
        kind = "RLOOConfig" if re.search(r"\brloo\b", text) else _kind(words)
        return _trl(kind, words, "the --word value arguments of a command", skipped, notes)
    if _looks_like_python(text):
        try:
            _, words, skipped, where = read_python(text)
        except ValueError:
            raise _unknown(text) from None
        if set(words) & set(TRL_DEFAULTS):
            return _trl(_kind(words), words, where, skipped)
        raise _unknown(text)
    loaded = _load(text)
    if not isinstance(loaded, Mapping):
        raise _unknown(text)
    return _from_mapping(loaded, "JSON" if text.lstrip().startswith("{") else "YAML", text)


def _from_object(config: Any) -> Configuration:
    names = [c.__name__ for c in type(config).__mro__]
    # GMPOConfig is a GRPOConfig, so the most specific name comes first
    kind = next((name for name in names if name in CONFIGS), None)
    words = {
        f.name: value
        for f in fields(config)
        if (value := getattr(config, f.name, f.default)) != f.default
    }
    where = f"a {type(config).__name__} object"
    if kind is not None:
        return _trl(kind, words, where)
    if any(name in ("ActorConfig", "AlgoConfig") for name in names):
        inner = getattr(config, "policy_loss", None) if "policy_loss" in words else None
        policy = fields(inner) if is_dataclass(inner) and not isinstance(inner, type) else ()
        flat = {f"{POLICY}{f.name}": getattr(inner, f.name) for f in policy}
        home = ACTOR if "ActorConfig" in names else ALGORITHM
        return _verl({**{home + k: v for k, v in words.items()}, **flat}, where)
    raise ValueError(
        f"{type(config).__name__} is not a configuration this reads; looked for "
        "TRL's GRPOConfig, RLOOConfig, GMPOConfig or verl's ActorConfig, AlgoConfig."
    )


def _from_mapping(mapping: Mapping, where: str, text: str = "") -> Configuration:
    flat = _flatten(mapping)
    top = {str(key).split(".")[0] for key in mapping}
    if top & {"actor_rollout_ref", "actor", "algorithm"}:
        return _verl(
            {f"actor_rollout_ref.{k}" if k.startswith("actor.") else k: v for k, v in flat.items()},
            where,
        )
    trl, verl = len(top & _trl_words()), len(top & _verl_words())
    if max(trl, verl) == 0 or not top & {*TRL_DEFAULTS, *VERL_DEFAULTS}:
        raise _unknown(text or ", ".join(sorted(top)[:5]))
    if verl > trl:
        return _verl({HOMES.get(k, "") + k: v for k, v in flat.items()}, where)
    words = {str(k): v for k, v in mapping.items()}
    kind = f"{str(words.get('trainer')).upper()}Config"  # a word of to_trl
    if kind in CONFIGS:
        del words["trainer"]
    return _trl(kind if kind in CONFIGS else _kind(words), words, where)


def _trl(
    kind: str, words: Mapping[str, Any], where: str, skipped: Pairs = (), notes: Sequence[str] = ()
) -> Configuration:
    return Configuration("trl", kind, _plain(words), where, tuple(skipped), (), tuple(notes))


def _verl(
    paths: Mapping[str, Any], where: str, skipped: Pairs = (), notes: Sequence[str] = ()
) -> Configuration:
    words, misplaced = {}, []
    for path, value in paths.items():
        home, _, leaf = path.rpartition(".")
        right = HOMES.get(leaf)
        if right is None or right == home + ".":
            words[_short(path)] = value
        elif path.startswith((ACTOR, ALGORITHM)) and home + "." in (
            ACTOR,
            POLICY,
            ALGORITHM,
            KL_CTRL,
        ):
            misplaced.append((path, right + leaf))
        else:
            words[path] = value
    unread = tuple((_short(path), value) for path, value in skipped)
    return Configuration(
        "verl", "verl", _plain(words), where, unread, tuple(misplaced), tuple(notes)
    )


def _short(path: str) -> str:
    """verl's word without the path, where the path adds nothing."""
    home, _, leaf = path.rpartition(".")
    if HOMES.get(leaf) == home + ".":
        return leaf
    if home + "." in (ACTOR, POLICY, ALGORITHM):
        return leaf
    short = path.removeprefix("actor_rollout_ref.").removeprefix("algorithm.")
    return short if "." in short else path


def _plain(words: Mapping[str, Any]) -> dict[str, Any]:
    """Words with numbers written as text made numbers; refuses nan and infinity."""
    plain = {}
    for word, value in words.items():
        value = scalar(value) if isinstance(value, str) else value
        if isinstance(value, float) and not math.isfinite(value):
            raise ValueError(
                f"{word} is {value}, expected a finite number; write the value the run should use."
            )
        plain[str(word)] = value
    return plain


def _flatten(mapping: Mapping) -> dict[str, Any]:
    """Nested mappings to dotted paths. Bounded, because YAML and callers can nest anything."""
    flat: dict[str, Any] = {}
    queue: list[tuple[str, Any, int]] = [("", mapping, 0)]
    seen = 0
    while queue:
        path, value, deep = queue.pop(0)
        seen += 1
        if seen > WIDEST or deep > DEEPEST:
            raise ValueError(
                f"the mapping has more than {WIDEST:,} values or {DEEPEST} levels, "
                "which no configuration has; pass the part with the training words."
            )
        if isinstance(value, Mapping):
            queue += [(f"{path}.{k}" if path else str(k), v, deep + 1) for k, v in value.items()]
        else:
            flat[path] = value
    return flat


def _load(text: str) -> Any:
    if text.lstrip().startswith("{"):
        try:
            return json.loads(text)
        except RecursionError:
            raise ValueError("the JSON is nested too deeply to be a configuration.") from None
        except ValueError as error:
            if not text.lstrip().startswith("{}"):
                place = (
                    f"line {error.lineno}: {error.msg}"
                    if isinstance(error, json.JSONDecodeError)
                    else str(error)
                )
                raise ValueError(f"the JSON does not parse: {place}.") from None
    try:
        import yaml
    except ImportError:
        raise ValueError(
            "reading YAML needs pyyaml, which is not installed; pip install pyyaml, "
            "or pass the words as JSON."
        ) from None
    try:
        deep = 0
        for event in yaml.parse(text, Loader=yaml.SafeLoader):
            if isinstance(event, yaml.AliasEvent):
                raise ValueError(
                    "the YAML uses an alias (*name), which can unfold to any size; "
                    "write the value out."
                )
            deep += isinstance(event, yaml.CollectionStartEvent)
            deep -= isinstance(event, yaml.CollectionEndEvent)
            if deep > DEEPEST:
                raise ValueError(
                    f"the YAML is nested deeper than {DEEPEST} levels, which no configuration is."
                )
        return yaml.safe_load(text)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        place = f"line {mark.line + 1}: " if mark else ""
        problem = getattr(error, "problem", None) or str(error).splitlines()[0]
        raise ValueError(
            f"the text is neither Python, JSON, a command nor YAML: {place}"
            f"{problem}; looked for {LOOKED_FOR}."
        ) from None


def _notebook_source(text: str) -> str | None:
    """The code of a notebook's cells, or None for anything else."""
    if not (text.lstrip().startswith("{") and '"cell_type"' in text):
        return None
    try:
        cells = json.loads(text)["cells"]
        return "\n".join("".join(c["source"]) for c in cells if c.get("cell_type") == "code")
    except (ValueError, RecursionError, KeyError, TypeError, AttributeError):
        return None


def _fenced(text: str) -> str | None:
    """The first fenced block of a Markdown page that builds a configuration."""
    blocks = re.findall(r"^```\w*\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    return next((block for block in blocks if has_python_config(block)), None)


def _looks_like_python(text: str) -> bool:
    return re.search(r"^\s*[A-Za-z_][\w.]*\s*=(?!=)", text, re.MULTILINE) is not None


def _kind(words: Mapping[str, Any]) -> str:
    return (
        "RLOOConfig" if {"normalize_advantages", "reward_clip_range"} & set(words) else "GRPOConfig"
    )


def _trl_words() -> set[str]:
    return {*TRL_DEFAULTS, *TRL_SILENT}


def _verl_words() -> set[str]:
    return {*VERL_DEFAULTS, *VERL_SILENT, *HOMES}


def _refuse_others(text: str) -> None:
    for sign, name in OTHERS.items():
        if sign in text:
            raise ValueError(
                f"this is a command of {name}, whose words mean other things; only "
                "TRL's and verl's are read."
            )


def _unknown(text: str) -> ValueError:
    _refuse_others(text)
    shown = " ".join(text.split())[:40]
    return ValueError(
        f"this is no configuration of TRL or verl (it starts with {shown!r}); looked "
        f"for {LOOKED_FOR}."
    )
