"""Runs nvbandwidth and lanecheck in turn on one GPU and compares their medians: `--nvbandwidth PATH --times 5`.

Every run is printed and kept. Rates are GB/s of one direction, latencies ns. lanecheck measures with its own workers,
once for each kind of host memory named: nvbandwidth's is cudaHostAlloc's (host_alloc), lanecheck's own is placed on a
NUMA node first and registered then (pinned).
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from tabulate import tabulate

from suite.errors import SuiteError
from suite.measure.workers import WorkerEngine
from suite.plan import cases
from suite.probe import machine as probe
from suite.records.case import Operation, Plan, Samples
from suite.records.machine import Machine
from suite.records.run import Settings
from suite.units import MIB, format_bytes

TIMEOUT_S = 300


@dataclass(frozen=True)
class Row:
    """One thing that both measure. testcase: nvbandwidth's name. direction: which of both ways nvbandwidth reports.
    wanted: the least and the most that lanecheck's median may be of nvbandwidth's."""

    name: str
    testcase: str
    operation: Operation
    engine: str = "copy-engine"
    direction: str | None = None
    wanted: tuple[float, float] = (0.99, 1.01)
    memory: bool = True  # host memory takes part

    @property
    def latency(self) -> bool:
        """In ns, of a buffer that nvbandwidth fixes."""
        return self.operation == "host_device_load_latency"


_TO_DEVICE: Operation = "host_to_device"
_TO_HOST: Operation = "device_to_host"
ROWS = (
    Row("host to device", "host_to_device_memcpy_ce", _TO_DEVICE),
    Row("device to host", "device_to_host_memcpy_ce", _TO_HOST),
    Row(
        "both ways: to device",
        "host_to_device_bidirectional_memcpy_ce",
        "both_ways",
        direction=_TO_DEVICE,
        wanted=(0.97, 1.03),
    ),
    Row(
        "both ways: to host",
        "device_to_host_bidirectional_memcpy_ce",
        "both_ways",
        direction=_TO_HOST,
        wanted=(0.97, 1.03),
    ),
    Row("host to device, SM", "host_to_device_memcpy_sm", _TO_DEVICE, "sm", wanted=(0.98, 1.02)),
    Row("device to host, SM", "device_to_host_memcpy_sm", _TO_HOST, "sm", wanted=(0.98, 1.02)),
    Row("both ways, SM: to device", "host_to_device_bidirectional_memcpy_sm", "both_ways", "sm", _TO_DEVICE, (0.9, 9)),
    Row("both ways, SM: to host", "device_to_host_bidirectional_memcpy_sm", "both_ways", "sm", _TO_HOST, (0.9, 9)),
    Row("load latency", "host_device_latency_sm", "host_device_load_latency", "load-store", wanted=(0.97, 1.03)),
    Row("within the device", "device_local_copy", "device_local_copy", wanted=(0.98, 1.02), memory=False),
)
# (row, bytes, who): what was measured, run by run.
Key = tuple[str, int, str]
Runs = dict[Key, list[float]]


def main(arguments: Sequence[str] | None = None) -> int:
    """0: every median is within what is wanted; 1: one is not; 2: it could not be compared."""
    options = parser().parse_args(arguments)
    try:
        machine = probe.read()
        runs = compare(options, machine)
    except (SuiteError, OSError, subprocess.SubprocessError, ValueError) as error:
        print(f"compare_nvbandwidth: {error}", file=sys.stderr)
        return 2
    rows = table(runs, options.memory)
    print(text(rows))
    if options.json:
        options.json.write_text(json.dumps(document(machine, options, runs, rows), indent=2) + "\n")
    return 0 if all(row["within"] for row in rows if row["who"] == options.memory[0]) else 1


def parser() -> argparse.ArgumentParser:
    """The command line."""
    made = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    made.add_argument("--nvbandwidth", type=Path, required=True, help="the nvbandwidth program (0.8 or later)")
    made.add_argument("--times", type=int, default=5, help="runs of each, in turn (default 5)")
    made.add_argument("--sizes", type=_sizes, default=(256, 512), help="buffers in MiB (default 256,512)")
    made.add_argument("--gpu", type=int, default=0, help="NVML index (default 0)")
    made.add_argument(
        "--memory", type=_words, default=("pinned", "host_alloc"), help="lanecheck's host memory; the first is judged"
    )
    made.add_argument("--rows", type=_words, default=(), help="nvbandwidth test cases to compare (default: all)")
    made.add_argument("--json", type=Path, help="where every run and the table are written")
    return made


def compare(options: argparse.Namespace, machine: Machine) -> Runs:
    """Runs both in turn, options.times times; who begins changes every time."""
    rows = [row for row in ROWS if not options.rows or row.testcase in options.rows]
    runs: Runs = {}
    with tempfile.TemporaryDirectory() as folder:
        engine = WorkerEngine(None, Path(folder))
        try:
            for time in range(options.times):
                for mib in options.sizes:
                    _in_turn(options, machine, engine, _at(rows, mib, options.sizes), mib, time, runs)
        finally:
            engine.close()
    return runs


def _at(rows: Iterable[Row], mib: int, sizes: Sequence[int]) -> list[Row]:
    """The rows of a size; latency has none and is measured with the first."""
    return [row for row in rows if not row.latency or mib == sizes[0]]


def _in_turn(
    options: argparse.Namespace,
    machine: Machine,
    engine: WorkerEngine,
    rows: Sequence[Row],
    mib: int,
    time: int,
    runs: Runs,
) -> None:
    def theirs() -> None:
        for row, value in zip(rows, nvbandwidth(options, rows, mib), strict=True):
            note(runs, (row.name, mib, "nvbandwidth"), value)

    def ours() -> None:
        for row in rows:
            for memory in options.memory if row.memory else options.memory[:1]:
                note(runs, (row.name, mib, memory), lanecheck(options, machine, engine, row, mib, memory))

    for measure in (theirs, ours) if time % 2 == 0 else (ours, theirs):
        measure()


def note(runs: Runs, key: Key, value: float) -> None:
    """Keeps and prints one run."""
    runs.setdefault(key, []).append(value)
    name, mib, who = key
    print(f"{name:26} {mib:5d} MiB  {who:12} run {len(runs[key])}: {value:9.2f}", flush=True)


def nvbandwidth(options: argparse.Namespace, rows: Sequence[Row], mib: int) -> list[float]:
    """nvbandwidth's own value of each row, in order. Raises ValueError where it gives none."""
    command = [str(options.nvbandwidth), "-j", "-b", str(mib), "-t", *(row.testcase for row in rows)]
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
    options: argparse.Namespace, machine: Machine, engine: WorkerEngine, row: Row, mib: int, memory: str
) -> float:
    """lanecheck's value of a row: GB/s of the direction that nvbandwidth reports, or ns."""
    plan = planned(machine, options.gpu, row, mib, memory)
    samples = engine.measure(plan)
    if samples.verified is False:
        raise ValueError(f"{row.name}: wrong bytes: {samples.wrong}")
    return value(row, plan, samples)


