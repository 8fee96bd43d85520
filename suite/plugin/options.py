"""The command line: our options, read into Settings, and what is wrong with pytest-benchmark's own in this company.

Whatever is wrong is pytest's usage error (exit status 4) before anything is measured.
"""

from __future__ import annotations

import argparse
import math
import re
import tempfile
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal, cast

import pytest

from suite.records.machine import Machine
from suite.records.run import Settings
from suite.units import format_bytes, parse_sizes

EFFORTS = ("quick", "full")
# What pytest-benchmark can group by; anything else ends in its NotImplementedError after the whole run.
GROUPINGS = ("group", "name", "func", "fullname", "fullfunc", "param")
NAMED = 5  # saved runs named in a sentence, the newest
ELEMENT_BYTES = 4  # collectives move float32
RANKS_A_GPU = 8  # ranks that share a GPU: two already exercise the code, and no figure comes of more
RANKS_A_CPU = 4  # ranks on CPUs that share one: beyond it they wait for each other's time slices
LEAST_BOUND = 16  # ranks that any machine may be asked for, however few its CPUs: to try what a larger one does

_UNNAMED = re.compile(r"benchmark_\d{8}_\d{6}")  # pytest-benchmark's prefix of histograms where none is given


def add(parser: pytest.Parser) -> None:
    """Adds our option group."""
    group = parser.getgroup("lanecheck", "lanecheck: what is measured, and where the report goes")
    group.addoption("--effort", choices=EFFORTS, default="quick", help="quick (minutes) or full. Default: quick")
    group.addoption("--gpus", type=numbers, metavar="0,1", help="measure these GPUs only (NVML indices)")
    group.addoption("--nodes", type=numbers, metavar="0,1", help="measure from and to these NUMA nodes only")
    group.addoption("--sizes", type=sizes, metavar="8..64MiB", help="sizes: a range (doubling), or a list 10KiB,1MiB")
    group.addoption("--world-size", type=world_sizes, metavar="2,4", help="numbers of ranks of the collectives")
    group.addoption(
        "--ranks-per-gpu", type=ranks, default=1, metavar="2", help="ranks on each GPU: exercises the code, no link"
    )
    group.addoption("--write-plan", type=Path, metavar="FILE", help="write the collectives' plans for other hosts")
    group.addoption("--allreduce-results", type=Path, metavar="FILE", help="judge collectives that ran on other hosts")
    group.addoption("--deadline", type=seconds, default=30.0, metavar="S", help="a case failed after S seconds: 30")
    group.addoption("--strict-verdicts", action="store_true", help="WARN and INDETERMINATE fail too")
    group.addoption("--report-dir", type=Path, metavar="DIR", help="where runs go. Default: reports/")
    group.addoption("--machine", type=Path, metavar="FILE", help="a recorded or simulated machine in place of this one")
    group.addoption("--expect", type=Path, metavar="FILE", help="a manifest that says what is right for this machine")
    group.addoption("--host-name", action="store_true", help="record this machine's host name")
    help_text = "thresholds of the verdicts that differ from docs/verdicts.md, one NAME = VALUE a line"
    parser.addini("lanecheck_thresholds", help_text, type="linelist", default=[])


def settings(config: pytest.Config) -> Settings:
    """How the run was asked for."""
    option = config.getoption
    return Settings(
        effort=cast(Literal["quick", "full"], option("effort")),
        sizes=option("sizes"),
        gpus=option("gpus"),
        nodes=option("nodes"),
        world_sizes=option("world_size"),
        deadline_s=option("deadline"),
        ranks_per_gpu=option("ranks_per_gpu"),
        several_hosts=bool(option("write_plan") or option("allreduce_results")),
    )


def numbers(text: str) -> tuple[int, ...]:
    """'0,1' as (0, 1), ascending."""
    return _integers(text, 0, "write whole numbers from 0 with commas between, as 0,1")


def world_sizes(text: str) -> tuple[int, ...]:
    """'2,4' as (2, 4), ascending."""
    return _integers(text, 2, "write whole numbers from 2 with commas between, as 2,4")


