"""Runs nvbandwidth and lanecheck in turn on one GPU and compares their medians: `--nvbandwidth PATH --times 5`.

Every run is printed as it ends and kept; the JSON file is written anew after every turn, so an interrupted comparison
keeps what it has. Rates are GB/s of one direction, latencies ns. lanecheck measures with its own worker, alive over all
turns, once for each kind of host memory named: nvbandwidth's is cudaHostAlloc's (host_alloc), lanecheck's own is placed
on a NUMA node first and registered then (pinned).

Ends with 0 where every median of the first kind of memory is within what is wanted, with 1 where one is not, with 2
where it could not be compared, with 3 where it was interrupted.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from types import FrameType
from typing import Any

from tabulate import tabulate

from suite.errors import SuiteError
from suite.measure.engine import Engine
from suite.measure.workers import WorkerEngine
from suite.plan import cases
from suite.probe import machine as probe
from suite.records.case import Operation, Plan, Samples
from suite.records.machine import Machine
from suite.records.run import Settings
from suite.units import MIB, format_bytes

TIMEOUT_S = 300
THEIRS = "nvbandwidth"
# The least and the most that lanecheck's median may be of nvbandwidth's; nvbandwidth's own runs both ways move by 5 %.
ONE_WAY, BOTH_WAYS, SM, LATENCY, LOCAL = (0.99, 1.01), (0.97, None), (0.98, None), (0.97, 1.03), (0.98, 1.02)


@dataclass(frozen=True)
class Row:
    """One thing that both measure. testcase: nvbandwidth's name. direction: which of both ways nvbandwidth reports.
    wanted: the least and the most that lanecheck's median may be of nvbandwidth's."""

    name: str
    testcase: str
    operation: Operation
    engine: str
    wanted: tuple[float, float | None]
    direction: str | None = None

    @property
    def latency(self) -> bool:
        """In ns, of a buffer that nvbandwidth fixes."""
        return self.operation == "host_device_load_latency"

    @property
    def host(self) -> bool:
        """Host memory takes part."""
        return self.operation != "device_local_copy"


_DOWN: Operation = "host_to_device"
_UP: Operation = "device_to_host"
_BOTH: Operation = "both_ways"
ROWS = (
    Row("host to device", "host_to_device_memcpy_ce", _DOWN, "copy-engine", ONE_WAY),
    Row("device to host", "device_to_host_memcpy_ce", _UP, "copy-engine", ONE_WAY),
    Row("both ways: to device", "host_to_device_bidirectional_memcpy_ce", _BOTH, "copy-engine", BOTH_WAYS, _DOWN),
    Row("both ways: to host", "device_to_host_bidirectional_memcpy_ce", _BOTH, "copy-engine", BOTH_WAYS, _UP),
    Row("host to device, SM", "host_to_device_memcpy_sm", _DOWN, "sm", SM),
    Row("device to host, SM", "device_to_host_memcpy_sm", _UP, "sm", SM),
    Row("both ways, SM: to device", "host_to_device_bidirectional_memcpy_sm", _BOTH, "sm", SM, _DOWN),
    Row("both ways, SM: to host", "device_to_host_bidirectional_memcpy_sm", _BOTH, "sm", SM, _UP),
    Row("load latency", "host_device_latency_sm", "host_device_load_latency", "load-store", LATENCY),
    Row("within the device", "device_local_copy", "device_local_copy", "copy-engine", LOCAL),
)


@dataclass(frozen=True)
class Key:
    """What was measured, and by whom: nvbandwidth, or lanecheck with a kind of memory."""

    row: str
    mib: int
    who: str


@dataclass
class Runs:
    """Every value, in the order in which it was measured; every turn's seconds, by who measured."""

    values: dict[Key, list[float]] = field(default_factory=dict)
    turns: list[tuple[str, int, float]] = field(default_factory=list)

    def note(self, row: Row, mib: int, who: str, value: float) -> None:
        """Keeps and prints one run."""
        key = Key(row.name, mib, who)
        self.values.setdefault(key, []).append(value)
        print(f"{row.name:26} {mib:5d} MiB  {who:12} run {len(self.values[key])}: {value:9.2f}", flush=True)


