"""Allreduce by lanecheck and by a bare loop in turn, each in fresh ranks: `--mode gloo --pools 8`.

Modes: gloo; nccl (a GPU a rank); shared (ranks as processes on one GPU) and threads (ranks as threads of one process on
one GPU), which both need NCCL 2.30.3 or newer. Every run is printed as it ends; the JSON file is written anew after
every turn. Compared are medians over pools of each pool's median round.

Ends with 0 where every ratio that counts is within 10 %, with 1 where one is not, with 2 where it could not be
compared.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

from tabulate import tabulate

from suite.errors import SuiteError
from suite.measure.pool import environment
from suite.measure.workers import WorkerEngine
from suite.plan import cases
from suite.probe import machine as probe
from suite.records.case import Plan
from suite.records.machine import Machine
from suite.records.run import Settings
from suite.units import MIB, format_bytes, format_seconds, parse_sizes

MODES = ("gloo", "nccl", "shared", "threads")
SIZES = {"gloo": "8,4KiB,1MiB,16MiB,64MiB", "nccl": "8,4KiB,1MiB,256MiB"}
WITHIN = 0.10
GLOO_COUNTS = 16 * MIB  # below, the noise of processes on few cores is larger than the difference
TIMEOUT_S = 300.0
BARE, OURS = "bare loop", "lanecheck"
Runs = dict[tuple[int, str], list[float]]


def main(arguments: Sequence[str] | None = None) -> int:
    """0: within 10 %; 1: not; 2: not compared."""
    options = parser().parse_args(arguments)
    sizes = parse_sizes(options.sizes or SIZES.get(options.mode, SIZES["nccl"]))
    runs: Runs = {}
    try:
        compare(options, sizes, runs)
    except (SuiteError, OSError, subprocess.SubprocessError, ValueError) as error:
        print(f"compare_collectives: {error}", file=sys.stderr)
        return 2
    found = rows(runs, options.mode)
    print(table(found), flush=True)
    return 0 if all(row["within"] for row in found if row["counts"]) else 1


def parser() -> argparse.ArgumentParser:
    """The command line."""
    made = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    made.add_argument("--mode", choices=MODES, default="gloo", help="default gloo")
    made.add_argument("--pools", type=int, default=8, help="fresh pools of each (default 8)")
    made.add_argument("--sizes", help="as 8,4KiB,1MiB,256MiB")
    made.add_argument("--ranks", type=int, default=2, help="default 2")
    made.add_argument("--json", type=Path, help="where every run and the table are written")
    return made


def compare(options: argparse.Namespace, sizes: Sequence[int], runs: Runs) -> None:
    """Both in turn; who begins changes every time."""
    machine = probe.read()
    plans = [plan(machine, options.mode, options.ranks, size) for size in sizes]
    with tempfile.TemporaryDirectory(prefix="lanecheck-compare-") as folder:
        engine = WorkerEngine(None, Path(folder))
        for turn in range(options.pools):
            for who in (BARE, OURS)[:: 1 if turn % 2 else -1]:
                medians = bare(plans, options.mode, folder) if who == BARE else ours(engine, plans)
                for size, seconds in zip(sizes, medians, strict=True):
                    note(runs, size, who, seconds)
            write(options.json, runs, options.mode)


def plan(machine: Machine, mode: str, ranks: int, size: int) -> Plan:
    """lanecheck's own plan; both make its numbers of rounds and calls."""
    given: dict[str, Any] = {"bytes": size, "world_size": ranks, "backend": "gloo" if mode == "gloo" else "nccl"}
    if mode in ("shared", "threads"):
        machine = replace(machine, gpus=machine.gpus[:1])
    if mode == "threads":
        given["ranks_as"] = "threads"
    settings = Settings(effort="full", deadline_s=120.0)
    return cases.complete(machine, settings, f"compare/{mode}/{format_bytes(size)}", "allreduce", **given)