def ranks(text: str) -> int:
    """Ranks that share a GPU, 1 to RANKS_A_GPU."""
    if not (text.isascii() and text.isdigit() and len(text) < 4 and 1 <= int(text) <= RANKS_A_GPU):
        raise argparse.ArgumentTypeError(f"{text!r} is not allowed: write a whole number from 1 to {RANKS_A_GPU}")
    return int(text)


def sizes(text: str) -> tuple[int, ...]:
    """'8..64MiB' or '10KiB,1MiB' in bytes, ascending."""
    found = _told(parse_sizes, text)
    odd = [size for size in found if size % ELEMENT_BYTES]
    if odd:
        raise argparse.ArgumentTypeError(
            f"{format_bytes(odd[0])} is no multiple of {ELEMENT_BYTES} bytes (one float32): write 8, 4KiB or 8..64MiB"
        )
    return found


def seconds(text: str) -> float:
    """A number of seconds above 0."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not (0 < value < math.inf):
        raise argparse.ArgumentTypeError(f"{text!r} is no time: write seconds above 0, as 30 or 2.5")
    return value


def touches_benchmarks(config: pytest.Config) -> bool:
    """Whether an argument lies in benchmarks/, or benchmarks/ in it."""
    benchmarks = config.rootpath / "benchmarks"
    for argument in config.args:
        path = (config.invocation_params.dir / argument.split("::")[0]).resolve()
        if path == benchmarks or benchmarks in path.parents or path in benchmarks.parents:
            return True
    return False


def validate(config: pytest.Config) -> None:
    """Raises pytest.UsageError for what can be told from the options alone, and settles pytest-benchmark's."""
    _report_folder(config.getoption("report_dir"))
    _several_hosts(config.getoption("write_plan"), config.getoption("allreduce_results"), config.getoption("machine"))
    if touches_benchmarks(config):
        if not config.pluginmanager.hasplugin("benchmark"):
            raise pytest.UsageError(
                "the benchmarks need pytest-benchmark, and it was switched off: drop -p no:benchmark"
            )
        if config.getoption("numprocesses", None) or config.getoption("tx", None):
            raise pytest.UsageError("benchmarks cannot run under xdist, they would disturb each other: drop -n")
    if config.pluginmanager.hasplugin("benchmark"):
        _json_folder(config.getoption("benchmark_json"))
        _grouping(config.getoption("benchmark_group_by"))
        _histogram(config)
        config.option.benchmark_quiet = config.option.benchmark_quiet or not _table_wanted(config)


def check_ranks(settings: Settings, machine: Machine) -> None:
    """Raises pytest.UsageError for more ranks than this host can run: they would end by its memory or a deadline, an
    hour later. Ranks on several hosts are bounded by nothing that is known here."""
    cpus = sum(len(node.cpus) for node in machine.nodes)
    bound = max(LEAST_BOUND, RANKS_A_CPU * cpus, len(machine.gpus))
    above = [str(size) for size in settings.world_sizes or () if size > bound]
    if above and not settings.several_hosts:
        raise pytest.UsageError(
            f"--world-size {','.join(above)}: this machine has {cpus} CPU{'' if cpus == 1 else 's'}, which run at most "
            f"{bound} ranks; for ranks on several hosts add --write-plan FILE"
        )


def idle(settings: Settings, machine: Machine) -> list[str]:
    """Sentences about options that change nothing on this machine."""
    if settings.ranks_per_gpu > 1 and not machine.gpus and not settings.several_hosts:
        why = f" ({machine.why_no_gpu.rstrip('.')})" if machine.why_no_gpu else ""
        return [f"--ranks-per-gpu {settings.ranks_per_gpu} changes nothing: there is no GPU{why}"]
    return []


def check_compare(config: pytest.Config) -> None:
    """A comparison without a baseline is told now: pytest-benchmark tells it after the whole run, or only warns."""
    benchmarks = config.pluginmanager.getplugin("pytest-benchmark")
    if benchmarks is None or benchmarks.compared_mapping:
        return
    if isinstance(benchmarks.compare, str):
        raise pytest.UsageError(
            f"--benchmark-compare={benchmarks.compare}: no baseline of that name in {benchmarks.storage}: "
            + _saved(benchmarks.storage)
        )
    if benchmarks.compare_fail:
        raise pytest.UsageError(
            f"--benchmark-compare-fail needs a baseline and there is none in {benchmarks.storage}: "
            "save one with --benchmark-save=NAME, then compare with --benchmark-compare"
        )