def main(arguments: Sequence[str] | None = None) -> int:
    """0: every median is within what is wanted; 1: one is not; 2: it could not be compared; 3: interrupted."""
    options = parser().parse_args(arguments)
    signal.signal(signal.SIGTERM, _as_interrupt)
    runs = Runs()
    ended = 0
    try:
        compare(options, probe.read(), runs)
    except KeyboardInterrupt:
        ended = 3
        print("compare_nvbandwidth: interrupted; this is what was measured", file=sys.stderr)
    except (SuiteError, OSError, subprocess.SubprocessError, ValueError) as error:
        ended = 2
        print(f"compare_nvbandwidth: {error}", file=sys.stderr)
    rows = table(runs, options.memory)
    print(text(rows), flush=True)
    write(options, runs, complete=ended == 0)
    return ended or (0 if all(row["within"] for row in rows if row["who"] == options.memory[0]) else 1)


def parser() -> argparse.ArgumentParser:
    """The command line."""
    made = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    made.add_argument("--nvbandwidth", type=Path, required=True, help="the nvbandwidth program (0.8 or later)")
    made.add_argument("--times", type=int, default=5, help="turns of each (default 5)")
    made.add_argument("--sizes", type=_sizes, default=(256,), help="buffers in MiB (default 256)")
    made.add_argument("--gpu", type=int, default=0, help="NVML index (default 0)")
    made.add_argument(
        "--memory", type=_words, default=("pinned",), help="lanecheck's host memory (default pinned); the first counts"
    )
    made.add_argument("--rows", type=_words, default=(), help="nvbandwidth test cases to compare (default: all)")
    made.add_argument("--rounds", type=int, default=3, help="lanecheck's samples a run, as nvbandwidth's (default 3)")
    made.add_argument("--json", type=Path, help="where every run and the table are written")
    return made


def compare(options: argparse.Namespace, machine: Machine, runs: Runs) -> None:
    """Both in turn, options.times times; who begins changes every time."""
    rows = [row for row in ROWS if not options.rows or row.testcase in options.rows]
    with tempfile.TemporaryDirectory() as folder:
        engine = WorkerEngine(None, Path(folder))
        try:
            for number in range(options.times):
                for mib in options.sizes:
                    _in_turn(options, machine, engine, at(rows, mib, options.sizes), mib, runs, number % 2 == 1)
                write(options, runs, complete=False)
        finally:
            engine.close()


def at(rows: Sequence[Row], mib: int, sizes: Sequence[int]) -> list[Row]:
    """The rows of a size; latency has none and is measured with the first."""
    return [row for row in rows if not row.latency or mib == sizes[0]]


def _in_turn(
    options: argparse.Namespace,
    machine: Machine,
    engine: Engine,
    rows: Sequence[Row],
    mib: int,
    runs: Runs,
    swapped: bool,
) -> None:
    def theirs() -> None:
        for row, found in zip(rows, nvbandwidth(options, rows, mib), strict=True):
            runs.note(row, mib, THEIRS, found)

    def ours() -> None:
        for memory in options.memory:
            lanecheck(options, machine, engine, rows, mib, memory, runs)

    turns: list[tuple[str, Callable[[], None]]] = [(THEIRS, theirs), ("lanecheck", ours)]
    for who, measure in reversed(turns) if swapped else turns:
        began = time.monotonic()
        measure()
        runs.turns.append((who, mib, time.monotonic() - began))
        print(f"-- {who}: this turn took {runs.turns[-1][2]:.1f} s", flush=True)


