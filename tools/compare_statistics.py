"""How often `lanecheck compare` calls a change that is none, and how often it finds one that is.

A seeded simulation of the real rule (suite.store.compare_statistics) on made-up runs, with naive tests beside it.
The table of docs/comparing.md is its output: `python tools/compare_statistics.py`.
"""

from __future__ import annotations

import argparse
import math
import random
from collections.abc import Callable
from dataclasses import dataclass
from statistics import fmean, median, stdev

from suite.store.compare_statistics import compare, repeats

ROUNDS = 5
ROUND_CV = 0.005
BOOT_CV = 0.01
# Three repeats of allreduce, 16 to 128 MiB, two ranks on one RTX 5090 over sockets: the standard deviation of
# the times' logarithms with NCCL's default threads and with four socket threads, root mean square over the sizes.
# Source: github.com/eunomia-bpf/nccl-eBPF, docs/tmp/socket-thread-validation.md.
NCCL_A, NCCL_B = 0.0077, 0.070
Side = list[list[float]]  # runs of rounds


@dataclass(frozen=True)
class World:
    """How a case's numbers come about. levels: a run is at one of these, each with a probability (bimodal cases).
    one_boot: all runs of a side share its boot."""

    name: str
    round_cv: float = ROUND_CV
    boot_cv: float = BOOT_CV
    levels: tuple[tuple[float, float], ...] = ((1.0, 1.0),)
    one_boot: bool = False


WORLDS = (
    World("steady"),
    World("one boot a side", one_boot=True),
    World("bimodal: 30 % of runs 15 % lower", levels=((1.0, 0.7), (0.85, 0.3))),
    World("as repeated nccl-tests", boot_cv=NCCL_A),
    World("as repeated nccl-tests, socket threads", boot_cv=NCCL_B),
)
Test = Callable[[World, Side, Side, Side], bool]


def side(world: World, chance: random.Random, runs: int, rounds: int, factor: float = 1.0) -> Side:
    """The bandwidths of one side: runs of rounds."""
    boot = chance.gauss(0, world.boot_cv)
    made = []
    for _ in range(runs):
        if not world.one_boot:
            boot = chance.gauss(0, world.boot_cv)
        (level,) = chance.choices([v for v, _ in world.levels], [p for _, p in world.levels])
        made.append([factor * level * math.exp(boot + chance.gauss(0, world.round_cv)) for _ in range(rounds)])
    return made


def ours(world: World, before: Side, after: Side, _again: Side) -> bool:
    """What `lanecheck compare` calls."""
    return compare(*map(medians, (before, after)), boot_each=world.one_boot).moved is not None


def repeated(world: World, before: Side, after: Side, again: Side) -> bool:
    """The same, where it must show in one further run too."""
    answer = compare(*map(medians, (before, after)), boot_each=world.one_boot)
    return answer.moved is not None and repeats(answer.estimate.ratio, answer.gate, medians(before), medians(again))


def t_test(_world: World, before: Side, after: Side, _again: Side) -> bool:
    """Naive: Welch's test over the rounds as if they were independent, at 5 %."""
    old, new = flat(before), flat(after)
    error = math.sqrt(stdev(old) ** 2 / len(old) + stdev(new) ** 2 / len(new))
    return abs(fmean(new) - fmean(old)) > _t(len(old) + len(new) - 2) * error


def apart(_world: World, before: Side, after: Side, _again: Side) -> bool:
    """Naive: no round of one side reaches any round of the other one."""
    old, new = flat(before), flat(after)
    return max(old) < min(new) or max(new) < min(old)


def gate(_world: World, before: Side, after: Side, _again: Side) -> bool:
    """Naive: the medians of all rounds differ by more than 2 %."""
    return abs(median(flat(after)) / median(flat(before)) - 1) > 0.02


def medians(runs: Side) -> list[float]:
    """One value a run."""
    return [median(run) for run in runs]


def flat(runs: Side) -> list[float]:
    """All rounds of all runs."""
    return [value for run in runs for value in run]


def _t(degrees: int) -> float:
    """Student's t at 97.5 %, by the expansion in 1/degrees (Abramowitz and Stegun 26.7.5); within 0.01 from 8 on."""
    z = 1.959964
    return z + (z**3 + z) / (4 * degrees) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * degrees**2)


def rate(world: World, test: Test, runs: int, chance: random.Random, trials: int, factor: float) -> float:
    """How often a test calls a change of this factor, as a fraction of trials."""
    hits = 0
    for _ in range(trials):
        before, after = (side(world, chance, runs, ROUNDS, by) for by in (1.0, factor))
        hits += test(world, before, after, side(world, chance, 1, ROUNDS, factor))
    return hits / trials


# (runs a side, name, test)
TESTS: tuple[tuple[int, str, Test], ...] = (
    (4, "lanecheck", ours),
    (4, "lanecheck, repeated", repeated),
    (1, "lanecheck", ours),
    (1, "lanecheck, repeated", repeated),
    (1, "naive: t test of rounds", t_test),
    (1, "naive: rounds do not overlap", apart),
    (1, "naive: 2 % gate", gate),
)


def table(trials: int, seed: int, factor: float) -> str:
    """All rows as Markdown. factor: the true change that is to be found."""
    lines = [
        f"| case | runs × rounds a side | test | false alarms | finds {(factor - 1) * 100:+.0f} % |",
        "|---|---|---|--:|--:|",
    ]
    for world in WORLDS:
        for runs, name, test in TESTS:
            chance = random.Random(seed)
            false, found = (rate(world, test, runs, chance, trials, by) for by in (1.0, factor))
            lines.append(f"| {world.name} | {runs} × {ROUNDS} | {name} | {false * 100:.2f} % | {found * 100:.1f} % |")
    return "\n".join(lines)


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=8)
    parser.add_argument("--factor", type=float, default=0.95, help="the true change that is to be found: 0.95")
    arguments = parser.parse_args()
    print(table(arguments.trials, arguments.seed, arguments.factor))


if __name__ == "__main__":
    main()
