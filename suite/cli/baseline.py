"""`lanecheck baseline save | list | show | remove`: runs under a name, to be compared with later."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from suite.cli import newest
from suite.errors import StoreError
from suite.records.comparison import Baseline
from suite.records.run import Run
from suite.store import baselines, compare, runs


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The actions of `lanecheck baseline`."""
    actions = parser.add_subparsers(dest="action", required=True, metavar="save|list|show|remove")
    save = _action(actions, "save", "save one or several runs of this machine under a name, to compare later ones with")
    save.add_argument("name", metavar="NAME")
    save.add_argument("runs", nargs="+", type=Path, metavar="RUN", help="runs' folders, run.json or run.jsonl files")
    mode = save.add_mutually_exclusive_group()
    mode.add_argument("--add", action="store_true", help="add to the baseline that is there")
    mode.add_argument("--replace", action="store_true", help="replace the baseline that is there")
    save.add_argument(
        "--force", action="store_true", help="save even runs that do not belong together or were broken off"
    )
    show = _action(actions, "show", "show what is in a baseline: its machine, and one line a run")
    show.add_argument("name", metavar="NAME")
    show.add_argument("--json", action="store_true", help="print the whole file")
    remove = _action(actions, "remove", "remove a baseline's file; the runs that it was saved from stay")
    remove.add_argument("name", metavar="NAME")
    for action in (save, _action(actions, "list", "list the baselines that there are"), show, remove):
        add_folder(action)


def _action(actions: Any, name: str, text: str) -> argparse.ArgumentParser:
    """Its text is in the list of actions and in its own --help. actions: argparse has no public name for their type."""
    parser: argparse.ArgumentParser = actions.add_parser(name, help=text, description=f"{text[0].upper()}{text[1:]}.")
    return parser


def add_folder(parser: argparse.ArgumentParser) -> None:
    """The option --baseline-dir."""
    parser.add_argument(
        "--baseline-dir", type=Path, default=baselines.FOLDER, metavar="DIR", help=f"default: {baselines.FOLDER}/"
    )


def run(arguments: argparse.Namespace) -> int:
    """Does what is asked. Raises StoreError."""
    actions: dict[str, Callable[[argparse.Namespace], int]] = {
        "save": _save, "list": _list, "show": _show, "remove": _remove,
    }  # fmt: skip
    return actions[arguments.action](arguments)


def _save(arguments: argparse.Namespace) -> int:
    given = [runs.read(newest.check(path)) for path in arguments.runs]
    folder, name = arguments.baseline_dir, arguments.name
    there = _there(folder, name) if arguments.add else ()
    _must_be_whole(given, force=arguments.force)
    reasons = list(dict.fromkeys(compare.one_machine([*there, *given])))
    if reasons and not arguments.force:
        raise StoreError(f"these runs do not belong together: {'; '.join(reasons)}: save them apart, or add --force")
    mode: baselines.Mode = "add" if arguments.add else "replace" if arguments.replace else "new"
    saved = baselines.save(folder, name, given, mode)
    twins = len(there) + len(given) - len(saved.runs)
    if twins:
        print(f"{twins} run{'s' if twins > 1 else ''} given twice, kept once", file=sys.stderr)
    print(f"{baselines.path_of(folder, name)}: {_runs(saved.runs)}")
    return 0


def _must_be_whole(given: Sequence[Run], *, force: bool) -> None:
    """Raises StoreError for a run that measured nothing, and unless forced for one that was broken off."""
    for run in given:
        why = baselines.unfit(run)
        empty = not any(result.samples_s for result in run.results)
        if why is not None and (empty or not force):
            also = "" if empty else ", or add --force"
            raise StoreError(f"the run of {run.started or 'an unknown time'} {why}: save a whole one{also}")


def _there(folder: Path, name: str) -> Sequence[Run]:
    path = baselines.path_of(folder, name)
    return baselines.read(path).runs if path.exists() else ()


def _list(arguments: argparse.Namespace) -> int:
    found = baselines.names(arguments.baseline_dir)
    if not found:
        print(f"no baseline in {arguments.baseline_dir}: save one with `lanecheck baseline save NAME RUN`")
    for name in found:
        try:
            print(f"{name}: {_runs(baselines.load(arguments.baseline_dir, name).runs)}")
        except StoreError as error:  # one that cannot be read hides no other
            print(f"{name}: {error}")
    return 0


def _show(arguments: argparse.Namespace) -> int:
    _must_be_there(arguments)
    baseline = baselines.load(arguments.baseline_dir, arguments.name)
    if arguments.json:
        print(msgspec.json.format(msgspec.json.encode(baseline), indent=1).decode())
        return 0
    print("\n".join(_described(baseline)))
    return 0


def _described(baseline: Baseline) -> Iterator[str]:
    yield f"{baseline.name}: {_runs(baseline.runs)}; saved {baseline.saved or 'at an unknown time'}"
    machine = baseline.runs[-1].machine
    names = [gpu.name for gpu in machine.gpus]
    counted = ", ".join(f"{names.count(name)} × {name}" for name in dict.fromkeys(names)) or "no GPU"
    yield f"  {counted}; {machine.cpu.model or 'CPU not known'}; {machine.environment.board or 'board not known'}"
    for run in baseline.runs:
        failing = sum(1 for result in run.results if result.verdict and result.verdict.status == "FAIL")
        state = "" if run.complete else ", broken off"
        kind = "SIMULATED, " if run.simulated else ""
        boot = run.machine.environment.boot or "not known"
        yield (
            f"  {run.started or 'unknown time'}  {kind}{run.settings.effort}, {len(run.results)} cases, "
            f"{failing} FAIL{state}, boot {boot}"
        )


def _must_be_there(arguments: argparse.Namespace) -> None:
    """Raises StoreError where there is no baseline at all: to save one is no answer to who wants one removed."""
    folder, name = arguments.baseline_dir, arguments.name
    if not baselines.path_of(folder, name).exists() and not baselines.names(folder):
        raise StoreError(
            f"there is no baseline {name!r}: {folder} holds none at all; look elsewhere with --baseline-dir DIR"
        )


def _remove(arguments: argparse.Namespace) -> int:
    _must_be_there(arguments)
    print(f"removed {baselines.remove(arguments.baseline_dir, arguments.name)}")
    return 0


def _runs(found: Sequence[Run]) -> str:
    boots = {run.machine.environment.boot for run in found}
    known = (
        "" if None in boots or len(found) == 1 else f" in {'one boot' if len(boots) == 1 else f'{len(boots)} boots'}"
    )
    return f"{len(found)} run{'s' if len(found) != 1 else ''}{known}"
