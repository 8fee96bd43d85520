"""A manifest, thresholds of a settings file, and the exit status that comes of them."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest

from suite.cli import main
from suite.errors import Unavailable
from suite.judge.findings import findings
from suite.judge.rules import judge
from suite.records.run import Verdict
from suite.report import junit
from tests.plugin.conftest import COPY, MEMORY, NO_GPU, ROOT, Bench

pytest_plugins = "pytester"

CASE = "host_memory/copy/node0"
MACHINE = ROOT / "tests" / "data" / "machines" / "2xpcie.json"
FAIL = Verdict("FAIL", "slow_path", ("slow",), "look")


@pytest.fixture
def memory(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> Bench:
    """Two cases, judged by the real judge."""
    (bench.path / "benchmarks" / "test_host_copy.py").unlink()
    bench.write(host_memory=MEMORY)
    monkeypatch.setattr("suite.session.rules.judge", judge)
    return bench


def manifest(bench: Bench, **content: object) -> str:
    """Writes one; the option that names it."""
    (bench.path / "machine.json").write_text(json.dumps(content))
    return "--expect=machine.json"


def test_a_floor_of_the_manifest_fails_a_case_and_is_kept_with_the_run(memory: Bench) -> None:
    result = memory.run(manifest(memory, floors={CASE: 1e15}))
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    verdicts = {r.case: r.verdict.cause for r in memory.report.results if r.verdict}
    assert verdicts[CASE] == "below_floor"
    assert list(verdicts.values()).count("below_floor") == 1
    assert memory.report.expected.floors == {CASE: 1e15}


@pytest.mark.parametrize("name", ["host_memory/copy/nod0", "nothing/like/this", "host_memory/*/node7"])
def test_a_floor_that_fits_no_case_of_the_machine_is_a_usage_error(memory: Bench, name: str) -> None:
    result = memory.run(manifest(memory, floors={CASE: 1.0, name: 1.0}), "-k", "node0")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert (
        f"--expect machine.json: the manifest's floor of {name} fits no case of this machine: " in result.stderr.str()
    )
    assert not memory.folders


def test_a_misspelt_floor_is_told_with_the_case_that_is_nearest(memory: Bench) -> None:
    result = memory.run(manifest(memory, floors={"host_memory/copy/nod0": 1.0}))
    assert "did you mean host_memory/copy/node0?" in result.stderr.str()


@pytest.mark.parametrize(
    "options", [("-k", "node1"), ("--nodes=1",), ("benchmarks/test_host_copy.py",), ("benchmarks/", "--gpus=1")]
)
def test_a_floor_that_only_this_run_leaves_out_is_told_at_its_end(memory: Bench, options: tuple[str, ...]) -> None:
    memory.write(host_copy=COPY)
    full = "host_copy/host_to_device/gpu0/node0/1GiB"
    asked = manifest(memory, floors={CASE: 1.0, full: 1.0})
    folder = () if options[0].endswith(".py") else ("benchmarks/",)
    result = memory.pytester.runpytest_inprocess("-p", "suite.plugin", *folder, asked, *options)
    assert result.ret == 0
    result.stdout.fnmatch_lines([f"the manifest's floor of {full} fits no case of this run"])


def test_a_floor_of_a_gpu_that_is_missing_does_not_hide_that_it_is(memory: Bench) -> None:
    floors = {"host_copy/host_to_device/gpu2/node0/256MiB": 1.0}
    result = memory.run(manifest(memory, floors=floors, gpus={"0000:ff:00.0": {}}))
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["This machine is not right: 0000:ff:00.0: no GPU is there*"])


def test_a_floor_of_what_cannot_be_measured_here_is_no_mistake(memory: Bench) -> None:
    memory.write(host_copy=COPY)
    memory.machine = NO_GPU
    assert memory.run(manifest(memory, floors={"host_copy/*/gpu0/*": 1.0})).ret == 0


def test_a_gpu_elsewhere_than_expected_is_a_finding_of_the_summary(memory: Bench) -> None:
    result = memory.run(manifest(memory, gpus={"0000:17:00.0": {"numa_node": 1}}))
    result.stdout.fnmatch_lines(["*FAIL*0000:17:00.0: it is on NUMA node 0*"])


def test_a_gpu_that_is_not_there_fails_the_run_and_is_a_failed_test_in_junit(memory: Bench) -> None:
    result = memory.run(manifest(memory, gpus={"0000:ff:00.0": {}}), "--junitxml=out.xml")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.assert_outcomes(passed=2, failed=1)
    result.stdout.fnmatch_lines(["This machine is not right: 0000:ff:00.0: no GPU is there*"])
    assert "fails by its verdict" not in result.stdout.str()
    root = ElementTree.parse(memory.path / "out.xml")
    (failed,) = (case for case in root.iter("testcase") if case.find("failure") is not None)
    assert failed.get("name") == "numa_not_as_expected[0000:ff:00.0]"
    assert [s.get("failures") for s in root.iter("testsuite")] == ["1"]
    assert '<failure message="0000:ff:00.0: no GPU is there' in junit_of(memory)


def junit_of(bench: Bench) -> str:
    """The newest run as `lanecheck report --format junit` prints it."""
    run = bench.report
    return junit.render(run, findings(run))


@pytest.mark.parametrize(("options", "status"), [((), 0), (("--strict-verdicts",), 1)])
def test_what_is_worth_a_look_about_the_machine_itself_fails_strict_runs_only(
    memory: Bench, options: tuple[str, ...], status: int
) -> None:
    gpus = tuple(replace(gpu, bar1_bytes=256 << 20, memory_bytes=24 << 30) for gpu in memory.machine.gpus[:1])
    memory.machine = replace(memory.machine, gpus=gpus)
    result = memory.run(*options)
    assert result.ret == status
    result.stdout.fnmatch_lines(["This machine works: all 2 cases pass; 1 thing to look at: GPU0*"])


def test_thresholds_come_from_the_settings_file_and_are_kept_with_the_run(memory: Bench) -> None:
    memory.pytester.makeini("[pytest]\nlanecheck_thresholds =\n    spread = 0.25\n    samples = 4\n")
    assert memory.run().ret == 0
    assert memory.report.thresholds == {"spread": 0.25, "samples": 4}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--expect=absent.json",), "--expect absent.json: cannot be read (No such file or directory)"),
        (("--expect=bad.json",), "'widht' of 4 is not one of speed_gts, width, numa_node"),
        (("-o", "lanecheck_thresholds=sprad=0.2"), "lanecheck_thresholds: 'sprad' is no threshold"),
    ],
)
def test_what_cannot_be_is_a_usage_error_before_anything_is_measured(
    memory: Bench, arguments: tuple[str, ...], said: str
) -> None:
    (memory.path / "bad.json").write_text('{"gpus": {"4": {"widht": 8}}}')
    result = memory.run(*arguments)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert said in result.stderr.str()
    assert not memory.folders


@pytest.mark.parametrize("status", [0, 1, 4, 5])
def test_exit_status(bench: Bench, status: int) -> None:
    """0 right, 1 a FAIL, 4 usage, 5 nothing could be measured."""
    (bench.path / "benchmarks" / "test_host_copy.py").unlink()
    bench.write(host_memory=MEMORY)
    if status == 1:
        bench.verdicts[CASE] = FAIL
    if status == 5:
        bench.answers = {f"host_memory/copy/node{node}": Unavailable("no memory") for node in (0, 1)}
    assert bench.run(*(["--gpus=7"] if status == 4 else [])).ret == status


def test_probe_drafts_a_manifest_that_the_machine_meets(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "machine.json"
    assert main(["probe", f"--machine={MACHINE}", f"--write-expect={path}"]) == 0
    assert "--expect" in capsys.readouterr().out
    drafted = json.loads(path.read_text())
    assert drafted["gpus"]["0000:a1:00.0"] == {"speed_gts": 32.0, "width": 16, "numa_node": 1}


def test_probe_overwrites_no_manifest(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "machine.json"
    path.write_text("edited")
    assert main(["probe", f"--machine={MACHINE}", f"--write-expect={path}"]) == 4
    assert "is there already" in capsys.readouterr().err
    assert path.read_text() == "edited"
