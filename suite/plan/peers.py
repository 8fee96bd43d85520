"""Pairs of GPUs: what they are alike in, and which pair stands for which where not all of them are swept."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from statistics import median

from suite.plan import axes
from suite.records.machine import Machine
from suite.records.run import STATUSES, Result, Settings, Status

Pair = tuple[int, int]
Kind = tuple[object, ...]
_Way = tuple[object, ...]

# A pair whose copy differs by more from the median of its class is looked at more closely. Chosen by lanecheck: equal
# paths differ by a few percent.
APART = 0.15
# In quick, of the pairs that disagree with their class this many are swept: a broken driver makes all of them disagree.
MOST_SWEPT = 4


def couples(machine: Machine, settings: Settings) -> list[Pair]:
    """Every two GPUs to measure, once."""
    found = [gpu.index for gpu in axes.gpus(machine, settings)]
    return [(a, b) for place, a in enumerate(found) for b in found[place + 1 :]]


def kind(machine: Machine, couple: Pair) -> Kind:
    """What pairs of one class agree in: NVLinks, or else topology; the driver's answers about P2P; the GPUs' models."""
    names = sorted(gpu.name for index in couple if (gpu := machine.gpu(index)))
    pair = machine.pair(*couple)
    if pair is None:
        return tuple(names)
    return (pair.nvlinks or pair.topology or pair.topology_nvml, pair.p2p_read, pair.p2p_write, *names)


def possible(machine: Machine, gpus: Sequence[int]) -> bool:
    """The driver denies no two of these GPUs access to each other's memory; where it did not answer it is tried."""
    pairs = [machine.pair(a, b) for a in gpus for b in gpus if a < b]
    return all(status in (None, "OK") for pair in pairs if pair for status in (pair.p2p_read, pair.p2p_write))


def given_up(so_far: Iterable[Result], gpus: Sequence[int], p2p: bool | None) -> str | None:
    """Why peer traffic among these GPUs is not tried again: a case of two of them hung or broke its worker. None: it
    may be tried."""
    if p2p is False:
        return None
    for one in so_far:
        two = one.group == "peer_copy" and len(one.gpus) == 2 and set(one.gpus) <= set(gpus)
        if two and one.p2p is not False and one.error is not None and one.error.kind in ("hang", "crash"):
            return f"not tried again after {one.case} ({one.error.kind})"
    return None


class Representatives:
    """Which pair is swept for which. It follows the results: pairs that disagree with their class are swept too."""

    def __init__(self, machine: Machine, settings: Settings) -> None:
        self._classes: dict[Kind, list[Pair]] = {}
        for couple in couples(machine, settings):
            self._classes.setdefault(kind(machine, couple), []).append(couple)
        self._seen = 0
        self._copies: dict[Pair, dict[_Way, Result]] = {}
        self._stands: dict[Pair, Pair] = {}
        self._apart: set[Pair] = set()
        self._settle()

    def instead_of(self, pair: Pair, so_far: Sequence[Result]) -> Pair | None:
        """The pair that is measured instead of this one; None where this one is measured itself."""
        self._learn(so_far)
        couple = (min(pair), max(pair))
        stand = self._stands.get(couple, couple)
        if stand != couple:
            return stand
        return None if pair == couple or couple in self._apart else couple

    def _learn(self, so_far: Sequence[Result]) -> None:
        new = [r for r in so_far[self._seen :] if r.group == "peer_copy" and r.operation in ("peer_write", "peer_read")]
        self._seen = len(so_far)
        known = len(self._copies), sum(map(len, self._copies.values()))
        for one in new:
            if len(one.gpus) == 2 and one.verdict is not None and one.represented_by is None:
                copies = self._copies.setdefault((min(one.gpus), max(one.gpus)), {})
                copies.setdefault((one.operation, one.p2p, one.gpus[0] < one.gpus[1]), one)
        if known != (len(self._copies), sum(map(len, self._copies.values()))):
            self._settle()

    def _settle(self) -> None:
        self._stands, self._apart = {}, set()
        for members in self._classes.values():
            apart = self._disagreeing(members)
            agreeing = [couple for couple in members if couple not in apart]
            looked_at = self._telling(apart)
            swept = agreeing[:1] + looked_at
            self._apart.update(apart)
            for couple in members:
                others = [o for o in looked_at if self._causes(o) == self._causes(couple)] if couple in apart else swept
                self._stands[couple] = couple if couple in swept else (others or looked_at)[0]

    def _telling(self, apart: Sequence[Pair]) -> list[Pair]:
        """Couples to sweep of those that disagree: the first of each kind of trouble before the second of any."""
        seen: Counter[Kind] = Counter()
        turns = []
        for couple in apart:
            turns.append((seen[self._causes(couple)], couple))
            seen[self._causes(couple)] += 1
        return sorted(couple for _, couple in sorted(turns)[:MOST_SWEPT])

    def _causes(self, couple: Pair) -> Kind:
        copies = self._copies.get(couple, {}).values()
        return tuple(sorted({one.verdict.cause for one in copies if one.verdict}))

    def _disagreeing(self, members: Sequence[Pair]) -> list[Pair]:
        """Couples of a class with a copy whose status or bandwidth is not the usual one."""
        ways = {way for couple in members for way in self._copies.get(couple, {})}
        found: set[Pair] = set()
        for operation, p2p in {(way[0], way[1]) for way in ways}:
            copies = [
                (couple, one)
                for couple in members
                for way, one in self._copies.get(couple, {}).items()
                if way[:2] == (operation, p2p)
            ]
            usual = _usual(one for _, one in copies)
            found.update(couple for couple, one in copies if not _like(one, *usual))
        return [couple for couple in members if couple in found]


def _usual(copies: Iterable[Result]) -> tuple[Status | None, float | None]:
    """The most common status, of equally common ones the better, and the median bandwidth."""
    found = list(copies)
    counted = Counter(_status(one) for one in found)
    status = max(counted, key=lambda s: (counted[s], STATUSES.index(s) if s else -1)) if counted else None
    rates = [one.bandwidth for one in found if one.bandwidth is not None]
    return status, median(rates) if rates else None


def _like(one: Result, status: Status | None, rate: float | None) -> bool:
    if _status(one) != status:
        return False
    return rate is None or one.bandwidth is None or abs(one.bandwidth - rate) <= APART * rate


def _status(one: Result) -> Status | None:
    return one.verdict.status if one.verdict else None
