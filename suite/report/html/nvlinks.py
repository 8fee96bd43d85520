"""NVLinks in the picture of the machine: a line at the right of the GPUs that they join, one for each set of GPUs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from suite.records.machine import GpuPair, Machine
from suite.report.html import svg
from suite.report.tables.machine import bond

LANE = 14  # between two lines
_MOST_KINDS = 2  # that fit into a row
_NAME = 230  # room for the words at the right of the lines


@dataclass(frozen=True)
class Joined:
    """GPUs (NVML indices) that NVLinks join, directly or over one another; words: the links between two, by kinds."""

    gpus: tuple[int, ...]
    words: tuple[str, ...]


def joined(machine: Machine) -> list[Joined]:
    """Each set of GPUs that NVLinks join, by its lowest GPU."""
    sets: list[list[GpuPair]] = []
    there = {gpu.index for gpu in machine.gpus}
    for pair in (pair for pair in machine.pairs if pair.nvlinks and {pair.first, pair.second} <= there):
        near = [known for known in sets if _gpus([pair]) & _gpus(known)]
        sets = [known for known in sets if known not in near]
        sets.append([*(one for known in near for one in known), pair])
    return sorted((_joined(machine, pairs) for pairs in sets), key=lambda one: one.gpus)


def room(machine: Machine) -> float:
    """How much wider the picture gets."""
    found = joined(machine)
    return _NAME + LANE * (len(found) + 1) if found else 0.0


def draw(machine: Machine, middles: dict[int, float], right: float) -> Iterator[Markup]:
    """The lines. middles: of each GPU's box; right: the boxes' right edge."""
    found = joined(machine)
    end = right + LANE * (len(found) + 1)
    for lane, one in enumerate(found, 1):
        yield _line(one, [middles[gpu] for gpu in one.gpus], right, right + LANE * lane)
        top = min(middles[gpu] for gpu in one.gpus)
        yield svg.text(end, top - 3, "NVLink", class_="name")
        for row, words in enumerate(one.words):
            yield svg.text(end, top + 12 * (row + 1), words, class_="small")


def _line(one: Joined, middles: Sequence[float], right: float, x: float) -> Markup:
    names = ", ".join(f"GPU{gpu}" for gpu in one.gpus)
    stubs = "".join(f"M{right:.0f} {y:.1f}H{x:.0f}" for y in middles)
    path = svg.tag("path", d=f"{stubs}M{x:.0f} {min(middles):.1f}V{max(middles):.1f}", class_="nvlink")
    return svg.tag("g", svg.tag("title", f"NVLink between {names}: {', '.join(one.words)}"), path)


def _joined(machine: Machine, pairs: Sequence[GpuPair]) -> Joined:
    gpus = tuple(sorted(_gpus(pairs)))
    kinds = sorted({bond(machine, pair) for pair in pairs})
    if len(kinds) > _MOST_KINDS:
        kinds = [f"{len(kinds)} kinds, see below"]
    every = len(pairs) == len(gpus) * (len(gpus) - 1) // 2
    return Joined(gpus, (*kinds, *(() if every else ("not between all of them",))))


def _gpus(pairs: Sequence[GpuPair]) -> set[int]:
    return {gpu for pair in pairs for gpu in (pair.first, pair.second)}
