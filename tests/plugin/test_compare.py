"""pytest-benchmark's own options work on the measured durations, and none costs the run that it is used with."""

from __future__ import annotations

import json
from dataclasses import replace
from importlib.util import find_spec
from typing import Any

import pytest

from suite.plugin.compare import facts, groups
from suite.records.run import Verdict
from suite.records.scenario import Scenario
from tests.plugin.conftest import MACHINE, MEMORY, Bench, samples

pytest_plugins = "pytester"

CASE = "host_memory/copy/node0"


@pytest.fixture
def memory(bench: Bench) -> Bench:
    """Two cases, saved once as the baseline 0001_before."""
    (bench.path / "benchmarks" / "test_host_copy.py").unlink()
    bench.write(host_memory=MEMORY)
    bench.run("--benchmark-save=before").assert_outcomes(passed=2)
    return bench


def test_a_regression_is_exit_status_1_and_the_run_is_whole(memory: Bench) -> None:
    memory.answers[CASE] = samples(0.002)
    result = memory.run("--benchmark-compare", "--benchmark-compare-fail=median:5%")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert memory.report.complete
    result.stderr.fnmatch_lines(["*Performance has regressed*", "*median*"])
    result.stdout.fnmatch_lines(["*2 passed*"])
    assert "Traceback" not in result.stdout.str() + result.stderr.str()


def test_regressions_are_the_last_line_of_our_section(memory: Bench) -> None:
    memory.answers[CASE] = samples(0.002)
    memory.answers["host_memory/copy/node1"] = samples(0.003)
    result = memory.run("--benchmark-compare", "--benchmark-compare-fail=median:5%", "--benchmark-compare-fail=min:5%")
    result.stdout.fnmatch_lines(["report: *", "2 regressions against 0001_before: *node0*, *node1*", "*2 passed*"])


@pytest.mark.parametrize("table", [[], ["--benchmark-verbose"]])
def test_where_pytest_benchmark_saved_is_said_once_beside_the_report(memory: Bench, table: list[str]) -> None:
    result = memory.run("--benchmark-save=after", "--benchmark-json=out.json", *table)
    lines = ["report: *", "Wrote benchmark data in: *out.json*", "Saved benchmark data in: *0002_after.json"]
    result.stdout.fnmatch_lines(lines)
    assert (result.stdout.str() + result.stderr.str()).count("benchmark data in") == 2


def test_no_regression_passes(memory: Bench) -> None:
    assert memory.run("--benchmark-compare", "--benchmark-compare-fail=median:5%").ret == 0


@pytest.mark.filterwarnings("ignore:Can't compare")
@pytest.mark.parametrize("gate", [[], ["--benchmark-compare-fail=median:5%"]])
def test_a_baseline_that_matches_nothing_is_refused_with_those_that_there_are(memory: Bench, gate: list[str]) -> None:
    before = len(memory.folders)
    result = memory.run("--benchmark-compare=0099", *gate)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*--benchmark-compare=0099: no baseline of that name in *: there is 0001_before"])
    assert len(memory.folders) == before


def test_a_gate_without_a_baseline_is_refused_before_the_run(memory: Bench) -> None:
    before = len(memory.folders)
    result = memory.run("--benchmark-compare-fail=median:5%")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*--benchmark-compare-fail needs a baseline*--benchmark-save=NAME*"])
    assert len(memory.folders) == before


def test_a_case_that_the_baseline_lacks_is_reported(memory: Bench) -> None:
    memory.write(host_memory=MEMORY + "\ndef test_new(check, node):\n    check('host_memory_copy', memory_node=node)\n")
    result = memory.run("--benchmark-compare", "--benchmark-compare-fail=median:5%")
    result.stdout.fnmatch_lines(["Not compared, since the baseline *0001_before.json does not have them: *test_new*"])


def test_a_case_of_the_baseline_that_is_not_measured_is_reported(memory: Bench) -> None:
    result = memory.run("--benchmark-compare", "-k", "node0")
    result.stdout.fnmatch_lines(["In the baseline *without samples in this run: *node1*"])


