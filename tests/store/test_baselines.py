"""Baselines on disk: whatever happens to the writer or the file, nothing is lost and nothing mixes."""

from __future__ import annotations

import json
import multiprocessing
import os
import random
import signal
import stat
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from suite.errors import StoreError
from suite.store import baselines
from tests.store.small import copy, run, runs

ROOT = Path(__file__).parents[2]
KILLS = 200


def _save(folder: Path, count: int = 2, name: str = "before") -> Path:
    baselines.save(folder, name, runs([26.0 + n for n in range(count)]))
    return folder / f"{name}.json"


def test_a_saved_baseline_reads_back(tmp_path: Path) -> None:
    _save(tmp_path)
    found = baselines.load(tmp_path, "before")
    assert found.runs == runs([26.0, 27.0])
    assert found.saved is not None
    assert baselines.names(tmp_path) == ("before",)


def test_a_folder_that_is_not_there_is_made(tmp_path: Path) -> None:
    _save(tmp_path / "a" / "b")
    assert baselines.names(tmp_path / "a" / "b") == ("before",)
    assert baselines.names(tmp_path / "elsewhere") == ()


def test_a_baseline_is_not_overwritten_unless_it_is_asked_for(tmp_path: Path) -> None:
    _save(tmp_path)
    with pytest.raises(StoreError, match=r"is there already.*--add.*--replace"):
        _save(tmp_path)
    baselines.save(tmp_path, "before", runs([1.0]), "replace")
    assert len(baselines.load(tmp_path, "before").runs) == 1


def test_runs_are_added_oldest_first_and_none_twice(tmp_path: Path) -> None:
    late, early = run(copy(26.0), start=9), run(copy(27.0), start=1)
    baselines.save(tmp_path, "before", [late])
    baselines.save(tmp_path, "before", [early, late], "add")
    assert baselines.load(tmp_path, "before").runs == (early, late)


def test_a_run_that_is_given_again_at_a_later_moment_replaces_itself(tmp_path: Path) -> None:
    part = run(copy(26.0), start=1, complete=False)
    whole = replace(part, results=(*part.results, copy(3.0, "host_copy/other")), complete=True)
    baselines.save(tmp_path, "before", [part])
    assert baselines.save(tmp_path, "before", [whole], "add").runs == (whole,)


def test_removing_deletes_the_file_and_an_unknown_name_is_told_what_there_is(tmp_path: Path) -> None:
    path = _save(tmp_path)
    with pytest.raises(StoreError, match=r"there is no baseline 'after' in .*there are before"):
        baselines.remove(tmp_path, "after")
    baselines.remove(tmp_path, "before")
    assert not path.exists()
    with pytest.raises(StoreError, match="save one with"):
        baselines.load(tmp_path, "before")


@pytest.mark.parametrize("name", ["", "..", "../up", "a/b", ".hidden", "-x", "name with space", "a" * 101, "ü"])
def test_a_name_that_cannot_be_a_files_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(StoreError, match="cannot be a baseline's name"):
        baselines.save(tmp_path, name, runs([1.0]))


@pytest.mark.parametrize("part", [0.0, 0.01, 0.3, 0.9, 0.999])
def test_a_truncated_file_is_refused_in_one_sentence_and_left_as_it_is(tmp_path: Path, part: float) -> None:
    path = _save(tmp_path)
    torn = path.read_bytes()[: int(part * path.stat().st_size)]
    path.write_bytes(torn)
    for mode in ("new", "add"):
        with pytest.raises(StoreError, match=r"is not a baseline of lanecheck|is there already"):
            baselines.save(tmp_path, "before", runs([1.0]), mode)
    assert path.read_bytes() == torn


@pytest.mark.parametrize("text", ["{}", "[]", "null", "hello", '{"schema": 1}', '{"benchmarks": []}', "[" * 5000])
def test_a_foreign_file_is_refused_in_one_sentence(tmp_path: Path, text: str) -> None:
    path = tmp_path / "foreign.json"
    path.write_text(text)
    with pytest.raises(StoreError, match=r"is not a baseline of lanecheck.*`lanecheck baseline list`"):
        baselines.load(tmp_path, "foreign")


