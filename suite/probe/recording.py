"""Recordings: a machine saved to a file, to be looked at elsewhere, and read back from a folder, archive or JSON."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec

from suite.errors import ProbeError
from suite.probe import archive, machine, plausible, snapshot
from suite.probe.tree import Tree, read_plain
from suite.records.machine import Machine
from suite.records.scenario import Scenario

_MOST_JSON = 64 << 20
_NAMED = 5  # files named in a sentence


def record(path: Path, *, root: Path = Path("/"), nvml: bool = True, timeout_s: float = 10.0) -> int:
    """Saves what the probe reads below `root` to a new .tar.gz, and answers how many files it holds. Raises ProbeError.

    No serial numbers, UUIDs, network addresses or host names: see snapshot.py for what is kept.
    """
    if not path.name.endswith(".tar.gz"):
        raise ProbeError(f"{path.name} must end in .tar.gz")
    if path.exists():
        raise ProbeError(f"{path} is there already: choose another name")
    tree = Tree(root)
    content = snapshot.take(tree)  # before NVML wakes anything
    facts = machine.without_gpus(tree)
    answers = machine.answers(tree, nvml, timeout_s)
    content[machine.PROCESS_FILE] = msgspec.json.encode(
        machine.Process(machine.SCHEMA, facts.software, facts.environment, facts.memory_modules)
    )
    if answers.problem != "not_recorded":
        content[machine.NVML_FILE] = msgspec.json.encode(answers)
    archive.pack(content, path)
    return len(content)


def load(path: Path) -> Scenario:
    """A recorded or described machine: a folder with sys/, a .tar.gz or .tar.bz2 of one, or the JSON of a Scenario or
    a Machine (`lanecheck probe --json`). Raises ProbeError, one sentence."""
    if path.is_dir():
        return Scenario(load_tree(path))
    if not path.exists():
        raise ProbeError(
            f"there is no {path}: name a folder with sys/, a recording (.tar.gz) or a JSON file{_beside(path)}"
        )
    data = read_plain(path, _MOST_JSON + 1)
    if data is None:
        raise ProbeError(f"{path} cannot be read: name a folder with sys/, a recording (.tar.gz) or a JSON file")
    if archive.is_archive(data):
        return Scenario(_unpacked(path))
    if len(data) > _MOST_JSON:
        raise ProbeError(f"{path.name} is larger than {_MOST_JSON >> 20} MiB: it describes no machine")
    return described(data, path.name)


def _beside(path: Path) -> str:
    """The files that it may have been, to be put behind a sentence; empty where there is none."""
    try:
        found = sorted(p.name for p in path.parent.iterdir() if p.name.endswith((".json", ".tar.gz", ".tar.bz2")))
    except OSError:  # no such folder either
        return ""
    more = f" and {len(found) - _NAMED} more" if len(found) > _NAMED else ""
    return f" (in {path.parent} there is {', '.join(found[:_NAMED])}{more})" if found else ""


def load_tree(path: Path) -> Machine:
    """The machine in a folder with sys/ and proc/. Raises ProbeError where there is none."""
    if not path.is_dir():
        raise ProbeError(f"{path} is no folder: name one with sys/ (and proc/) in it")
    return machine.read(_tree(path), nvml=False)


def described(data: bytes, name: str) -> Scenario:
    """A Scenario, or a bare Machine, from JSON. Unknown fields are refused: a misspelt one would be ignored. A Scenario
    without a title gets its file's name, a Machine has none: that tells them apart."""
    try:
        raw = msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ProbeError(f"{name} is neither a recording nor JSON: {error}") from error
    if not isinstance(raw, dict) or not raw.keys() & {"machine", "nodes", "pci", "gpus"}:
        raise ProbeError(f"{name} describes no machine: the fields machine, or nodes, pci and gpus, are missing")
    kind: type[Scenario] | type[Machine] = Scenario if "machine" in raw else Machine
    found = machine.decoded(data, kind, name)
    unknown = _unknown(raw, msgspec.to_builtins(found), "")
    if unknown:
        raise ProbeError(f"{name} has a field that is not known: {unknown}")
    scenario = Scenario(found) if isinstance(found, Machine) else found
    plausible.check(scenario, name)
    if isinstance(found, Machine):
        return scenario
    return found if found.title else replace(found, title=Path(name).stem)


def _unpacked(path: Path) -> Machine:
    with tempfile.TemporaryDirectory(prefix="lanecheck-") as folder:
        archive.unpack(path, Path(folder))
        return machine.read(_tree(Path(folder)))


def _tree(folder: Path) -> Path:
    """The folder with sys/ in it: the one named, or one inside it (hwloc's archives have a folder of their own)."""
    candidates = [folder, *sorted(p for p in folder.iterdir() if p.is_dir() and not p.is_symlink())[:64]]
    found = next((c for c in candidates if (c / "sys").is_dir()), None)
    if found is None:
        raise ProbeError(f"{folder.name} holds no machine: a folder with sys/ (and proc/) in it is needed")
    return found


def _unknown(raw: Any, known: Any, place: str) -> str | None:
    """Where the first field stands that no record has; None where all are known."""
    if isinstance(raw, dict) and isinstance(known, dict):
        for name, value in raw.items():
            if name not in known:
                return f"{place}{name}"
            if found := _unknown(value, known[name], f"{place}{name}."):
                return found
    if isinstance(raw, list) and isinstance(known, list | tuple):
        pairs = enumerate(zip(raw, known, strict=False))
        return next((found for i, (r, k) in pairs if (found := _unknown(r, k, f"{place[:-1]}[{i}]."))), None)
    return None
