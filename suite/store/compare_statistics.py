"""Is it a change, or noise? The unit is a run: rounds within a run share its boot, its buffers and its clocks.

Plain Python: with a handful of runs a side the exact rank interval is a few lines, and nothing has to be imported.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from statistics import median, quantiles, stdev
from typing import Literal

CONFIDENCE = 0.95
LEAST = 0.03  # below this nobody acts on a change of bandwidth
SPREADS = 2.0  # times the standard deviation of the baseline's per-run medians
# Too few runs for an interval: two runs of different boots differ by sqrt(2) × 1 % where boots differ by 1 %, and by
# more where a case has two modes; without a spread to look at the gate is wide.
ONE_RUN = 0.10
# The same for what processors and host memory alone decide, shared with whatever else the host runs: of two runs of one
# virtual machine, 45 s apart and of unlike effort, 8 of 73 such cases differed by more than 20 %, no case of a GPU by
# more than 6 % (docs/comparing.md). Up to ONE_RUN it is noise all the same.
ONE_RUN_HOST = 0.25
# Each side in one boot of its own: the boots may differ by sqrt(2) × 1 %, which no number of runs within them averages
# out. At 3 % one healthy case in thirty would be called (docs/comparing.md), at 5 % about one in two thousand.
ONE_BOOT_EACH = 0.05
FEW_ROUNDS = 3  # fewer have no median that resists one outlier

Direction = Literal["up", "down"]


@dataclass(frozen=True)
class Estimate:
    """after / before with its interval; low and high are None where there are too few runs for one."""

    ratio: float
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class Answer:
    """moved: None where nothing is called. doubtful: more than the gate, yet not enough runs to call it.
    gate: the least |ratio - 1| that counts. why: one sentence without a full stop."""

    estimate: Estimate
    moved: Direction | None
    doubtful: bool
    gate: float
    why: str


def compare(
    before: Sequence[float],
    after: Sequence[float],
    *,
    boot_each: bool = False,
    rounds: int = FEW_ROUNDS,
    one_run: float = ONE_RUN,
) -> Answer:
    """Per-run medians of one case on both sides, all above 0, at least one each.

    boot_each: every side was made in one boot, and these are two. rounds: the fewest rounds of any run. one_run: the
    gate where there are too few runs for an interval.
    """
    found = estimate(before, after)
    least, reason = gate(before, after, boot_each, one_run)
    effect = found.ratio - 1
    said = f"{_signed(effect)}, gate {_percent(least)} ({reason})"
    if abs(effect) <= _unsure(before, least, found, one_run):
        return Answer(found, None, False, least, f"no change beyond noise: {said}")
    doubt = _doubt(before, after, found, rounds, abs(effect) > least)
    if doubt:
        return Answer(found, None, True, least, f"{doubt}: {said}")
    return Answer(found, "up" if effect > 0 else "down", False, least, said)


def repeats(ratio: float, gate: float, before: Sequence[float], again: Sequence[float]) -> bool:
    """Whether a called change shows once more: the further runs, by themselves, are off the same way by at least half
    of the gate. The whole gate would lose one true change in twenty that lies near it."""
    new = median(again) / median(before)
    return (new > 1) == (ratio > 1) and abs(new - 1) >= gate / 2


def estimate(before: Sequence[float], after: Sequence[float]) -> Estimate:
    """Hodges–Lehmann: the median of all pairwise ratios; its interval by the exact distribution of the rank sum
    (Hollander, Wolfe and Chicken, Nonparametric Statistical Methods, section 4.3). Four runs a side have one."""
    logs = sorted(math.log(a / b) for a in after for b in before)
    ratio = math.exp(median(logs))
    cut = _outside(len(before), len(after))
    if not cut:
        return Estimate(ratio)
    return Estimate(ratio, math.exp(logs[cut - 1]), math.exp(logs[-cut]))


def gate(
    before: Sequence[float], after: Sequence[float], boot_each: bool = False, one_run: float = ONE_RUN
) -> tuple[float, str]:
    """The least |ratio - 1| that is called, and where it comes from."""
    least, reason = _least(len(before), len(after), boot_each, one_run)
    noise = SPREADS * spread(before)
    return (noise, "twice the spread of the runs before") if noise > least else (least, reason)


def spread(values: Sequence[float]) -> float:
    """Standard deviation of per-run medians, relative; 0 with one run."""
    return stdev([math.log(value) for value in values]) if len(values) > 1 else 0.0


def rounds_spread(seconds: Sequence[float]) -> float:
    """Interquartile range of the rounds' times over their median; 0 with one round."""
    if len(seconds) < 2:
        return 0.0
    low, middle, high = quantiles(seconds, n=4, method="inclusive")
    return (high - low) / middle


