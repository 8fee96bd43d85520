"""run.jsonl: a run as it grows. A header line, one line a result, an end line; every prefix is a readable run.

Lines are {"run": …}, {"result": …}, {"planned": …} where cases were added to those of the header, and {"end":
{"complete": …}}. Each is on the disk before the next case starts.
"""

from __future__ import annotations

import gzip
import os
import zlib
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec

from suite.errors import StoreError
from suite.records.run import Result, Run
from suite.store import files, schema

NAME = "run.jsonl"
KEPT = "run.jsonl.gz"  # what `gzip run.jsonl` makes of it, for runs that are kept and not rebuilt


@dataclass(frozen=True)
class End:
    """The last line. complete: every planned case ended."""

    complete: bool


class Journal:
    """Appends results to run.jsonl in a run's folder. One writer a folder: an existing journal is refused."""

    def __init__(self, folder: Path, run: Run) -> None:
        """Writes the header: the run without its results. Raises StoreError."""
        self._path = folder / NAME
        if self._path.exists():
            raise StoreError(f"{self._path} is there already: every run needs a folder of its own")
        # The header appears whole or not at all, so that no reader ever meets a journal without one.
        files.write_atomic(self._path, _line("run", replace(run, results=(), complete=False)))
        self._descriptor = self._open()
        self._length = os.fstat(self._descriptor).st_size

    def append(self, result: Result) -> None:
        """Adds one result. A measured one is on the disk when this returns; others (a large machine has thousands of
        cases that another one stands for) are on their way there. Raises StoreError."""
        self._write(_line("result", result), settled=bool(result.samples_s or result.error))

    def plan(self, planned: int) -> None:
        """Says that the run has as many cases now: what the header said is on the disk already. Raises StoreError."""
        self._write(_line("planned", planned))

    def end(self, complete: bool) -> None:
        """Adds the end line and closes the file. Safe to call twice. Raises StoreError."""
        if self._descriptor < 0:
            return
        try:
            self._write(_line("end", End(complete)))
        finally:
            os.close(self._descriptor)
            self._descriptor = -1

    def _open(self) -> int:
        try:
            return os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
        except OSError as error:
            raise files.cannot_write(self._path, error) from error

    def _write(self, line: bytes, *, settled: bool = True) -> None:
        if self._descriptor < 0:
            raise StoreError(f"{self._path} has ended: nothing can be added to it")
        try:
            files.write_all(self._descriptor, line)
            if settled:
                os.fdatasync(self._descriptor)
        except OSError as error:
            self._drop_torn_line()
            raise files.cannot_write(self._path, error) from error
        self._length += len(line)

    def _drop_torn_line(self) -> None:
        """A full disk took half a line: without this the next result would be glued to it."""
        try:
            os.ftruncate(self._descriptor, self._length)
        except OSError as error:
            raise files.cannot_write(self._path, error) from error


def read(path: Path) -> Run:
    """The run in a journal, compressed or not, as far as it came. A torn last line is dropped; an unreadable one before
    it is left out, said in the run's notes, and leaves the run incomplete. Raises StoreError."""
    lines = _content(path).split(b"\n")
    run = _header(path, lines[0])
    return _with_lines(run, path, lines[1:])


def _content(path: Path) -> bytes:
    try:
        data = path.read_bytes()
        return gzip.decompress(data) if path.suffix == ".gz" else data
    except (OSError, EOFError, zlib.error) as error:
        raise schema.cannot_read(path, error) from error


@dataclass(frozen=True)
class _Line:
    """Any line after the header; exactly one of them is set."""

    result: Result | None = None
    planned: int | None = None
    end: End | None = None


@dataclass(frozen=True)
class _Header:
    run: Run


def _header(path: Path, line: bytes) -> Run:
    start = schema.Peek()
    try:
        start = msgspec.json.decode(line, type=dict[str, schema.Peek]).get("run", start)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise schema.foreign(path, error) from error
    schema.check(path, start)
    return schema.decode(path, line, _Header).run


def _with_lines(run: Run, path: Path, lines: list[bytes]) -> Run:
    """lines: all but the header; the last one is what follows the final newline: empty, or torn by a kill."""
    results: list[Result] = []
    notes: list[str] = []
    complete, planned = False, run.planned
    decoder = msgspec.json.Decoder(_Line)
    for number, text in enumerate(lines[:-1], start=2):
        line = _decode(decoder, text)
        if line is None:
            notes.append(f"Line {number} of {path.name} cannot be read and was left out.")
        elif line.result is not None:
            results.append(line.result)
        elif line.planned is not None:
            planned = line.planned
        elif line.end is not None:
            complete = line.end.complete
    whole = complete and not notes
    return replace(run, results=tuple(results), planned=planned, complete=whole, notes=(*run.notes, *notes))


def _decode(decoder: msgspec.json.Decoder[_Line], text: bytes) -> _Line | None:
    """The line, or None where it is none of ours."""
    try:
        line = decoder.decode(text)
    except (msgspec.MsgspecError, RecursionError):
        return None
    return line if [line.result, line.planned, line.end].count(None) == 2 else None


def _line(kind: str, value: Run | Result | End | int) -> bytes:
    return msgspec.json.encode({kind: value}) + b"\n"