def test_a_newer_schema_says_to_update(tmp_path: Path) -> None:
    path = _save(tmp_path)
    path.write_text(json.dumps(json.loads(path.read_text()) | {"schema": 2, "runs": "in another form"}))
    with pytest.raises(StoreError, match="newer lanecheck"):
        baselines.load(tmp_path, "before")


def test_a_hand_edited_file_names_the_place(tmp_path: Path) -> None:
    path = _save(tmp_path)
    data = json.loads(path.read_text())
    data["runs"][1]["results"][0]["bandwidth"] = "fast"
    path.write_text(json.dumps(data))
    with pytest.raises(StoreError, match=r"runs.*bandwidth.*edited by hand"):
        baselines.load(tmp_path, "before")


def test_an_empty_baseline_is_refused(tmp_path: Path) -> None:
    path = _save(tmp_path)
    path.write_text(json.dumps(json.loads(path.read_text()) | {"runs": []}))
    with pytest.raises(StoreError, match="holds no run"):
        baselines.load(tmp_path, "before")


def test_a_folder_that_may_not_be_written_to_says_so(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StoreError, match=r"cannot write.*--baseline-dir"):
        _save(tmp_path / "file" / "below")


def test_a_baselines_file_is_plain_and_its_group_may_read_it(tmp_path: Path) -> None:
    mask = os.umask(0o022)
    try:
        path = _save(tmp_path)
    finally:
        os.umask(mask)
    assert stat.S_IMODE(path.stat().st_mode) == 0o644
    assert json.loads(path.read_text())["name"] == "before"


def _add(folder: Path, writer: int, count: int) -> None:
    for number in range(count):
        baselines.save(folder, "before", [run(copy(26.0), start=writer * 100 + number)], "add")


def test_concurrent_writers_lose_none_of_their_runs(tmp_path: Path) -> None:
    context = multiprocessing.get_context("fork")
    writers = [context.Process(target=_add, args=(tmp_path, writer, 8)) for writer in range(4)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert len(baselines.load(tmp_path, "before").runs) == 32


_WRITER = """
import sys
from pathlib import Path
from suite.store import baselines
from tests.store.small import runs
old, new = runs([26.0, 27.0]), runs([1.0, 2.0, 3.0])
print("ready", flush=True)
while True:
    for one in (new, old):
        baselines.save(Path(sys.argv[1]), "before", one, "replace")
"""


def _killed(folder: Path, seconds: float) -> None:
    """A child replaces the baseline over and over, and is killed (-9) in the middle of it."""
    child = os.fork()
    if child == 0:
        try:
            old, new = runs([26.0, 27.0]), runs([1.0, 2.0, 3.0])
            while True:
                for one in (new, old):
                    baselines.save(folder, "before", one, "replace")
        finally:
            os._exit(1)
    signal.sigtimedwait([], seconds)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)


def test_a_baseline_is_the_old_or_the_new_one_however_often_its_writer_is_killed(tmp_path: Path) -> None:
    _save(tmp_path)
    moments = random.Random(8)
    counts = []
    for _ in range(KILLS):
        _killed(tmp_path, moments.uniform(0.0005, 0.006))
        counts.append(len(baselines.load(tmp_path, "before").runs))
    assert set(counts) == {2, 3}, "the kills must meet the writer at both"
    assert baselines.names(tmp_path) == ("before",)
    baselines.save(tmp_path, "before", runs([5.0]), "replace")  # the lock of a killed writer is free
    assert list(tmp_path.glob(".*.tmp")) == [], "what killed writers left is cleared away"


def test_a_writer_of_its_own_process_that_is_killed_leaves_a_whole_file(tmp_path: Path) -> None:
    _save(tmp_path)
    with subprocess.Popen([sys.executable, "-c", _WRITER, str(tmp_path)], stdout=subprocess.PIPE, cwd=ROOT) as writer:
        assert writer.stdout is not None
        writer.stdout.readline()
        writer.kill()
    assert len(baselines.load(tmp_path, "before").runs) in (2, 3)
