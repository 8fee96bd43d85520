"""Baselines: runs of one machine under a name, one plain file each, to be committed or shared.

A file is replaced in one step under a lock of its own, so that two writers add both their runs and a killed one
leaves the old file or the new one.
"""

from __future__ import annotations

import fcntl
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

import msgspec

from suite.errors import StoreError
from suite.records.comparison import Baseline
from suite.records.run import Run
from suite.store import files, schema

FOLDER = Path("reports") / "baselines"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_GIVE = "give a baseline that `lanecheck baseline save` wrote; `lanecheck baseline list` names them"
Mode = Literal["new", "add", "replace"]


def save(folder: Path, name: str, runs: Sequence[Run], mode: Mode = "new") -> Baseline:
    """Writes a baseline; add: to the one that is there, if any; new: refused where there is one. Raises StoreError.

    A run that is in the baseline already is not added twice: it would pass for a second, independent one.
    """
    path = path_of(folder, name)
    _make(folder)
    with _locked(path):
        if mode == "new" and path.exists():
            raise StoreError(
                f"baseline {name!r} is there already ({path}): add to it with --add, write it anew with --replace, "
                "or choose another name"
            )
        there = read(path).runs if mode == "add" and path.exists() else ()
        baseline = Baseline(name, _in_order([*there, *runs]), datetime.now(UTC).isoformat(timespec="seconds"))
        _write(path, encode(baseline))
    return baseline


def unfit(run: Run) -> str | None:
    """Why a run is no baseline, as the end of a sentence about it; None where it can be one."""
    if not any(result.samples_s for result in run.results):
        return "measured nothing"
    return None if run.complete else f"was broken off: {len(run.results)} of {run.planned} cases ended"


def load(folder: Path, name: str) -> Baseline:
    """A baseline by name. Raises StoreError with the names that there are."""
    path = path_of(folder, name)
    if not path.exists():
        known = ", ".join(names(folder))
        raise StoreError(
            f"there is no baseline {name!r} in {folder}: "
            + (f"there are {known}" if known else "save one with `lanecheck baseline save NAME RUN`")
        )
    return read(path)


def remove(folder: Path, name: str) -> Path:
    """Deletes a baseline's file and returns where it was. Raises StoreError."""
    load_path = path_of(folder, name)
    if not load_path.exists():
        load(folder, name)  # says which ones there are
    try:
        with _locked(load_path):
            load_path.unlink()
    except OSError as error:
        raise StoreError(f"cannot remove {load_path} ({_reason(error)})") from error
    return load_path


def names(folder: Path) -> tuple[str, ...]:
    """The names of all baselines in a folder, sorted; none where there is no folder."""
    return tuple(sorted(path.stem for path in folder.glob("*.json") if _NAME.fullmatch(path.stem)))


def read(path: Path) -> Baseline:
    """The baseline in a file. Raises StoreError with one sentence; nothing on the disk is touched."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise StoreError(f"cannot read {path} ({_reason(error)}): {_GIVE}") from error
    if not is_baseline(data):
        raise StoreError(f"{path} is not a baseline of lanecheck, or not a whole one: {_GIVE}")
    schema.check(path, msgspec.json.decode(data, type=schema.Peek))
    baseline = schema.decode(path, data, Baseline)
    if not baseline.runs:
        raise StoreError(f"{path} holds no run: save it again with `lanecheck baseline save --replace`")
    return baseline


def is_baseline(data: bytes) -> bool:
    """Whether a file's text is whole JSON with a schema and runs: true of files that a newer lanecheck wrote, too."""
    try:
        found = msgspec.json.decode(data, type=dict[str, msgspec.Raw])
        return {"schema", "runs", "name"} <= found.keys() and isinstance(msgspec.json.decode(found["schema"]), int)
    except (msgspec.MsgspecError, RecursionError):
        return False


def encode(baseline: Baseline) -> bytes:
    """The text of a baseline's file."""
    return msgspec.json.format(msgspec.json.encode(baseline), indent=1) + b"\n"


def path_of(folder: Path, name: str) -> Path:
    """Where a baseline's file is. Raises StoreError for a name that cannot be a file's."""
    if not _NAME.fullmatch(name):
        raise StoreError(
            f"{name!r} cannot be a baseline's name: use letters, digits, '.', '_' and '-', and begin with a letter "
            "or a digit"
        )
    return folder / f"{name}.json"


def same_run(one: Run, other: Run) -> bool:
    """The two are one run, written at different moments of it perhaps: equal start and equal first samples."""
    if one.started != other.started or one.machine.environment.boot != other.machine.environment.boot:
        return False
    pairs = zip(one.results, other.results, strict=False)
    return all(a.case == b.case and a.samples_s == b.samples_s for a, b in pairs)


def _in_order(runs: Sequence[Run]) -> tuple[Run, ...]:
    """Oldest first, each run once: the fuller one of two that are the same."""
    kept: list[Run] = []
    for run in runs:
        twin = next((place for place, other in enumerate(kept) if same_run(run, other)), None)
        if twin is None:
            kept.append(run)
        elif len(run.results) > len(kept[twin].results):
            kept[twin] = run
    return tuple(sorted(kept, key=lambda run: run.started or ""))


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Alone with this baseline until the block ends; a writer that dies gives the lock back."""
    lock = path.with_name(f".{path.name}.lock")
    try:
        descriptor = os.open(lock, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o666)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        except OSError:
            os.close(descriptor)
            raise
    except OSError as error:
        raise _cannot_write(path, error) from error
    try:
        yield
    finally:
        os.close(descriptor)


def _write(path: Path, data: bytes) -> None:
    """Under the lock no other writer of this file lives: what a killed one left beside it is cleared away."""
    for left in path.parent.glob(f".{path.name}.*.tmp"):
        left.unlink(missing_ok=True)
    try:
        files.write_atomic(path, data)
    except StoreError as error:
        if isinstance(error.__cause__, OSError):
            raise _cannot_write(path, error.__cause__) from error.__cause__
        raise


def _make(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise _cannot_write(folder, error) from error


def _cannot_write(path: Path, error: OSError) -> StoreError:
    return StoreError(f"cannot write {path} ({_reason(error)}): choose another folder with --baseline-dir")


def _reason(error: OSError) -> str:
    return (error.strerror or str(error)).lower()
