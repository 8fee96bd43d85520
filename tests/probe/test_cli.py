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


SCENARIOS = Path(__file__).parents[1] / "data" / "machines"


@pytest.mark.parametrize("name", ["8xpcie-switches", "2xpcie-gpu1-gen1", "8xnvswitch"])
@pytest.mark.parametrize("columns", ["80", "100"])
def test_a_shipped_machine_is_one_screen_and_says_simulated_first(
    name: str, columns: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    assert main(["probe", "--machine", str(SCENARIOS / f"{name}.json")]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith(f"SIMULATED machine ({name}.json): ")
    assert len(lines) <= 50
    assert max(map(len, lines)) <= int(columns)


def test_a_recording_says_that_it_is_one_and_json_says_it_beside_the_record(
    tree: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["probe", "--root", str(tree)]) == 0
    assert capsys.readouterr().out.startswith("Recorded machine (machine): ")
    assert main(["probe", "--json", "--machine", str(SCENARIOS / "2xpcie-gpu1-gen1.json")]) == 0
    said = capsys.readouterr()
    assert msgspec.json.decode(said.out.encode(), type=Machine).gpus
    assert "SIMULATED" in said.err
    assert "1 fault shows under load" in said.err


def test_this_machine_is_shown_without_a_source(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["probe", "--no-nvml"]) == 0
    assert not capsys.readouterr().out.startswith(("SIMULATED", "Recorded"))


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
    assert "without serials" in capsys.readouterr().out
    assert main(["probe", "--machine", path]) == 0
    assert "NUMA node" in capsys.readouterr().out
    assert main(["record", path, "--no-nvml"]) == 4
