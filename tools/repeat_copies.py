"""How well do copies repeat? One-way copies from 64 MiB on and both ways, again and again: `--times 10 --json FILE`.

Every run is printed as it ends and kept. Each repeat measures every case anew, with buffers of its own. Ends with 0
where all repeats of every one-way case lie within ±1 % of their median, with 1 where one does not (both ways is shown
and judged by nobody), with 2 where it could not be measured.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from tabulate import tabulate

from suite.errors import SuiteError
from suite.measure.engine import Engine
from suite.measure.workers import WorkerEngine
from suite.plan import cases
from suite.probe import machine as probe
from suite.records.case import Operation, Plan
from suite.records.machine import Machine
from suite.records.run import Settings
from suite.units import MIB, format_bytes

WITHIN = 0.01
OPERATIONS: tuple[Operation, ...] = ("host_to_device", "device_to_host", "both_ways")
Runs = dict[Plan, list[float]]


@dataclass(frozen=True)
class Line:
    """One case: its median (GB/s, both directions added), how far the repeats lie from it, and whether that is
    within what is wanted (None: nothing is)."""

    copy: str
    size: str
    repeats: int
    median: float
    least: float
    most: float
    off: float
    within: bool | None


def main(arguments: Sequence[str] | None = None) -> int:
    """0: one-way copies repeat within 1 %; 1: one does not; 2: not measurable; 3: interrupted."""
    options = parser().parse_args(arguments)
    runs: Runs = {}
    try:
        with tempfile.TemporaryDirectory() as folder:
            engine = WorkerEngine(None, Path(folder))
            try:
                repeat(engine, plans(options, probe.read()), options.times, runs)
            finally:
                engine.close()
    except SuiteError as error:
        print(f"repeat_copies: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("repeat_copies: interrupted; this is what was measured", file=sys.stderr)
        return 3
    finally:
        lines = [line(plan, found) for plan, found in runs.items()]
        print("\n" + text(lines), flush=True)
        if options.json:
            options.json.write_text(json.dumps(document(runs, lines), indent=2) + "\n")
    return 1 if any(one.within is False for one in lines) else 0


def parser() -> argparse.ArgumentParser:
    """The command line."""
    made = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    made.add_argument("--times", type=int, default=10, help="repeats (default 10)")
    made.add_argument("--sizes", type=_sizes, default=(64, 256), help="buffers in MiB (default 64,256)")
    made.add_argument("--gpu", type=int, default=0, help="NVML index (default 0)")
    made.add_argument("--engine", choices=("copy-engine", "sm"), default="copy-engine")
    made.add_argument("--json", type=Path, help="where every run and the table are written")
    return made


def plans(options: argparse.Namespace, machine: Machine) -> list[Plan]:
    """The cases as the benchmarks would plan them. Raises SuiteError where the GPU is not there."""
    if machine.gpu(options.gpu) is None:
        raise SuiteError(machine.why_no_gpu or f"there is no GPU {options.gpu}")
    return [
        cases.complete(
            machine,
            Settings(),
            f"repeat/{operation}/{format_bytes(mib * MIB)}",
            operation,
            gpus=(options.gpu,),
            engine=options.engine,
            bytes=mib * MIB,
        )
        for operation in OPERATIONS
        for mib in options.sizes
    ]


def repeat(engine: Engine, asked: Sequence[Plan], times: int, runs: Runs) -> None:
    """All cases in turn, again and again. Raises SuiteError where bytes are wrong or nothing can be measured."""
    for number in range(times):
        for plan in asked:
            samples = engine.measure(plan)
            if samples.verified is False:
                raise SuiteError(f"{plan.case}: bytes are wrong: {samples.wrong}")
            ways = 2 if plan.operation == "both_ways" else 1
            rate = ways * plan.bytes / median(samples.seconds) / 1e9
            runs.setdefault(plan, []).append(rate)
            print(f"{plan.case:36} repeat {number + 1:2}: {rate:8.2f} GB/s", flush=True)


def line(plan: Plan, found: Sequence[float]) -> Line:
    """What the repeats of a case say."""
    middle = median(found)
    off = max(abs(rate - middle) for rate in found) / middle
    within = None if plan.operation == "both_ways" else off <= WITHIN
    return Line(
        plan.operation.replace("_", " "),
        format_bytes(plan.bytes),
        len(found),
        middle,
        min(found),
        max(found),
        off,
        within,
    )


def text(lines: Sequence[Line]) -> str:
    """The table for a terminal."""
    if not lines:
        return "nothing was measured"
    headers = ("copy", "size", "repeats", "median GB/s", "least", "most", "farthest from it", f"within {WITHIN:.0%}")
    said = {True: "yes", False: "no", None: ""}
    rows = [(o.copy, o.size, o.repeats, o.median, o.least, o.most, f"{o.off:.2%}", said[o.within]) for o in lines]
    return str(tabulate(rows, headers=headers, floatfmt=".2f"))


def document(runs: Runs, lines: Sequence[Line]) -> dict[str, Any]:
    """Everything, for the JSON file."""
    return {
        "units": "GB/s, both directions added",
        "runs": [{"case": plan.case, "values": found} for plan, found in runs.items()],
        "table": [vars(one) for one in lines],
    }


def _sizes(given: str) -> tuple[int, ...]:
    return tuple(int(part) for part in given.split(","))


if __name__ == "__main__":
    sys.exit(main())
