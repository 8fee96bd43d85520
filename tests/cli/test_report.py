"""`lanecheck report`: which run is shown where none, or something else than a run, is named."""

from __future__ import annotations

import errno
from dataclasses import replace
from pathlib import Path

import pytest

from suite.cli import main
from suite.cli.report import FORMATS
from suite.store import runs as store
from tests.store.small import GEN4, copy, link, run


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A current folder with an empty reports/."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "reports").mkdir()
    return tmp_path


def _write(here: Path, name: str, seconds: float) -> None:
    folder = here / "reports" / name
    folder.mkdir()
    store.write(folder, replace(run(link(GEN4, 52.0), copy(seconds)), started=f"started {name}"))


def _refused(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert main(words) == 4
    captured = capsys.readouterr()
    assert captured.out == ""
    return captured.err


def test_without_a_run_the_newest_is_shown_and_named(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("20260102-000000-10", "20260102-000000-2", "20260101-235959", "sample-other"):
        _write(here, name, 26.0)
    assert main(["report", "--format", "json"]) == 0
    captured = capsys.readouterr()
    assert "started 20260102-000000-10" in captured.out
    assert "the newest run: reports/20260102-000000-10\n" in captured.err


def test_where_nothing_was_run_it_says_what_to_do(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _write(here, "sample-a", 26.0)
    said = _refused(capsys, "report")
    assert "no run in reports/ yet: run pytest benchmarks/" in said
    assert "there is reports/sample-a" in said


def test_a_folder_of_runs_is_refused_with_the_runs_in_it(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _write(here, "20260101-000000", 26.0)
    said = _refused(capsys, "report", "reports")
    assert "reports is no run, it has runs in it: name one of them (there is reports/20260101-000000)" in said


def test_a_report_is_refused_with_the_folder_to_name(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _write(here, "20260101-000000", 26.0)
    (here / "reports/20260101-000000/report.md").touch()
    said = _refused(capsys, "report", "reports/20260101-000000/report.md")
    assert "name its folder, reports/20260101-000000" in said


def test_a_run_that_is_not_there_is_refused_with_those_that_are(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _write(here, "20260101-000000", 26.0)
    assert "there is no nope: name a run's folder" in (said := _refused(capsys, "report", "nope"))
    assert "reports/20260101-000000" in said


@pytest.mark.parametrize("format_", FORMATS)
def test_a_run_whose_folder_cannot_be_written_is_shown_all_the_same(
    here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, format_: str
) -> None:
    _write(here, "20260101-000000", 26.0)

    def full(_path: Path, _data: bytes) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("suite.store.files._write_synced", full)
    assert main(["report", "reports/20260101-000000", "--format", format_]) == 0
    shown, said = capsys.readouterr()
    assert shown.strip()
    assert "could not be rebuilt (no space left on device)" in said
    assert "--report-dir" not in said + shown
    assert not (here / "reports/20260101-000000/report.md").exists()
