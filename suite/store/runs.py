"""Whole runs on disk: run.json for reading, run.jsonl (the journal) for what a killed run still had to say."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import msgspec

from suite.errors import StoreError
from suite.records.run import Run
from suite.store import files, journal, schema

NAME = "run.json"


def read(path: Path) -> Run:
    """The run in a folder, a run.json or a run.jsonl (or run.jsonl.gz). Of a folder with several, the one that has more
    results.

    Raises StoreError with one sentence. Where one of the two cannot be read, the other is taken and the run's notes
    say so.
    """
    if path.is_dir():
        return _read_folder(path)
    return journal.read(path) if path.name.endswith((".jsonl", ".jsonl.gz")) else _read_json(path)


def write(folder: Path, run: Run) -> None:
    """Replaces run.json in a folder. Raises StoreError."""
    files.write_atomic(folder / NAME, encode(run))


def encode(run: Run) -> bytes:
    """A run as the text of run.json."""
    return msgspec.json.format(msgspec.json.encode(run), indent=1) + b"\n"


def is_kept(folder: Path) -> bool:
    """Whether a folder holds a compressed journal alone: a run that is kept as it is."""
    return (folder / journal.KEPT).exists() and not any((folder / name).exists() for name in (NAME, journal.NAME))


def is_current(folder: Path, run: Run) -> bool:
    """Whether run.json in a folder holds this run already; False where it lags, is missing or cannot be read."""
    try:
        return _read_json(folder / NAME) == run
    except StoreError:
        return False


def _read_folder(folder: Path) -> Run:
    present = [p for p in (folder / journal.NAME, folder / NAME, folder / journal.KEPT) if p.exists()]
    if not present:
        raise StoreError(f"{folder} holds no run.json and no run.jsonl: give the folder of one run")
    found: list[Run] = []
    errors: list[StoreError] = []
    for path in present:
        try:
            found.append(read(path))
        except StoreError as error:
            errors.append(error)
    if not found:
        raise errors[0]
    best = max(found, key=lambda run: (len(run.results), run.complete))
    return replace(best, notes=(*best.notes, *(f"{_capital(str(error))}." for error in errors)))


def _read_json(path: Path) -> Run:
    try:
        data = path.read_bytes()
    except OSError as error:
        raise schema.cannot_read(path, error) from error
    try:
        peek = msgspec.json.decode(data, type=schema.Peek)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise schema.foreign(path, error) from error
    schema.check(path, peek)
    return schema.decode(path, data, Run)


def _capital(sentence: str) -> str:
    return sentence[:1].upper() + sentence[1:]