def test_another_machine_is_told_and_a_storage_elsewhere_works(
    memory: Bench, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """pytest-benchmark's own comparison ends pytest with an internal error here."""
    storage = f"--benchmark-storage={tmp_path_factory.mktemp('storage')}"
    memory.run(storage, "--benchmark-save=before")
    memory.machine = replace(MACHINE, software=replace(MACHINE.software, driver="590.10"))
    result = memory.run(storage, "--benchmark-compare", "-W", "error")
    assert result.ret == 0
    result.stdout.fnmatch_lines(["The baseline was saved under other conditions: driver 580.95 → 590.10."])


def test_the_same_machine_is_not_told_to_differ(memory: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """What pytest-benchmark compares includes the clock frequency at one moment."""
    monkeypatch.setattr("pytest_benchmark.plugin.get_cpu_info", lambda: {"hz_actual": [2, 0], "flags": ["new"]})
    result = memory.run("--benchmark-compare", "-W", "error")
    assert result.ret == 0
    assert "other conditions" not in result.stdout.str()


def test_a_baseline_that_lanecheck_did_not_save_is_told(memory: Bench) -> None:
    (saved,) = memory.path.glob(".benchmarks/*/0001_before.json")
    data = json.loads(saved.read_text())
    del data["machine_info"]["lanecheck"]
    saved.write_text(json.dumps(data))
    memory.run("--benchmark-compare").stdout.fnmatch_lines(["The baseline was not saved by lanecheck*"])


def test_simulated_and_measured_are_never_compared(memory: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("suite.session.load_machine", lambda _path: Scenario(MACHINE))
    result = memory.run("--benchmark-compare", "--machine=any.json")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*the baseline is measured and this run is simulated*"])


def test_a_simulated_run_says_so(memory: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("suite.session.load_machine", lambda _path: Scenario(MACHINE))
    result = memory.run("--machine=any.json", "--benchmark-json=out.json")
    result.stdout.fnmatch_lines(["lanecheck *: SIMULATED 2 ×*", "*= lanecheck =*", "SIMULATED: *"])
    assert memory.report.simulated
    assert json.loads((memory.path / "out.json").read_text())["machine_info"]["lanecheck"]["simulated"] is True


def test_what_is_recorded_of_the_machine_is_private_and_stable(memory: Bench) -> None:
    memory.run("--benchmark-json=out.json")
    info = json.loads((memory.path / "out.json").read_text())["machine_info"]
    assert "node" not in info
    assert "hz_actual" not in info["cpu"]
    assert info["lanecheck"] == facts(MACHINE, simulated=False)


def test_the_machine_is_probed_once_for_loading_saving_and_measuring(memory: Bench) -> None:
    memory.probed = 0
    memory.run("--benchmark-compare", "--benchmark-save=after", "--benchmark-json=out.json")
    assert memory.probed == 1


def test_pytest_benchmarks_table_is_hidden_unless_asked_for(memory: Bench) -> None:
    assert "benchmark 'host_memory/copy'" not in memory.run().stdout.str()
    for option in (
        "--benchmark-verbose",
        "--benchmark-compare",
        "--benchmark-columns=min",
        "--benchmark-group-by=func",
    ):
        assert "(time in " in memory.run(option).stdout.str(), option


@pytest.mark.skipif(find_spec("pygal") is None, reason="pygal is not installed (pytest-benchmark[histogram])")
def test_the_histogram_is_drawn(memory: Bench) -> None:
    """In a process of its own: pytest-benchmark's drawing changes how Python imports."""
    process = memory.spawn("--benchmark-histogram=plots/run")
    output, _ = process.communicate(timeout=60)
    assert process.returncode == 0, output
    assert [path.suffix for path in (memory.path / "plots").iterdir()] == [".svg"]


def test_the_histogram_is_not_silenced(memory: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """pytest-benchmark draws it while it prints its table: quiet means none."""
    drawn: list[str] = []

    def display(_self: Any, reporter: Any, _groups: Any, **_others: Any) -> None:
        drawn.append(reporter.__class__.__name__)

    monkeypatch.setattr("suite.plugin.options.find_spec", lambda _name: object())
    monkeypatch.setattr("pytest_benchmark.table.TableResults.display", display)
    memory.run("--benchmark-histogram=plots/run")
    assert drawn == ["TerminalReporter"]
    drawn.clear()
    memory.run()
    assert drawn == []


def test_grouping_by_a_parameter_that_a_case_lacks_works(bench: Bench) -> None:
    bench.write(host_memory=MEMORY)
    result = bench.run("--sizes=8,16", "--gpus=0", "--benchmark-group-by=param:size")
    result.assert_outcomes(passed=6)
    result.stdout.fnmatch_lines_random(["*benchmark 'size=8': 2 tests*", "*benchmark: 2 tests*"])


def test_a_group_is_ordered_by_bytes_not_by_text() -> None:
    def bench(name: str, size: int) -> dict[str, Any]:
        return {"name": name, "group": "copy", "params": {}, "extra_info": {"case": name, "bytes": size}}

    grouped = groups([bench("c[16MiB]", 1 << 24), bench("c[2MiB]", 1 << 21), bench("c[4KiB]", 1 << 12)], "group")
    assert grouped is not None
    ((name, members),) = grouped
    assert name == "copy"
    assert [member["name"] for member in members] == ["c[4KiB]", "c[2MiB]", "c[16MiB]"]


@pytest.mark.parametrize("by", ["group", "name", "func", "fullname", "fullfunc", "param", "group,param:node"])
def test_every_grouping_of_pytest_benchmark_works(memory: Bench, by: str) -> None:
    memory.run(f"--benchmark-group-by={by}").assert_outcomes(passed=2)


def test_benchmarks_that_are_not_ours_are_left_to_pytest_benchmark() -> None:
    assert groups([{"name": "a", "group": None, "extra_info": {}}], "group") is None


def test_a_failing_case_is_in_the_saved_baseline(memory: Bench) -> None:
    memory.verdicts[CASE] = Verdict("FAIL", "downtrained_speed")
    memory.run("--benchmark-save=slow").assert_outcomes(passed=1, failed=1)
    (saved,) = memory.path.glob(".benchmarks/*/0002_slow.json")
    assert {b["extra_info"]["status"] for b in json.loads(saved.read_text())["benchmarks"]} == {"FAIL", "PASS"}
