"""--baseline and --save-baseline: judged while it measures, refused before it measures, nothing saved by halves."""

from __future__ import annotations

from dataclasses import replace

import pytest

from suite.errors import Unavailable
from suite.records.machine import Cpu
from suite.records.run import Verdict
from suite.records.scenario import Scenario
from suite.store import baselines
from tests.plugin.conftest import COPY, MACHINE, MEMORY, Bench, Engine, samples

pytest_plugins = "pytester"

CASE = "host_memory/copy/node0"


@pytest.fixture
def memory(bench: Bench) -> Bench:
    """Two cases, saved as the baseline `before`."""
    (bench.path / "benchmarks" / "test_host_copy.py").unlink()
    bench.write(host_memory=MEMORY)
    result = bench.run("--save-baseline=before")
    result.assert_outcomes(passed=2)
    result.stdout.fnmatch_lines(["baseline before: 1 run now, in *reports/baselines/before.json"])
    return bench


def _folder(memory: Bench) -> baselines.Path:
    return memory.path / "reports" / "baselines"


def _verdict(memory: Bench, case: str = CASE) -> Verdict:
    runs = [folder for folder in memory.folders if folder.name != "baselines"]
    memory_run = max(runs, key=lambda folder: folder.stat().st_mtime_ns)
    from suite.store.runs import read

    found = next(result for result in read(memory_run).results if result.case == case)
    assert found.verdict is not None
    return found.verdict


def test_an_equal_run_passes_and_says_so(memory: Bench) -> None:
    result = memory.run("--baseline=before")
    assert result.ret == 0
    result.stdout.fnmatch_lines(["baseline before: No change beyond noise in 2 cases."])


def test_a_case_that_is_worse_fails_and_is_measured_twice(memory: Bench) -> None:
    memory.answers[CASE] = samples(*[0.002] * 5)
    result = memory.run("--baseline=before")
    result.assert_outcomes(failed=1, passed=1)
    assert result.ret == 1
    assert _verdict(memory).cause == "worse_than_baseline"
    assert memory.engine is not None
    assert [plan.case for plan in memory.engine.plans].count(CASE) == 2


def test_a_change_that_does_not_repeat_passes(memory: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    measure = Engine.measure

    def slow_at_first(self: Engine, plan: object) -> object:
        asked.append(plan.case)  # type: ignore[attr-defined]
        return samples(*[0.002] * 5) if asked.count(CASE) == 1 and asked[-1] == CASE else measure(self, plan)  # type: ignore[arg-type]

    monkeypatch.setattr(Engine, "measure", slow_at_first)
    assert memory.run("--baseline=before").ret == 0
    assert asked.count(CASE) == 2
    assert _verdict(memory).status == "PASS"


def test_saving_adds_to_the_baseline(memory: Bench) -> None:
    memory.run("--save-baseline=before").stdout.fnmatch_lines(["baseline before: 2 runs now*"])
    assert len(baselines.load(_folder(memory), "before").runs) == 2


def test_a_folder_of_baselines_can_be_anywhere(memory: Bench) -> None:
    memory.run("--save-baseline=there", "--baseline-dir=shared")
    assert baselines.names(memory.path / "shared") == ("there",)


def test_a_baseline_that_is_not_there_is_refused_before_the_run(memory: Bench) -> None:
    before = len(memory.folders)
    result = memory.run("--baseline=after")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*--baseline: there is no baseline 'after' in *: there are before"])
    assert len(memory.folders) == before


@pytest.mark.parametrize("option", ["--baseline", "--save-baseline"])
def test_a_baseline_of_another_machine_is_refused_unless_forced(memory: Bench, option: str) -> None:
    memory.machine = replace(MACHINE, cpu=Cpu(model="Other CPU", packages=2))
    result = memory.run(f"{option}=before")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*different machines (CPU Example CPU before, Other CPU after)*--force-baseline"])
    assert memory.run(f"{option}=before", "--force-baseline").ret == 0


def test_another_effort_is_refused(memory: Bench) -> None:
    result = memory.run("--baseline=before", "--effort=full")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*the effort differs (quick before, full after)*"])


def test_a_simulated_run_does_not_mix_with_a_measured_baseline(memory: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("suite.session.load_machine", lambda _path: Scenario(MACHINE))
    result = memory.run("--save-baseline=before", "--machine=any.json")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*one is simulated and the other one measured*"])


def test_a_name_that_cannot_be_a_files_is_refused(memory: Bench) -> None:
    assert memory.run("--save-baseline=../up").ret == pytest.ExitCode.USAGE_ERROR


def test_cases_of_one_side_only_are_listed(memory: Bench) -> None:
    result = memory.run("--baseline=before", "-k", "node0")
    result.stdout.fnmatch_lines(["Not compared, not in the runs after: host_memory/copy/node1."])


def test_what_changed_in_the_machine_is_told(memory: Bench) -> None:
    memory.machine = replace(MACHINE, software=replace(MACHINE.software, driver="590.10"))
    result = memory.run("--baseline=before")
    result.stdout.fnmatch_lines(["Changed since the baseline before: driver: 580.95 → 590.10."])


def test_an_interrupted_run_is_not_saved(memory: Bench) -> None:
    memory.answers[CASE] = KeyboardInterrupt()
    result = memory.run("--save-baseline=before")
    result.stdout.fnmatch_lines(["The run is incomplete and was not added to the baseline before."])
    assert len(baselines.load(_folder(memory), "before").runs) == 1


def test_a_failing_run_is_saved_since_it_is_the_before_of_a_repair(memory: Bench) -> None:
    memory.verdicts[CASE] = Verdict("FAIL", "slow_path")
    memory.run("--save-baseline=broken").assert_outcomes(failed=1, passed=1)
    assert len(baselines.load(_folder(memory), "broken").runs) == 1


def test_a_run_that_measured_nothing_is_not_saved(memory: Bench) -> None:
    memory.answers.update(dict.fromkeys((CASE, "host_memory/copy/node1"), Unavailable("no such memory")))
    result = memory.run("--save-baseline=empty")
    result.stdout.fnmatch_lines(["Nothing was measured, so that nothing was added to the baseline empty."])
    assert baselines.names(_folder(memory)) == ("before",)


def test_a_gpu_that_the_baseline_has_and_the_machine_lacks_fails_the_run(bench: Bench) -> None:
    assert bench.run("--save-baseline=whole").ret == 0
    bench.machine = replace(bench.machine, gpus=bench.machine.gpus[:1])
    result = bench.run("--baseline=whole")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["This machine is not right: GPU1 (Example GPU, 0000:b1:00.0) is gone*"])
    result.stdout.fnmatch_lines(["baseline whole: GPU1 (Example GPU, 0000:b1:00.0) is gone. *"])
    assert bench.report.gone == ("GPU1 (Example GPU, 0000:b1:00.0)",)


def test_a_baseline_without_any_case_of_the_run_is_no_success(memory: Bench) -> None:
    memory.write(host_copy=COPY)
    result = memory.run("--baseline=before", "-k", "host_copy")
    assert result.ret == pytest.ExitCode.NO_TESTS_COLLECTED
    result.stdout.fnmatch_lines(["baseline before: Nothing could be compared: no case has numbers on both sides."])
