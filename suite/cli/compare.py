"""`lanecheck compare BEFORE AFTER…`: did the fix work? What changed in the machine, then in the numbers."""

from __future__ import annotations

import argparse
import os
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec

from suite.cli import newest
from suite.cli.baseline import add_folder
from suite.errors import StoreError
from suite.records.comparison import Comparison
from suite.records.run import Run
from suite.report import compare as report
from suite.report import compare_words, style
from suite.store import baselines, compare, runs

FORMATS = ("text", "md", "json")
NOTHING_COMPARED = 5  # as pytest's status for nothing collected, and ours for nothing measured


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of `lanecheck compare`."""
    parser.add_argument("before", metavar="BEFORE", help="a run, a baseline's name, or its file")
    parser.add_argument("after", nargs="+", metavar="AFTER", help="one or several of the same")
    parser.add_argument(
        "--again", nargs="+", default=[], metavar="RUN", help="runs made after those: a called change must repeat there"
    )
    parser.add_argument("--force", action="store_true", help="compare even another machine, or another effort")
    parser.add_argument("--format", choices=FORMATS, default="text", help="default: text")
    parser.add_argument("--json", dest="format", action="store_const", const="json", help="as --format json")
    add_folder(parser)


def run(arguments: argparse.Namespace) -> int:
    """Prints the comparison. Exit status 1 where something is worse, 5 where nothing could be compared. Raises
    StoreError."""
    folder = arguments.baseline_dir
    comparison = compare.compare(
        sides(folder, [arguments.before]),
        sides(folder, arguments.after),
        names=(arguments.before, ", ".join(arguments.after)),
        again=sides(folder, arguments.again),
        force=arguments.force,
    )
    _print(_formatted(arguments.format, comparison))
    if comparison.call == "worse":
        return 1
    return 0 if comparison.changes else NOTHING_COMPARED


def sides(folder: Path, given: Sequence[str]) -> tuple[Run, ...]:
    """The runs of one side: each of what is given is a run, a baseline's file, or a baseline's name. Raises
    StoreError."""
    return tuple(run for text in given for run in _runs(folder, text))


def _runs(folder: Path, text: str) -> tuple[Run, ...]:
    path = Path(text)
    if path.is_dir() or path.suffix == ".jsonl":
        return (runs.read(newest.check(path)),)
    if path.exists():
        return baselines.read(path).runs if _is_baseline(path) else (runs.read(path),)
    if os.sep in text or path.suffix == ".json":
        raise StoreError(f"there is no {text}: give a run's folder, its run.json, or a baseline's name")
    if not baselines.path_of(folder, text).exists():
        known = ", ".join(baselines.names(folder)) or "none"
        raise StoreError(
            f"there is no baseline {text!r} in {folder} (there: {known}) and no run of that name: "
            f"name a baseline or a run's folder{newest.named(newest.REPORTS)}"
        )
    return baselines.load(folder, text).runs


def _is_baseline(path: Path) -> bool:
    try:
        return baselines.is_baseline(path.read_bytes())
    except OSError:
        return False  # runs.read says what is wrong with it


def _formatted(name: str, comparison: Comparison) -> str:
    if name == "json":
        told = {"headline": compare_words.headline(comparison), "sentences": compare_words.sentences(comparison)}
        fields = msgspec.to_builtins(comparison)
        return msgspec.json.format(msgspec.json.encode({**told, **fields}), indent=1).decode() + "\n"
    if name == "md":
        return report.render_markdown(comparison)
    colour = style.wants_colour(sys.stdout.isatty(), os.environ)
    width = shutil.get_terminal_size((report.WIDTH, 24)).columns
    return report.render(comparison, width=max(60, width), colour=colour)


def _print(content: str) -> None:
    """Writes to stdout; signs that its encoding lacks become '?'."""
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors="replace")
    sys.stdout.write(content)
    sys.stdout.flush()
