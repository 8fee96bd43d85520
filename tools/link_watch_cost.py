"""What does the link watch cost? Copies host to device with and without it, in turn: `--pairs 10 --json FILE`.

Every run is printed and kept: its median bandwidth in GB/s and, for watched ones, how many readings were taken. The
answer is the median over all watched runs beside the one over all others, and the median of the pairs' ratios.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from statistics import median
from typing import Any

from suite.cli.probe import seconds
from suite.errors import SuiteError, Unavailable
from suite.measure.engine import Engine
from suite.measure.workers import WorkerEngine
from suite.plan import cases
from suite.probe import machine as probe
from suite.probe.link import Watcher
from suite.records.case import LinkReading, Plan
from suite.records.machine import Machine
from suite.records.run import Settings
from suite.units import GB, MIB

MOST_COST = 0.01  # of the bandwidth


@dataclass(frozen=True)
class Run:
    """One run. bandwidth: its median, bytes per second. readings: how many the watch took, 0 without it; by_nvml: how
    many of them NVML answered."""

    pair: int
    watched: bool
    bandwidth: float
    readings: int = 0
    by_nvml: int = 0


class Kept:
    """A watcher that keeps its last readings, so that a run proves that it was watched."""

    def __init__(self, watcher: Watcher) -> None:
        self.watcher = watcher
        self.last: tuple[LinkReading, ...] = ()

    def start(self, addresses: Sequence[str]) -> None:
        """As Watcher.start."""
        self.watcher.start(addresses)

    def stop(self) -> dict[str, tuple[LinkReading, ...]]:
        """As Watcher.stop."""
        found = self.watcher.stop()
        self.last = next(iter(found.values()), ())
        return found


def main(arguments: Sequence[str] | None = None) -> int:
    """0: the watch costs less than 1 %; 1: it costs more, or a watched run has no readings; 2: nothing measured."""
    options = parser().parse_args(arguments)
    try:
        machine = probe.read()
        runs = measured(options, machine)
    except (SuiteError, OSError) as error:
        print(f"link_watch_cost: {error}", file=sys.stderr)
        return 2
    answer = summary(runs)
    print(text(answer))
    if options.json:
        options.json.write_text(json.dumps(document(machine, options, runs, answer), indent=2) + "\n")
    return 0 if answer["cost"] < MOST_COST and answer["least_readings"] > 1 else 1


def parser() -> argparse.ArgumentParser:
    """The command line."""
    made = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    made.add_argument("--pairs", type=_positive, default=10, help="pairs of runs, with and without (default 10)")
    made.add_argument("--mib", type=_positive, default=256, help="bytes of one copy in MiB (default 256)")
    made.add_argument("--rounds", type=_positive, default=10, help="samples of a run, 16 copies each (default 10)")
    made.add_argument("--interval", type=seconds, default=0.025, help="seconds between readings (default 0.025)")
    made.add_argument("--gpu", type=int, default=0, help="NVML index (default 0)")
    made.add_argument("--json", type=Path, help="where every run and the answer are written")
    return made


def measured(options: argparse.Namespace, machine: Machine) -> list[Run]:
    """All runs; which of a pair comes first changes every time. Raises SuiteError where they cannot be measured."""
    plan = planned(options, machine)
    watcher = Kept(Watcher(options.interval))
    with tempfile.TemporaryDirectory() as folder:
        engine = WorkerEngine(watcher, Path(folder))
        try:
            engine.measure(replace(plan, rounds=1))  # starts the worker and wakes the GPU
            return [
                note(run(engine, watcher, plan, pair, watched))
                for pair in range(options.pairs)
                for watched in ((False, True) if pair % 2 == 0 else (True, False))
            ]
        finally:
            engine.close()


def planned(options: argparse.Namespace, machine: Machine) -> Plan:
    """The plan that the benchmarks would make. Raises Unavailable where there is no such GPU."""
    if machine.gpu(options.gpu) is None:
        why = machine.why_no_gpu or f"the machine has {len(machine.gpus)}"
        raise Unavailable(f"GPU {options.gpu} is not there, so there is nothing to watch: {why}")
    return cases.complete(
        machine,
        Settings(),
        "link_watch_cost",
        "host_to_device",
        gpus=(options.gpu,),
        bytes=options.mib * MIB,
        rounds=options.rounds,
    )


def run(engine: Engine, watcher: Kept, plan: Plan, pair: int, watched: bool) -> Run:
    """One run. Raises SuiteError; wrong bytes are an error too."""
    samples = engine.measure(replace(plan, watch=watched))
    if samples.verified is False:
        raise Unavailable(f"the copied bytes are wrong, so there is no bandwidth: {samples.wrong}")
    readings = watcher.last if watched else ()
    by_nvml = sum(reading.nvml is not None for reading in readings)
    return Run(pair, watched, plan.bytes / median(samples.seconds), len(readings), by_nvml)


def note(one: Run) -> Run:
    """Prints a run."""
    how = f"watched, {one.readings} readings, {one.by_nvml} by NVML" if one.watched else "not watched"
    print(f"pair {one.pair + 1:2d}  {one.bandwidth / GB:7.3f} GB/s  {how}", flush=True)
    return one


def summary(runs: Sequence[Run]) -> dict[str, Any]:
    """Medians in bytes per second, their ratio, the median of the pairs' ratios, and what the watch costs by it."""
    watched = {r.pair: r.bandwidth for r in runs if r.watched}
    alone = {r.pair: r.bandwidth for r in runs if not r.watched}
    by_pair = median(watched[pair] / alone[pair] for pair in watched)
    return {
        "watched": median(watched.values()),
        "not_watched": median(alone.values()),
        "ratio": median(watched.values()) / median(alone.values()),
        "ratio_by_pair": by_pair,
        "cost": 1 - by_pair,
        "least_readings": min(r.readings for r in runs if r.watched),
    }


def text(answer: dict[str, Any]) -> str:
    """The answer in two lines."""
    return (
        f"\nmedian watched {answer['watched'] / GB:.3f} GB/s, not watched {answer['not_watched'] / GB:.3f} GB/s, "
        f"ratio {answer['ratio']:.4f}\n"
        f"median ratio of the pairs {answer['ratio_by_pair']:.4f}: the watch costs {answer['cost']:.2%}"
    )


def document(
    machine: Machine, options: argparse.Namespace, runs: Sequence[Run], answer: dict[str, Any]
) -> dict[str, Any]:
    """Everything, for the JSON file."""
    gpu = machine.gpu(options.gpu)
    return {
        "gpu": gpu.name if gpu else None,
        "units": "bytes per second, one direction (host to device)",
        "mib": options.mib,
        "rounds": options.rounds,
        "interval_s": options.interval,
        "runs": [asdict(one) for one in runs],
        "answer": answer,
    }


def _positive(given: str) -> int:
    if not given.isdecimal() or int(given) < 1:
        raise argparse.ArgumentTypeError(f"{given!r} is not a whole number above 0")
    return int(given)


if __name__ == "__main__":
    sys.exit(main())
