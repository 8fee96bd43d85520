"""One case over the runs of both sides: its per-run medians, its failures, and what is called of them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from statistics import median

from suite.records.case import COLLECTIVES, LATENCIES
from suite.records.comparison import Call, Change, Missing, Quantity
from suite.records.run import Result, Run
from suite.store import compare_statistics as statistics
from suite.store.compare_statistics import Answer
from suite.units import MIB, format_bytes

# Below it a collective's start outweighs its bytes: 12 to 25 µs over PCIe, while 1 MiB takes 21 µs at 50 GB/s.
SMALL_MESSAGE = MIB
# Bytes per second, and seconds: what lies outside was not measured but written by hand.
_POSSIBLE: dict[Quantity, tuple[float, float]] = {"bandwidth": (1.0, 1e15), "latency": (1e-12, 1e6)}


# A change within so many spreads of a single run's rounds is not told from them.
_SPREADS = 2.0


@dataclass
class Cases:
    """One case in the runs of one side. values, tails: a median and a tail a run that has them (bytes/s or seconds).
    broken: verdict causes of runs in which it failed without samples that count. last: the newest result. sizes: bytes
    of what was measured. others: runs that measured something else under this name, left out. spread: of the rounds
    of the run in which they differ most, interquartile range over median."""

    last: Result
    quantity: Quantity
    values: list[float] = field(default_factory=list)
    tails: list[float] = field(default_factory=list)
    broken: list[str] = field(default_factory=list)
    rounds: int = 1 << 30
    sizes: set[int] = field(default_factory=set)
    others: int = 0
    spread: float = 0.0


def collect(runs: Sequence[Run]) -> dict[str, Cases]:
    """Every case of some runs by name, in the order of the newest run."""
    found: dict[str, Cases] = {}
    for run in reversed(runs):
        for result in run.results:
            known = found.setdefault(result.case, Cases(result, quantity(result)))
            _add(known, result)
    for known in found.values():
        known.values.reverse()
        known.tails.reverse()
    return found


def of_result(result: Result) -> Cases:
    """One case of a run that is not over yet."""
    known = Cases(result, quantity(result))
    _add(known, result)
    return known


def quantity(result: Result) -> Quantity:
    """What counts in a case: small messages of a collective cost latency, not bandwidth."""
    small = result.operation in COLLECTIVES and result.bytes < SMALL_MESSAGE
    return "latency" if result.operation in LATENCIES or small else "bandwidth"


def comparable(before: Cases, after: Cases) -> bool:
    """Both sides have numbers of the same thing, or one of them failed where the other one did not."""
    if not _same_thing(before.last, after.last):
        return False
    return bool((before.values or before.broken) and (after.values or after.broken) and (before.values or after.values))


def missing(before: Cases, after: Cases) -> Missing:
    """Why two cases of one name cannot be compared."""
    if before.values and after.values:
        return Missing(after.last.case, "both", "the two sides measured different things under this name")
    if before.values:
        return Missing(after.last.case, "before", f"{_state(after.last)} in the runs after")
    return Missing(after.last.case, "after", f"{_state(before.last)} in the runs before")


def change(before: Cases, after: Cases, *, boot_each: bool = False) -> Change:
    """What is called of a case with numbers, or a failure, on both sides."""
    base = _described(before, after)
    if after.broken and not before.broken:
        share = f"{len(after.broken)} of {len(after.broken) + len(after.values)} runs"
        return replace(base, call="worse", why=f"{_words(after.broken)} in {share} after, in none before")
    if not before.values:
        return replace(base, call="better", why=f"{_words(before.broken)} before, measured after")
    if not after.values:
        return replace(base, call="same", why=f"{_words(after.broken)} on both sides")
    rounds = min(before.rounds, after.rounds)
    gate = _one_run(after.last)
    answer = statistics.compare(before.values, after.values, boot_each=boot_each, rounds=rounds, one_run=gate)
    found = _steady(_answered(base, answer), before, after)
    return replace(found, why="; ".join([found.why, *_caveats(before, after)]))


def _one_run(result: Result) -> float:
    """The gate of too few runs: what processors and host memory alone decide varies with the host's other load."""
    host = not result.gpus and result.operation in ("host_memory_copy", *COLLECTIVES)
    return statistics.ONE_RUN_HOST if host else statistics.ONE_RUN


def _steady(change: Change, before: Cases, after: Cases) -> Change:
    """One run a side stands for its own spread alone: a change within it is not called."""
    spread = max(before.spread, after.spread)
    if change.call not in ("worse", "better") or min(len(before.values), len(after.values)) > 1:
        return change
    if spread <= statistics.ONE_RUN or abs(math.log(change.ratio or 1.0)) > _SPREADS * spread:
        return change
    why = f"the rounds of one run differ by {spread * 100:.0f} %, too much to tell, repeat: {change.why}"
    return replace(change, call="inconclusive", why=why)


