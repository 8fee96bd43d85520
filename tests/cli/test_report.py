"""`lanecheck report`: which run is shown where none, or something else than a run, is named."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import IO

import msgspec
import pytest

from suite import __version__
from suite.cli import main
from suite.cli.report import FORMATS
from suite.store import runs as store
from tests.store.small import GEN4, MACHINE, copy, link, run

ROOT = Path(__file__).parents[2]


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


def test_compare_of_what_is_neither_says_both(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _write(here, "20260101-000000", 26.0)
    said = _refused(capsys, "compare", "a", "b")
    assert "there is no baseline 'a' in reports/baselines (there: none) and no run of that name" in said
    assert "there is reports/20260101-000000" in said
    assert "name one of them" in _refused(capsys, "compare", "reports", "reports")


@pytest.mark.parametrize("action", ["remove", "show"])
def test_a_baseline_where_there_is_none_is_not_answered_by_how_to_save_one(
    here: Path, capsys: pytest.CaptureFixture[str], action: str
) -> None:
    said = _refused(capsys, "baseline", action, "nope")
    assert "there is no baseline 'nope': reports/baselines holds none at all" in said
    assert "save" not in said
    assert here.is_dir()


@pytest.mark.parametrize("action", ["save", "list", "show", "remove"])
def test_every_action_of_baseline_says_what_it_does(capsys: pytest.CaptureFixture[str], action: str) -> None:
    with pytest.raises(SystemExit):
        main(["baseline", action, "--help"])
    shown = capsys.readouterr().out
    assert any(line.startswith(action.capitalize()) for line in shown.splitlines())


def test_the_version_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--version"])
    assert ended.value.code == 0
    assert capsys.readouterr().out == f"lanecheck {__version__}\n"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
def test_an_output_that_is_full_is_one_sentence(here: Path) -> None:
    _write(here, "20260101-000000", 26.0)
    with open("/dev/full", "w") as full:  # noqa: PTH123 - a device
        ended = _spawn(here, ["report", "reports/20260101-000000/run.json", "--format", "md"], stdout=full)
    assert ended.returncode == 4
    assert "the output cannot be used (No space left on device)" in ended.stderr
    assert ended.stderr.count("\n") == 1


def test_signs_that_the_encoding_lacks_are_replaced(here: Path) -> None:
    (here / "machine.json").write_bytes(msgspec.json.encode(MACHINE))
    words = ["probe", "--machine", "machine.json"]
    ended = _spawn(here, words, stdout=subprocess.PIPE, PYTHONIOENCODING="ascii")
    assert ended.returncode == 0, ended.stderr
    assert ended.stderr == ""
    assert "?" in ended.stdout


def _spawn(here: Path, words: list[str], stdout: int | IO[str], **variables: str) -> subprocess.CompletedProcess[str]:
    """lanecheck as a process of its own: what the interpreter says as it ends counts too."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), **variables}
    return subprocess.run(
        [sys.executable, "-m", "suite", *words],
        cwd=here, env=environment, stdout=stdout, stderr=subprocess.PIPE, text=True, check=False,
    )  # fmt: skip
