"""Reading runs from wherever they are, and saying what is wrong with files that are none."""

from __future__ import annotations

import gzip
import json
import os
import time
from dataclasses import replace
from pathlib import Path

import pytest

from suite.errors import StoreError
from suite.records.run import Run
from suite.store import runs
from suite.store.journal import Journal
from tests.store.runs import HEADER, result

RUN = replace(HEADER, results=(result(1), result(2)), complete=True)


def _journal(folder: Path, *numbers: int) -> None:
    book = Journal(folder, HEADER)
    for number in numbers:
        book.append(result(number))


def _edited(folder: Path, **changes: object) -> Path:
    runs.write(folder, RUN)
    path = folder / runs.NAME
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))
    return path


def test_a_written_run_reads_back_from_its_folder_and_its_file(tmp_path: Path) -> None:
    runs.write(tmp_path, RUN)
    assert runs.read(tmp_path) == RUN
    assert runs.read(tmp_path / "run.json") == RUN
    assert runs.is_current(tmp_path, RUN)


def test_the_journal_wins_where_it_has_more(tmp_path: Path) -> None:
    _journal(tmp_path, 1, 2, 3)
    runs.write(tmp_path, replace(RUN, complete=False))
    run = runs.read(tmp_path)
    assert len(run.results) == 3
    assert not runs.is_current(tmp_path, run)


def test_the_complete_file_wins_where_both_have_the_same_results(tmp_path: Path) -> None:
    _journal(tmp_path, 1, 2)
    runs.write(tmp_path, RUN)
    assert runs.read(tmp_path) == RUN


def test_a_folder_with_a_journal_alone_is_enough(tmp_path: Path) -> None:
    _journal(tmp_path, 1)
    assert runs.read(tmp_path).results == (result(1),)


def test_a_broken_run_json_is_replaced_by_the_journal_and_said(tmp_path: Path) -> None:
    _journal(tmp_path, 1)
    (tmp_path / "run.json").write_text('{"schema": 1, "machine"')
    run = runs.read(tmp_path)
    assert run.results == (result(1),)
    assert len(run.notes) == 1
    assert "run.json is not a run of lanecheck" in run.notes[0]


def test_an_empty_folder_is_refused_in_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"holds no run.json and no run.jsonl"):
        runs.read(tmp_path)


def test_a_missing_path_is_refused_in_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"cannot read .*nowhere \(no such file or directory\)"):
        runs.read(tmp_path / "nowhere")


@pytest.mark.parametrize(
    "text", ["", "{}", "[]", "null", "hello", '{"benchmarks": []}', '{"schema": "one"}', "[" * 5000]
)
def test_foreign_files_are_refused_in_one_sentence(tmp_path: Path, text: str) -> None:
    path = tmp_path / "run.json"
    path.write_text(text)
    with pytest.raises(StoreError, match=r"is not a run of lanecheck.*give a run's folder"):
        runs.read(path)


def test_a_newer_schema_says_to_update(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"schema 2, this one reads 1.: update lanecheck"):
        runs.read(_edited(tmp_path, schema=2, machine="in another form"))


def test_a_schema_that_never_was_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="which no lanecheck ever wrote"):
        runs.read(_edited(tmp_path, schema=0))


def test_a_hand_edited_file_names_the_field(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"Expected `int`, got `str`.*planned.*edited by hand"):
        runs.read(_edited(tmp_path, planned="many"))


def test_fields_that_a_later_minor_version_added_are_ignored(tmp_path: Path) -> None:
    assert runs.read(_edited(tmp_path, mood="good")) == RUN


def test_what_another_process_left_half_written_is_not_read(tmp_path: Path) -> None:
    runs.write(tmp_path, RUN)
    (tmp_path / ".run.json.123.tmp").write_text('{"schema": 1')
    assert runs.read(tmp_path) == RUN


def test_a_reader_beside_a_writer_sees_the_old_or_the_new_run(tmp_path: Path) -> None:
    """A child replaces run.json over and over and is killed; at every moment the file is one whole run."""
    sizes = (1, 40)
    whole = [replace(HEADER, results=tuple(result(n) for n in range(size))) for size in sizes]
    runs.write(tmp_path, whole[0])
    child = os.fork()
    if child == 0:
        _rewrite_for_ever(tmp_path, whole)
    until = time.monotonic() + 0.3
    seen = set()
    while time.monotonic() < until:
        seen.add(len(runs.read(tmp_path / runs.NAME).results))
    os.kill(child, 9)
    os.waitpid(child, 0)
    assert len(runs.read(tmp_path / runs.NAME).results) in sizes
    assert seen <= set(sizes)


def _rewrite_for_ever(folder: Path, whole: list[Run]) -> None:
    try:
        while True:
            for run in whole:
                runs.write(folder, run)
    finally:
        os._exit(1)


def test_a_compressed_journal_is_a_run_that_is_kept(tmp_path: Path) -> None:
    _journal(tmp_path, 1, 2)
    plain = tmp_path / "run.jsonl"
    (tmp_path / "run.jsonl.gz").write_bytes(gzip.compress(plain.read_bytes()))
    assert not runs.is_kept(tmp_path)
    plain.unlink()
    assert runs.is_kept(tmp_path)
    assert runs.read(tmp_path).results == runs.read(tmp_path / "run.jsonl.gz").results == (result(1), result(2))


@pytest.mark.parametrize("torn", [b"", b"\x1f\x8b", b"no gzip", gzip.compress(b"x" * 1000)[:-9]])
def test_a_torn_compressed_journal_is_refused_with_a_sentence(tmp_path: Path, torn: bytes) -> None:
    (tmp_path / "run.jsonl.gz").write_bytes(torn)
    with pytest.raises(StoreError, match=r"run\.jsonl\.gz"):
        runs.read(tmp_path)