def nvbandwidth(options: argparse.Namespace, rows: Sequence[Row], mib: int) -> list[float]:
    """nvbandwidth's own value of each row, in order, from one process. Raises ValueError where it gives none."""
    command = [str(options.nvbandwidth), "-j", "-s", "-b", str(mib), "-t", *(row.testcase for row in rows)]
    # CUDA's numbers then follow the PCI addresses, as NVML's do.
    variables = {**os.environ, "CUDA_DEVICE_ORDER": "PCI_BUS_ID"}
    done = subprocess.run(command, env=variables, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    found = values(done.stdout, options.gpu)
    missing = [row.testcase for row in rows if row.testcase not in found]
    if missing:
        raise ValueError(f"nvbandwidth gave no value for {', '.join(missing)}: {(done.stderr or done.stdout)[-300:]}")
    return [found[row.testcase] for row in rows]


def values(output: str, gpu: int) -> dict[str, float]:
    """Test case → value of one GPU's column, from nvbandwidth's JSON (text before and after it is skipped)."""
    start, end = output.find("{"), output.rfind("}")
    if start < 0:
        return {}
    found = {}
    for case in json.loads(output[start : end + 1])["nvbandwidth"].get("testcases", []):
        cells = (case.get("bandwidth_matrix") or [[]])[0]
        if gpu < len(cells) and cells[gpu] != "N/A":
            found[str(case["name"])] = float(cells[gpu])
    return found


def lanecheck(
    options: argparse.Namespace,
    machine: Machine,
    engine: Engine,
    rows: Sequence[Row],
    mib: int,
    memory: str,
    runs: Runs,
) -> None:
    """lanecheck's value of each row: both directions of both ways come from one measurement."""
    measured: dict[tuple[str, str], tuple[Plan, Samples]] = {}
    for row in rows:
        if not row.host and memory != options.memory[0]:
            continue
        what = (row.operation, row.engine)
        if what not in measured:
            plan = planned(machine, options.gpu, row, mib, memory, options.rounds)
            measured[what] = (plan, engine.measure(plan))
        plan, samples = measured[what]
        if samples.verified is False:
            raise ValueError(f"{row.name}: wrong bytes: {samples.wrong}")
        runs.note(row, mib, memory, value(row, plan, samples))


def planned(machine: Machine, gpu: int, row: Row, mib: int, memory: str, rounds: int) -> Plan:
    """The plan that the benchmarks would make."""
    given: dict[str, Any] = {"gpus": (gpu,), "engine": row.engine, "memory": memory, "rounds": rounds}
    if not row.latency:
        given["bytes"] = mib * MIB
    return cases.complete(machine, Settings(), f"compare/{row.testcase}", row.operation, **given)


def value(row: Row, plan: Plan, samples: Samples) -> float:
    """GB/s of one direction, or ns."""
    if row.latency:
        return median(samples.seconds) * 1e9
    seconds = (samples.directions or {})[row.direction] if row.direction else samples.seconds
    return plan.bytes / median(seconds) / 1e9


def table(runs: Runs, memories: Sequence[str]) -> list[dict[str, Any]]:
    """One line a row, size and kind of memory that both have measured: medians, their ratio, the spread of both."""
    lines = []
    for row in ROWS:
        for key, ours in runs.values.items():
            theirs = runs.values.get(Key(key.row, key.mib, THEIRS))
            if key.row != row.name or key.who not in memories or not theirs:
                continue
            ratio = median(ours) / median(theirs)
            lines.append(
                {
                    "row": key.row,
                    "size": "" if row.latency else format_bytes(key.mib * MIB),
                    "who": key.who,
                    "nvbandwidth": round(median(theirs), 3),
                    "its spread": spread(theirs),
                    "lanecheck": round(median(ours), 3),
                    "spread": spread(ours),
                    "runs": f"{len(theirs)} + {len(ours)}",
                    "ratio": round(ratio, 4),
                    "wanted": wanted(row),
                    "within": row.wanted[0] <= ratio and (row.wanted[1] is None or ratio <= row.wanted[1]),
                }
            )
    return lines


def wanted(row: Row) -> str:
    """What the ratio should be, in words."""
    least, most = row.wanted
    return f"{least:g} or more" if most is None else f"{least:g} to {most:g}"


def spread(found: Sequence[float]) -> float:
    """(max − min) / median."""
    return round((max(found) - min(found)) / median(found), 4)


def text(rows: Sequence[dict[str, Any]]) -> str:
    """The table for a terminal."""
    if not rows:
        return "nothing was measured by both"
    formats = ("", "", "", ".2f", ".1%", ".2f", ".1%", "", ".3f", "", "")
    lines: str = tabulate(rows, headers="keys", floatfmt=formats)
    return "\n" + lines


def write(options: argparse.Namespace, runs: Runs, *, complete: bool) -> None:
    """The JSON file, where one was asked for."""
    if options.json is None:
        return
    found = {
        "complete": complete,
        "times": options.times,
        "units": "GB/s of one direction; load latency in ns; turns in seconds",
        "runs": [{"row": k.row, "mib": k.mib, "who": k.who, "values": v} for k, v in runs.values.items()],
        "turns": [{"who": who, "mib": mib, "seconds": seconds} for who, mib, seconds in runs.turns],
        "table": table(runs, options.memory),
    }
    options.json.write_text(json.dumps(found, indent=2) + "\n")


def _as_interrupt(_signal: int, _frame: FrameType | None) -> None:
    """SIGTERM (of `timeout`, say) ends it as Ctrl-C does."""
    raise KeyboardInterrupt


def _sizes(given: str) -> tuple[int, ...]:
    return tuple(int(part) for part in given.split(","))


def _words(given: str) -> tuple[str, ...]:
    return tuple(part for part in given.split(",") if part)


if __name__ == "__main__":
    sys.exit(main())