def _saved(storage: Any) -> str:
    """What there is to compare with, or how to save it. Only a storage of files can be asked."""
    found = [path.stem for path in storage.query()] if hasattr(storage, "query") else []
    if not found:
        return "save one with --benchmark-save=NAME"
    return f"there {'is' if len(found) == 1 else 'are'} {', '.join(found[-NAMED:])}"


def _integers(text: str, least: int, allowed: str) -> tuple[int, ...]:
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isascii() and part.isdigit() and int(part) >= least for part in parts):
        raise argparse.ArgumentTypeError(f"{text!r} is not allowed: {allowed}")
    return tuple(sorted({int(part) for part in parts}))


def _told(parse: Callable[[str], tuple[int, ...]], text: str) -> tuple[int, ...]:
    """argparse replaces a ValueError's text by its own: only ArgumentTypeError keeps the sentence."""
    try:
        return parse(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def _report_folder(folder: Path | None) -> None:
    if folder is None:
        return
    there = folder
    try:
        there = next(path for path in (folder.absolute(), *folder.absolute().parents) if path.exists())
        if not there.is_dir():
            raise pytest.UsageError(f"--report-dir {folder}: {there} is a file: name a folder")
        # Tried, not asked: a read-only file system, or a full one, grants root every permission.
        with tempfile.TemporaryDirectory(prefix=".lanecheck-", dir=there):
            pass
    except OSError as error:
        raise pytest.UsageError(
            f"--report-dir {folder}: {there} cannot be written to ({error.strerror}): name another folder"
        ) from error


def _several_hosts(plan: Path | None, results: Path | None, machine: Path | None) -> None:
    if results is not None and machine is not None:
        raise pytest.UsageError("--allreduce-results were measured and --machine is not this one: give one of them")
    if plan is not None and results is not None:
        raise pytest.UsageError("--write-plan and --allreduce-results are two steps: give one of them")
    if plan is not None and not plan.absolute().parent.is_dir():
        raise pytest.UsageError(f"--write-plan {plan}: there is no folder {plan.parent}")
    if results is not None and not results.is_file():
        raise pytest.UsageError(f"--allreduce-results {results}: there is no such file; the ranks' --out writes it")


def _json_folder(path: Path | None) -> None:
    """pytest-benchmark opens the file at the end only: a missing folder would cost the whole run."""
    if path is None:
        return
    if path.is_dir():
        raise pytest.UsageError(f"--benchmark-json {path} is a folder: name a file")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise pytest.UsageError(f"--benchmark-json {path}: its folder cannot be made ({error.strerror})") from error


def _grouping(text: str) -> None:
    bad = [part for part in text.split(",") if part not in GROUPINGS and not part.startswith("param:")]
    if bad:
        raise pytest.UsageError(f"--benchmark-group-by={bad[0]}: use {', '.join(GROUPINGS)} or param:NAME")


def _histogram(config: pytest.Config) -> None:
    """Without a name the drawings go below the reports: pytest-benchmark's default is the current folder."""
    wanted = config.option.benchmark_histogram
    if not wanted:
        return
    if find_spec("pygal") is None:
        raise pytest.UsageError("--benchmark-histogram needs pygal: pip install 'pytest-benchmark[histogram]'")
    if touches_benchmarks(config):
        folder = (config.getoption("report_dir") or config.rootpath / "reports") / "histograms"
        config.option.benchmark_histogram = [
            str(folder / name) if _UNNAMED.fullmatch(name) else name for name in wanted
        ]


def _table_wanted(config: pytest.Config) -> bool:
    """pytest-benchmark's own table repeats ours in seconds; who asks for what only it can show gets it."""
    option = config.getoption
    asked = ("benchmark_verbose", "benchmark_histogram", "benchmark_compare", "benchmark_columns")
    return any(option(name) for name in asked) or option("benchmark_group_by") != "group"
