"""How many of N GPUs should write and how many train? A model, not a measurement.

Writing is limited by bytes: a GPU with k answers in flight makes a token of each in
`load` + k `each` seconds, the first for reading the weights, the second for one answer's cache and
products. Training is limited by products: `train` seconds a token on one GPU. The longest answer
takes `longest` tokens. Everything else (network, verifier, start-up, moving weights) is left out,
so real systems are slower, and more so the larger they are.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Rates", "Split", "asynchronous", "best_split", "synchronous"]


@dataclass(frozen=True)
class Rates:
    """Seconds, as above, and the tokens of an answer: mean and longest."""

    load: float
    each: float
    train: float
    mean: float
    longest: float


@dataclass(frozen=True)
class Split:
    """writers of N GPUs; seconds a step; age: mean number of versions, by open answers / batch;
    in_flight: answers on one writing GPU."""

    writers: int
    seconds: float
    age: float
    in_flight: float


def synchronous(rates: Rates, gpus: int, batch: int) -> Split:
    """All GPUs write, wait for the longest answer, then all train."""
    if gpus < 1 or batch < 1:
        raise ValueError(f"gpus and batch must be 1 or more, got {gpus} and {batch}.")
    flight = max(1.0, batch / gpus)
    # the batch at full width, then the last answers nearly alone
    writing = rates.mean * (rates.load + flight * rates.each)
    writing += (rates.longest - rates.mean) * (rates.load + rates.each)
    return Split(gpus, writing + batch * rates.mean * rates.train / gpus, 0.0, flight)


def asynchronous(rates: Rates, gpus: int, batch: int, writers: int, in_flight: float = 64) -> Split:
    """`writers` GPUs always hold `in_flight` answers each, the others train.

    Raises ValueError unless at least one GPU writes and one trains.
    """
    if not 0 < writers < gpus or batch < 1 or in_flight <= 0:
        raise ValueError(
            f"writers must be 1 to gpus - 1 = {gpus - 1} and batch and in_flight above 0; got "
            f"{writers}, {batch} and {in_flight}."
        )
    token = rates.load + in_flight * rates.each
    per_second = writers * in_flight / token
    writing = batch * rates.mean / per_second
    training = batch * rates.mean * rates.train / (gpus - writers)
    return Split(writers, max(writing, training), writers * in_flight / batch, in_flight)


def best_split(rates: Rates, gpus: int, batch: int, oldest: float = float("inf")) -> Split:
    """The fastest split whose mean age is at most `oldest`, over writers and answers in flight."""
    found: Split | None = None
    shares = sorted({max(1, min(gpus - 1, round(gpus * k / 64))) for k in range(1, 64)})
    for writers in shares:
        for flight in (1, 2, 4, 8, 16, 32, 64, 128, 256):
            one = asynchronous(rates, gpus, batch, writers, flight)
            if one.age <= oldest and (found is None or one.seconds < found.seconds):
                found = one
    if found is None:
        raise ValueError(f"no split of {gpus} GPUs keeps the mean age at {oldest} or below.")
    return found