def planned(machine: Machine, gpu: int, row: Row, mib: int, memory: str) -> Plan:
    """The plan that the benchmarks would make."""
    given: dict[str, Any] = {"gpus": (gpu,), "engine": row.engine, "memory": memory}
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
    """One line a row, size and kind of memory: medians, their ratio, the spread of both."""
    lines = []
    for row in ROWS:
        for (name, mib, who), ours in runs.items():
            if name != row.name or who not in memories:
                continue
            theirs = runs[name, mib, "nvbandwidth"]
            ratio = median(ours) / median(theirs)
            lines.append(
                {
                    "row": name,
                    "size": "" if row.latency else format_bytes(mib * MIB),
                    "who": who,
                    "nvbandwidth": round(median(theirs), 3),
                    "its spread": spread(theirs),
                    "lanecheck": round(median(ours), 3),
                    "spread": spread(ours),
                    "ratio": round(ratio, 4),
                    "within": row.wanted[0] <= ratio <= row.wanted[1],
                }
            )
    return lines


def spread(found: Sequence[float]) -> float:
    """(max − min) / median."""
    return round((max(found) - min(found)) / median(found), 4)


def text(rows: Sequence[dict[str, Any]]) -> str:
    """The table for a terminal."""
    lines: str = tabulate(rows, headers="keys", floatfmt=("", "", "", ".2f", ".1%", ".2f", ".1%", ".3f"))
    return "\n" + lines


def document(machine: Machine, options: argparse.Namespace, runs: Runs, rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Everything, for the JSON file."""
    gpu = machine.gpu(options.gpu)
    return {
        "gpu": gpu.name if gpu else None,
        "times": options.times,
        "units": "GB/s of one direction; load latency in ns",
        "runs": [{"row": n, "mib": m, "who": w, "values": found} for (n, m, w), found in runs.items()],
        "table": rows,
    }


def _sizes(given: str) -> tuple[int, ...]:
    return tuple(int(part) for part in given.split(","))


def _words(given: str) -> tuple[str, ...]:
    return tuple(part for part in given.split(",") if part)


if __name__ == "__main__":
    sys.exit(main())
