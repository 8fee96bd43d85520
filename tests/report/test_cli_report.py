"""`lanecheck report RUN`, from the command line."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from suite import cli
from suite.store import runs
from suite.store.journal import Journal
from tests.report import samples


@pytest.fixture
def killed(tmp_path: Path) -> Path:
    """The folder of a run that was killed: run.json lags behind the journal."""
    run = samples.troubled()
    book = Journal(tmp_path, run)
    for result in run.results[:40]:
        book.append(result)
    runs.write(tmp_path, samples.incomplete())
    return tmp_path


def test_a_killed_run_is_rebuilt_and_called_incomplete(killed: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["report", str(killed)]) == 0
    printed = capsys.readouterr()
    assert "Only 40 of 284 planned cases" in printed.out
    assert "were rebuilt" in printed.err
    assert len(runs.read(killed / "run.json").results) == 40
    assert "INCOMPLETE" in (killed / "report.md").read_text()
    assert "INCOMPLETE" in (killed / "report.html").read_text()


def test_a_report_that_is_current_is_left_alone(killed: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cli.main(["report", str(killed)])
    before = (killed / "report.md").stat().st_mtime_ns
    capsys.readouterr()
    cli.main(["report", str(killed)])
    assert capsys.readouterr().err == ""
    assert (killed / "report.md").stat().st_mtime_ns == before


def test_a_kept_run_is_shown_and_left_as_it_is(killed: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (killed / "run.jsonl.gz").write_bytes(gzip.compress((killed / "run.jsonl").read_bytes()))
    for name in ("run.jsonl", "run.json"):
        (killed / name).unlink()
    assert cli.main(["report", str(killed)]) == 0
    assert "Only 40 of 284" in capsys.readouterr().out
    assert [path.name for path in killed.iterdir()] == ["run.jsonl.gz"]


def test_a_file_is_shown_and_nothing_is_written(killed: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["report", str(killed / "run.jsonl"), "--format", "md"]) == 0
    assert capsys.readouterr().out.startswith("# INCOMPLETE: ")
    assert not (killed / "report.md").exists()


def test_json_is_the_run_and_the_warning_goes_beside_it(killed: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["report", str(killed), "--format", "json"]) == 0
    printed = capsys.readouterr()
    assert len(json.loads(printed.out)["results"]) == 40
    assert "INCOMPLETE" in printed.err


def test_a_folder_without_a_run_is_one_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # the sentence names the runs below reports/, and here there are none
    assert cli.main(["report", str(tmp_path)]) == 4
    assert capsys.readouterr().err == (
        f"lanecheck report: {tmp_path} holds no run.json and no run.jsonl: name the folder of one run\n"
    )


def test_an_unknown_format_names_the_known_ones(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        cli.main(["report", "x", "--format", "pdf"])
    assert stopped.value.code == 4
    assert "md" in capsys.readouterr().err
