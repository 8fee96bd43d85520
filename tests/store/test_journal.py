"""The journal: whatever moment a run ends at, what it has measured can be read."""

from __future__ import annotations

import errno
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from suite.errors import StoreError
from suite.store import journal
from suite.store.journal import Journal
from tests.store.runs import HEADER, result

WRITER = """
import sys
from pathlib import Path
from suite.store.journal import Journal
from tests.store.runs import HEADER, result
journal = Journal(Path(sys.argv[1]), HEADER)
print("started", flush=True)
for number in range(1, 100_000):
    journal.append(result(number))
    print(number, flush=True)
"""


def _written(folder: Path, count: int = 3, complete: bool | None = True) -> Path:
    book = Journal(folder, HEADER)
    for number in range(1, count + 1):
        book.append(result(number))
    if complete is not None:
        book.end(complete)
    return folder / journal.NAME


def test_a_run_comes_back_as_it_was_written(tmp_path: Path) -> None:
    run = journal.read(_written(tmp_path))
    assert run.results == (result(1), result(2), result(3))
    assert (run.complete, run.machine, run.planned, run.notes) == (True, HEADER.machine, 3, ())


def test_cases_that_were_added_on_the_way_are_planned_too(tmp_path: Path) -> None:
    book = Journal(tmp_path, HEADER)
    book.append(result(1))
    book.plan(HEADER.planned + 1)
    book.append(result(2))
    run = journal.read(tmp_path / journal.NAME)
    assert (run.planned, run.results, run.notes) == (HEADER.planned + 1, (result(1), result(2)), ())


def test_every_prefix_of_a_journal_is_a_readable_run(tmp_path: Path) -> None:
    whole = _written(tmp_path).read_bytes()
    header = whole.index(b"\n") + 1
    prefix = tmp_path / "prefix.jsonl"
    for length in range(header, len(whole) + 1):
        prefix.write_bytes(whole[:length])
        run = journal.read(prefix)
        assert len(run.results) == min(3, whole[:length].count(b"\n") - 1)
        assert run.notes == ()
        assert run.complete == (length == len(whole))


def test_a_run_without_an_end_line_is_incomplete(tmp_path: Path) -> None:
    assert journal.read(_written(tmp_path, complete=None)).complete is False


def test_a_run_that_was_broken_off_is_incomplete(tmp_path: Path) -> None:
    assert journal.read(_written(tmp_path, complete=False)).complete is False


@pytest.mark.parametrize(
    "garbage",
    [
        b'{"result": {"case": "host_c',
        b'{"planned": 3, "end": {"complete": true}}',
        b"\x00" * 40,
        b"[]",
        b"{}",
        b"\xff\xfe",
        b"[" * 5000,
    ],
)
def test_an_unreadable_middle_line_costs_itself_only_and_is_said(tmp_path: Path, garbage: bytes) -> None:
    path = _written(tmp_path)
    lines = path.read_bytes().split(b"\n")
    lines[2] = garbage
    path.write_bytes(b"\n".join(lines))
    run = journal.read(path)
    assert run.results == (result(1), result(3))
    assert run.notes == ("Line 3 of run.jsonl cannot be read and was left out.",)
    assert run.complete is False


def test_a_full_disk_costs_one_result_and_tears_no_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    book = Journal(tmp_path, HEADER)
    book.append(result(1))
    really = os.write
    taken: list[int] = []

    def full_after_ten_bytes(descriptor: int, data: bytes) -> int:
        if taken:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        taken.append(10)
        return really(descriptor, data[:10])

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", full_after_ten_bytes)
        with pytest.raises(StoreError, match="no space left on device"):
            book.append(result(2))
    book.append(result(3))
    book.end(True)
    run = journal.read(tmp_path / journal.NAME)
    assert run.results == (result(1), result(3))
    assert run.notes == ()


def test_two_writers_do_not_share_a_folder(tmp_path: Path) -> None:
    _written(tmp_path)
    with pytest.raises(StoreError, match="every run needs a folder of its own"):
        Journal(tmp_path, HEADER)


def test_ending_twice_is_harmless_and_appending_afterwards_is_not(tmp_path: Path) -> None:
    book = Journal(tmp_path, HEADER)
    book.end(True)
    book.end(False)
    with pytest.raises(StoreError, match="has ended"):
        book.append(result(1))
    assert journal.read(tmp_path / journal.NAME).complete is True


@pytest.mark.parametrize("text", [b"", b"\n", b"hello\n", b"[1]\n", b'{"run": 3}\n', b'{"other": {}}\n', b"\xff\xff\n"])
def test_a_foreign_file_is_refused_in_one_sentence(tmp_path: Path, text: bytes) -> None:
    path = tmp_path / "run.jsonl"
    path.write_bytes(text)
    with pytest.raises(StoreError, match="is not a run of lanecheck"):
        journal.read(path)


def test_a_newer_schema_is_refused_even_where_its_fields_are_unknown(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    path.write_bytes(b'{"run": {"schema": 99, "machine": "elsewhere"}}\n{"later": 1}\n')
    with pytest.raises(StoreError, match=r"newer lanecheck \(schema 99, this one reads 1\): update lanecheck"):
        journal.read(path)


def _kill_after(folder: Path, seconds: float) -> int:
    """Runs a writer, kills it (-9) that long after its first sign of life; the number of results it had confirmed."""
    command = [sys.executable, "-c", WRITER, str(folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[2]) as writer:
        assert writer.stdout is not None
        assert writer.stdout.readline() == "started\n"
        time.sleep(seconds)
        writer.send_signal(signal.SIGKILL)
        confirmed = [line for line in writer.stdout.read().splitlines(keepends=True) if line.endswith("\n")]
    return len(confirmed)


@pytest.mark.parametrize("seed", range(6))
def test_kill_9_loses_no_confirmed_result(tmp_path: Path, seed: int) -> None:
    confirmed = _kill_after(tmp_path, random.Random(seed).uniform(0.0, 0.05))
    run = journal.read(tmp_path / journal.NAME)
    assert len(run.results) - confirmed in (0, 1)
    assert run.results == tuple(result(number) for number in range(1, len(run.results) + 1))
    assert run.complete is False
    assert run.notes == ()
