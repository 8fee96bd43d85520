"""`lanecheck baseline` and `lanecheck compare`, from files to exit status."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from suite.cli import main
from suite.records.run import Run
from suite.store import runs as store
from tests.store.small import FAIL, GEN1, GEN4, MACHINE, copy, link, run

ROOT = Path(__file__).parents[2]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty current folder."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def _write(folder: Path, name: str, one: Run) -> str:
    (folder / name).mkdir()
    store.write(folder / name, one)
    return name


@pytest.fixture
def pair(here: Path) -> tuple[str, str]:
    """Folders of a run before a repair and of one after it."""
    before = run(link(GEN1, 6.0), copy(2.9, verdict=FAIL))
    after = run(link(GEN4, 52.0), copy(26.1), start=1)
    return _write(here, "before", before), _write(here, "after", after)


def test_two_runs_compare(pair: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", *pair]) == 0
    assert "the fix worked" in capsys.readouterr().out


def test_what_is_worse_is_exit_status_1(pair: tuple[str, str]) -> None:
    assert main(["compare", *reversed(pair)]) == 1


def test_a_gpu_that_is_gone_is_exit_status_1(here: Path) -> None:
    one = _write(here, "one", run(copy(26.0, gpus=(0,))))
    gone = run(copy(26.0, gpus=(0,)), start=1, machine=replace(MACHINE, gpus=MACHINE.gpus[:1]))
    assert main(["compare", one, _write(here, "two", gone)]) == 1
    assert main(["compare", "two", one]) == 0


def test_nothing_to_compare_is_no_success(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one, two = _write(here, "one", run(copy(26.0, "a"))), _write(here, "two", run(copy(26.0, "b"), start=1))
    assert main(["compare", one, two]) == 5
    assert "Nothing could be compared" in capsys.readouterr().out


def test_a_run_that_was_broken_off_is_no_baseline_unless_forced(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    half = _write(here, "half", run(copy(26.0), complete=False, planned=46))
    assert main(["baseline", "save", "slot1", half]) == 4
    told = capsys.readouterr().err
    assert "was broken off: 1 of 46 cases ended: save a whole one, or add --force" in told
    assert main(["baseline", "save", "slot1", half, "--force"]) == 0
    empty = _write(here, "empty", run(start=1, complete=False, planned=46))
    assert main(["baseline", "save", "slot2", empty, "--force"]) == 4
    assert "measured nothing: save a whole one\n" in capsys.readouterr().err


def test_json_holds_everything(pair: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    main(["compare", *pair, "--json"])
    found = json.loads(capsys.readouterr().out)
    assert found["call"] == "better"
    assert found["headline"].endswith("no change.") or "the fix worked" in found["headline"]
    assert {change["case"] for change in found["changes"]} == {"link/under_load/gpu1", copy(1.0).case}
    assert found["machine"][0]["what"] == "GPU1 link under load"


def test_markdown_is_a_page(pair: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    main(["compare", *pair, "--format", "md"])
    assert capsys.readouterr().out.startswith("# GPU1 Gen1 x16 → Gen4 x16 under load")


def test_a_baseline_is_saved_listed_shown_compared_and_removed(
    pair: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["baseline", "save", "slot1", pair[0]]) == 0
    assert Path("reports/baselines/slot1.json").is_file()
    assert main(["baseline", "list"]) == 0
    assert main(["baseline", "show", "slot1"]) == 0
    assert main(["compare", "slot1", pair[1]]) == 0
    assert main(["compare", "reports/baselines/slot1.json", pair[1]]) == 0
    told = capsys.readouterr().out
    assert "slot1: 1 run\n" in told
    assert "2 × Example GPU; Example CPU; Example Board" in told
    assert told.count("the fix worked") >= 2
    assert main(["baseline", "remove", "slot1"]) == 0
    assert main(["baseline", "list"]) == 0
    assert "no baseline in reports/baselines" in capsys.readouterr().out


def test_runs_that_do_not_belong_together_are_refused(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one = _write(here, "one", run(copy(26.0)))
    other = _write(here, "other", run(copy(26.0), start=1, simulated=True))
    assert main(["baseline", "save", "both", one, other]) == 4
    assert "do not belong together: one is simulated" in capsys.readouterr().err
    assert not Path("reports/baselines/both.json").exists()
    assert main(["baseline", "save", "both", one, other, "--force"]) == 0


def test_a_run_given_twice_is_kept_once_and_said(pair: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    main(["baseline", "save", "slot1", pair[0], pair[0]])
    told = capsys.readouterr()
    assert "1 run given twice, kept once" in told.err
    assert told.out.endswith("slot1.json: 1 run\n")


def test_an_unreadable_baseline_hides_no_other(pair: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    main(["baseline", "save", "good", pair[0]])
    Path("reports/baselines/bad.json").write_text('{"schema": 1, "na')
    assert main(["baseline", "list"]) == 0
    told = capsys.readouterr().out
    assert "good: 1 run" in told
    assert "bad: reports/baselines/bad.json is not a baseline of lanecheck, or not a whole one" in told


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["compare", "nowhere", "after"], "there is no baseline 'nowhere'"),
        (["compare", "no/where", "after"], "there is no no/where: give a run's folder"),
        (["compare", "after", "after"], "is given twice (BEFORE and AFTER)"),
        (["baseline", "remove", "nowhere"], "there is no baseline 'nowhere'"),
        (["baseline", "save", "../x", "after"], "cannot be a baseline's name"),
    ],
)
def test_bad_input_is_one_sentence_and_exit_status_4(
    pair: tuple[str, str], capsys: pytest.CaptureFixture[str], words: list[str], sentence: str
) -> None:
    assert pair
    assert main(words) == 4
    told = capsys.readouterr().err
    assert sentence in told
    assert told.count("\n") == 1


def test_comparing_imports_no_numerical_library() -> None:
    script = (
        "import sys; from suite.cli import main\n"
        "try: main(['compare', 'a', 'b'])\n"
        "finally: print([m for m in ('numpy', 'scipy', 'torch', 'cupy', 'matplotlib', 'pytest') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "[]"


def test_another_machine_is_compared_only_by_force(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other = replace(MACHINE, environment=replace(MACHINE.environment, board="Other Board"))
    one = _write(here, "one", run(copy(26.0)))
    two = _write(here, "two", run(copy(26.0), start=1, machine=other))
    assert main(["compare", one, two]) == 4
    assert "add --force to compare all the same" in capsys.readouterr().err
    assert main(["compare", one, two, "--force"]) == 0
    told = capsys.readouterr().out
    assert "FORCED: these are different machines" in told
    assert "board: Example Board → Other Board" in told