def ours(engine: WorkerEngine, plans: Sequence[Plan]) -> list[float]:
    """Medians of a fresh pool. Raises SuiteError."""
    engine.close()
    found = []
    for one in plans:
        samples = engine.measure(one)
        if not samples.verified:
            raise ValueError(f"{one.case}: wrong values: {samples.wrong}")
        found.append(median(samples.seconds))
    engine.close()
    return found


def bare(plans: Sequence[Plan], mode: str, folder: str) -> list[float]:
    """Medians of fresh processes; the slowest rank of a round counts. Raises CalledProcessError."""
    calls = [[one.bytes, one.iterations, one.warmup, one.rounds] for one in plans]
    store = tempfile.mktemp(dir=folder)  # FileStore makes the file
    tasks = [
        {"mode": mode, "rank": rank, "ranks": plans[0].world_size, "store": store, "calls": calls}
        for rank in range(plans[0].processes)
    ]
    program = str(Path(__file__).with_name("bare_collectives.py"))
    variables = environment(plans[0], os.environ)
    ranks = [
        subprocess.Popen([sys.executable, program, json.dumps(task)], stdout=subprocess.PIPE, env=variables)
        for task in tasks
    ]
    try:
        outputs = [rank.communicate(timeout=TIMEOUT_S)[0] for rank in ranks]
    finally:
        for rank in ranks:
            rank.kill()
    for rank in ranks:
        if rank.returncode:
            raise subprocess.CalledProcessError(rank.returncode, program)
    by_rank = [json.loads(output.splitlines()[-1]) for output in outputs]
    return [median(max(ranks) for ranks in zip(*sizes, strict=True)) for sizes in zip(*by_rank, strict=True)]


def note(runs: Runs, size: int, who: str, seconds: float) -> None:
    """Keeps and prints one run."""
    found = runs.setdefault((size, who), [])
    found.append(seconds)
    print(f"{format_bytes(size):>7}  {who:9} pool {len(found)}: {format_seconds(seconds)}", flush=True)


def rows(runs: Runs, mode: str) -> list[dict[str, Any]]:
    """A row a size: medians over pools, their spread, the ratio, and whether it counts."""
    found = []
    for size in sorted({size for size, _ in runs}):
        theirs, mine = runs.get((size, BARE), []), runs.get((size, OURS), [])
        if not theirs or not mine:
            continue
        ratio = median(mine) / median(theirs)
        found.append(
            {
                "bytes": size,
                "bare_s": median(theirs),
                "lanecheck_s": median(mine),
                "ratio": ratio,
                "bare_spread": max(theirs) / min(theirs),
                "lanecheck_spread": max(mine) / min(mine),
                "counts": mode != "gloo" or size >= GLOO_COUNTS,
                "within": abs(ratio - 1) <= WITHIN,
            }
        )
    return found


def table(found: Sequence[Mapping[str, Any]]) -> str:
    """In words."""
    heads = ("size", "bare loop", "lanecheck", "ratio", "spread bare", "spread ours", "counts", "within 10 %")
    body = [
        (
            format_bytes(row["bytes"]),
            format_seconds(row["bare_s"]),
            format_seconds(row["lanecheck_s"]),
            f"{row['ratio']:.3f}",
            f"{row['bare_spread']:.2f}",
            f"{row['lanecheck_spread']:.2f}",
            "yes" if row["counts"] else "no",
            "yes" if row["within"] else "no",
        )
        for row in found
    ]
    return str(tabulate(body, heads, disable_numparse=True))


def write(path: Path | None, runs: Runs, mode: str) -> None:
    """Every run and the table so far."""
    if path is None:
        return
    kept = [{"bytes": size, "who": who, "seconds": seconds} for (size, who), seconds in runs.items()]
    path.write_text(json.dumps({"mode": mode, "runs": kept, "table": rows(runs, mode)}, indent=1) + "\n")


if __name__ == "__main__":
    sys.exit(main())