def confirmed(change: Change, before: Cases, again: Cases | None) -> Change:
    """A called change beside a further set of runs: it stays called only where they show it too."""
    if again is None or not (again.values or again.broken):
        return replace(change, repeated=None, why=f"{change.why}; not measured again")
    if change.ratio is None or not again.values or not before.values:
        same = bool(again.broken) == (change.call == "worse")
    else:
        same = statistics.repeats(change.ratio, change.gate or 0.0, before.values, again.values)
    if same:
        return replace(change, repeated=True, why=f"{change.why}; measured again, the same")
    return replace(change, call="inconclusive", repeated=False, why=f"{change.why}; measured again, it did not repeat")


def better_or_worse(quantity: Quantity, answer: Answer) -> Call:
    """Which way a quantity counts: more bandwidth is better, more latency is worse."""
    if answer.moved is None:
        return "inconclusive" if answer.doubtful else "same"
    return "better" if (answer.moved == "up") == (quantity == "bandwidth") else "worse"


def _add(known: Cases, result: Result) -> None:
    value = _value(result, known.quantity)
    if value is not None and not _same_thing(known.last, result):
        known.others += 1
    elif value is not None:
        known.values.append(value)
        known.sizes.add(result.bytes)
        factor = statistics.tail(result.samples_s)
        known.tails.append(value / factor if known.quantity == "bandwidth" else value * factor)
        known.rounds = min(known.rounds, len(result.samples_s))
        known.spread = max(known.spread, statistics.rounds_spread(result.samples_s))
    elif result.verdict is not None and result.verdict.status == "FAIL":
        known.broken.append(result.verdict.cause)


def _value(result: Result, wanted: Quantity) -> float | None:
    """The median of one run; None where there is none, or where it is of wrong bytes."""
    if result.error is not None or result.verified is False or not result.samples_s or min(result.samples_s) <= 0:
        return None
    value = result.bandwidth if wanted == "bandwidth" else result.latency_s
    least, most = _POSSIBLE[wanted]
    return value if value is not None and least <= value <= most else None


def _caveats(before: Cases, after: Cases) -> Iterator[str]:
    if before.last.threads != after.last.threads:
        yield f"copied by {before.last.threads} threads before, {after.last.threads} after"
    sizes = before.sizes | after.sizes
    if len(sizes) > 1:
        yield f"of different sizes ({', '.join(map(format_bytes, sorted(sizes)))})"
    left_out = before.others + after.others
    if left_out:
        yield f"{left_out} run{'s' if left_out > 1 else ''} of another size or path left out"


def _same_thing(one: Result, other: Result) -> bool:
    """A failed or unavailable case may not know its size: only what both know must agree. Host memory's size follows
    from the memory that is free, past the caches: its bandwidth does not hang on it."""
    free = "host_memory_copy" in (one.operation, other.operation)
    sizes = one.bytes == other.bytes or not one.bytes or not other.bytes or free
    return sizes and one.operation == other.operation and one.gpus == other.gpus


def _answered(base: Change, answer: Answer) -> Change:
    found = answer.estimate
    return replace(
        base,
        call=better_or_worse(base.quantity, answer),
        why=answer.why,
        ratio=found.ratio,
        low=found.low,
        high=found.high,
        gate=answer.gate,
    )


def _described(before: Cases, after: Cases) -> Change:
    """Everything but the call."""
    old, new = before.last, after.last
    return Change(
        case=new.case,
        operation=new.operation,
        bytes=new.bytes or old.bytes,
        gpus=new.gpus or old.gpus,
        quantity=after.quantity if after.values else before.quantity,
        call="same",
        why="",
        before=median(before.values) if before.values else None,
        after=median(after.values) if after.values else None,
        tail_before=median(before.tails) if before.tails else None,
        tail_after=median(after.tails) if after.tails else None,
        runs_before=len(before.values),
        runs_after=len(after.values),
        limit=new.limits.now if new.limits else None,
        limit_before=old.limits.now if old.limits else None,
        status_before=old.verdict.status if old.verdict else None,
        status_after=new.verdict.status if new.verdict else None,
        cause_before=old.verdict.cause if old.verdict else None,
        cause_after=new.verdict.cause if new.verdict else None,
    )


def _words(causes: Sequence[str]) -> str:
    return ", ".join(dict.fromkeys(cause.replace("_", " ") for cause in causes))


def _state(result: Result) -> str:
    """What became of a case that has no numbers, in the catalogue's words."""
    return result.verdict.cause.replace("_", " ") if result.verdict else "no numbers"
