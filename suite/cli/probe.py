"""`lanecheck probe`: what is there. Needs neither torch nor cupy, and answers in under a second."""

from __future__ import annotations

import argparse
import os
import shutil
import sys
from pathlib import Path

import msgspec

from suite.cli import source
from suite.errors import PlanError, StoreError
from suite.probe import machine, recording
from suite.records.machine import Machine
from suite.records.scenario import Scenario
from suite.report import style
from suite.report.machine import render


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `lanecheck probe`."""
    source = parser.add_mutually_exclusive_group()
    source.add_argument("--root", type=Path, metavar="DIR", help="a recorded tree with sys/ and proc/ in it")
    source.add_argument("--machine", type=Path, metavar="FILE", help="a recording, or the JSON of a machine")
    parser.add_argument("--json", action="store_true", help="print the record instead of a table")
    parser.add_argument("--write-expect", type=Path, metavar="FILE", help="draft a manifest for `pytest --expect FILE`")
    parser.add_argument("--no-nvml", action="store_true", help="do not ask NVML: no GPU is woken")
    parser.add_argument("--timeout", type=seconds, default=10.0, metavar="S", help="give NVML S seconds (10)")


def run(arguments: argparse.Namespace) -> int:
    """Prints the machine. Where it is not this one, that is said: in the text, with --json on stderr."""
    found, origin = _read(arguments)
    if arguments.write_expect is not None:
        return _draft(found, arguments.write_expect)
    if arguments.json:
        print(msgspec.json.format(msgspec.json.encode(found), indent=2).decode())
        if origin:
            print(origin, file=sys.stderr)
        return 0
    width = max(60, shutil.get_terminal_size().columns)
    colour = style.wants_colour(sys.stdout.isatty(), os.environ)
    print(render(found, width=width, colour=colour, source=origin))
    return 0


def _draft(found: Machine, path: Path) -> int:
    """Writes a manifest. An existing one, which somebody may have edited, is not overwritten."""
    from suite.judge import expect
    from suite.store import files

    if path.exists():
        raise StoreError(f"{path} is there already: name another file, or remove it")
    drafted = expect.draft(found)
    if not drafted.gpus:
        raise PlanError(f"there is nothing to expect: {found.why_no_gpu or 'no GPU was found'}")
    files.write_atomic(path, expect.write(drafted).encode())
    count = "1 GPU" if len(drafted.gpus) == 1 else f"{len(drafted.gpus)} GPUs"
    print(
        f"{path}: what both ends of the link of {count} support. Correct what is narrower or slower by design, "
        f"add floors (bytes per second by case), then run: pytest benchmarks/ --expect {path}"
    )
    return 0


def _read(arguments: argparse.Namespace) -> tuple[Machine, str | None]:
    """The machine, and a sentence that says where it comes from; None for this one."""
    if arguments.machine is not None:
        scenario = recording.load(arguments.machine)
        return scenario.machine, source.sentence(scenario, arguments.machine)
    if arguments.root is not None:
        found = recording.load_tree(arguments.root)
        return found, source.sentence(Scenario(found), arguments.root)
    return machine.read(nvml=not arguments.no_nvml, timeout_s=arguments.timeout), None


def seconds(text: str) -> float:
    """A number of seconds above 0, for argparse."""
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < 3600:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds above 0")
    return value
