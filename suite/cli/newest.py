"""Runs below a folder: which one is the newest, and which ones to name where none was given."""

from __future__ import annotations

import re
from pathlib import Path

from suite.errors import StoreError
from suite.store import journal, runs

REPORTS = Path("reports")
_STAMP = re.compile(r"(\d{8}-\d{6})(?:-(\d+))?")  # of a run's folder: its start, and a number where that was taken
_NAMED = 5  # runs named in a sentence
_FILES = (runs.NAME, journal.NAME, journal.KEPT)


def newest(folder: Path = REPORTS) -> Path:
    """The run in a folder that was started last. Raises StoreError where there is none."""
    stamped = [path for path in _below(folder) if _STAMP.fullmatch(path.name)]
    if not stamped:
        raise StoreError(f"there is no run in {folder}/ yet: run pytest benchmarks/, or name a RUN{named(folder)}")
    return stamped[-1]


def check(path: Path) -> Path:
    """The path of a run, as it was given. Raises StoreError with the runs that there are, where it is none."""
    if not path.exists():
        raise StoreError(f"there is no {path}: name a run's folder, its run.json or its run.jsonl{named(REPORTS)}")
    if path.is_dir() and not _is_run(path):
        below = named(path)
        raise StoreError(
            f"{path} is no run, it has runs in it: name one of them{below}" if below
            else f"{path} holds no run.json and no run.jsonl: name the folder of one run{named(REPORTS)}"
        )  # fmt: skip
    if path.is_file() and path.suffix in (".md", ".html"):
        kept = f": name its folder, {path.parent}" if _is_run(path.parent) else ": name a run's folder"
        raise StoreError(f"{path.name} is what a run is shown as, its figures are in run.json{kept}")
    return path


def named(folder: Path) -> str:
    """The runs in a folder, newest first, to be put behind a sentence; empty where there is none."""
    found = _below(folder)
    if not found:
        return ""
    more = f" and {len(found) - _NAMED} more" if len(found) > _NAMED else ""
    return f" (there {'is' if len(found) == 1 else 'are'} {', '.join(map(str, found[: -_NAMED - 1 : -1]))}{more})"


def _below(folder: Path) -> list[Path]:
    """Runs in a folder, those with a stamp last, by their start."""
    try:
        return sorted((path for path in folder.iterdir() if _is_run(path)), key=_start)
    except OSError:  # no such folder, or one that may not be read: no run is known
        return []


def _start(path: Path) -> tuple[str, int, str]:
    found = _STAMP.fullmatch(path.name)
    return (found[1], int(found[2] or 1), path.name) if found else ("", 0, path.name)


def _is_run(path: Path) -> bool:
    return any((path / name).exists() for name in _FILES)