def tail(seconds: Sequence[float]) -> float:
    """The 90th percentile of the rounds' times over their median: how much worse the slow rounds of a run are."""
    if len(seconds) < 2:
        return 1.0
    return quantiles(seconds, n=10, method="inclusive")[-1] / median(seconds)


def _least(before: int, after: int, boot_each: bool, one_run: float) -> tuple[float, str]:
    if min(before, after) == 1:
        return one_run, "one run a side" if before == after else "one run on one side"
    if not _outside(before, after):
        return one_run, "too few runs for an interval"
    return (ONE_BOOT_EACH, "each side is of one boot") if boot_each else (LEAST, "the least that is called")


def _unsure(before: Sequence[float], least: float, found: Estimate, one_run: float) -> float:
    """Up to here it is noise. Between it and the gate a difference is doubtful: too few runs, or runs that vary so much
    that even a large one hides in them."""
    floor = LEAST if one_run <= ONE_RUN else ONE_RUN
    smallest = least if found.low is not None else max(floor, SPREADS * spread(before))
    return min(least, smallest, ONE_RUN)


def _doubt(before: Sequence[float], after: Sequence[float], found: Estimate, rounds: int, above: bool) -> str | None:
    """Why a difference cannot be called; None where it can."""
    if found.low is not None and found.high is not None:
        if found.low <= 1 <= found.high:
            return "the runs of both sides overlap, take more of them"
        return None if above else "the runs before vary too much to tell, stop other load and repeat"
    if rounds < FEW_ROUNDS:
        return f"runs of fewer than {FEW_ROUNDS} rounds, repeat with more"
    if not above:
        return "too few runs to tell, take four a side"
    apart = max(before) < min(after) or max(after) < min(before)
    return None if apart else "the runs of both sides overlap, take four a side"


@lru_cache(maxsize=256)
def _outside(before: int, after: int) -> int:
    """How many of the sorted pairwise ratios lie below (and above) the interval; 0 where there is no interval."""
    if min(before, after) < 2:  # a single run has no spread of its own, however many stand against it
        return 0
    arrangements = math.comb(before + after, before)
    reached, outside = 0, 0
    for count in _rank_sums(before, after):
        reached += count
        if reached > (1 - CONFIDENCE) / 2 * arrangements:
            break
        outside += 1
    return outside


def _rank_sums(before: int, after: int) -> list[int]:
    """How many of all orders of the runs have 0, 1, 2, … pairs in which the later side is the greater one: the
    coefficients of the Gaussian binomial, product of (1 - x^(after+i)) / (1 - x^i) for i = 1 … before."""
    counts = [1] + [0] * (before * after)
    for i in range(1, before + 1):
        for place in range(len(counts) - 1, after + i - 1, -1):
            counts[place] -= counts[place - after - i]
        for place in range(i, len(counts)):
            counts[place] += counts[place - i]
    return counts


def _percent(fraction: float) -> str:
    return f"{fraction * 100:.3g} %"


def _signed(effect: float) -> str:
    return f"{'+' if effect >= 0 else '−'}{abs(effect) * 100:.1f} %"
