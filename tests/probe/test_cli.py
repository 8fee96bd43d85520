"""`lanecheck probe` and `lanecheck record` from the command line."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from suite.cli import main
from suite.records.machine import Machine
from tests.probe import trees
from tests.probe.test_machine import nvml, two_sockets


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A recorded machine with two GPUs."""
    return trees.write(tmp_path / "machine", two_sockets() | {"nvml.json": nvml()})


def test_probe_shows_a_recorded_tree(tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["probe", "--root", str(tree)]) == 0
    text = capsys.readouterr().out
    assert "2 GPUs, 2 NUMA nodes" in text
    assert "01:00.0 GPU 0 card (port 00:01.0)" in text


def test_probe_prints_the_record_as_json_that_machine_reads_back(
    tree: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["probe", "--root", str(tree), "--json"]) == 0
    first = capsys.readouterr().out
    (tmp_path / "m.json").write_text(first)
    assert main(["probe", "--machine", str(tmp_path / "m.json"), "--json"]) == 0
    assert capsys.readouterr().out == first
    assert len(msgspec.json.decode(first.encode(), type=Machine).gpus) == 2


@pytest.mark.parametrize(
    "arguments",
    [
        ["--root", "absent"],
        ["--machine", "absent"],
        ["--root", "a", "--machine", "b"],
        ["--timeout", "-1"],
        ["--timeout", "x"],
    ],
)
def test_bad_arguments_are_a_usage_error_in_one_sentence(
    arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    try:
        status = main(["probe", *arguments])
    except SystemExit as error:
        status = int(error.code or 0)
    said = capsys.readouterr().err
    assert status == 4
    assert "Traceback" not in said
    assert "lanecheck probe: " in said


def test_record_writes_what_probe_reads(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(tmp_path / "here.tar.gz")
    assert main(["record", path, "--no-nvml"]) == 0
    assert "without serial numbers" in capsys.readouterr().out
    assert main(["probe", "--machine", path]) == 0
    assert "NUMA node" in capsys.readouterr().out
    assert main(["record", path, "--no-nvml"]) == 4
