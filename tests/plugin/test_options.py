"""Bad input is pytest's usage error, with what is allowed, before anything is measured."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from suite.errors import ProbeError
from suite.plugin.options import check_ranks
from suite.records.run import Settings
from tests.plugin.conftest import COPY, MACHINE, NO_GPU, Bench

pytest_plugins = "pytester"


def refused(bench: Bench, *arguments: str) -> str:
    """Runs, and answers what pytest said; nothing may have been measured or written."""
    result = bench.run(*arguments)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert bench.folders == []
    assert "Traceback" not in result.stdout.str() + result.stderr.str()
    return result.stderr.str() + result.stdout.str()


@pytest.mark.parametrize(
    ("arguments", "allowed"),
    [
        (["--effort=thorough"], "quick"),
        (["--sizes=big"], "write 8, 4KiB, 64MiB or 1GiB"),
        (["--sizes=64MiB..8"], "must not be above the last one"),
        (["--sizes=0"], "at least 1 byte"),
        (["--sizes=3"], "multiple of 4 bytes"),
        (["--gpus=a"], "whole numbers from 0"),
        (["--gpus=-1"], "whole numbers from 0"),
        (["--nodes=0,,1"], "whole numbers from 0"),
        (["--world-size=1"], "whole numbers from 2"),
        (["--ranks-per-gpu=0"], "from 1 to 8"),
        (["--ranks-per-gpu=9"], "from 1 to 8"),
        (["--deadline=0"], "seconds above 0"),
        (["--deadline=soon"], "seconds above 0"),
        (["--deadline=inf"], "seconds above 0"),
        (["--benchmark-group-by=speed"], "fullname"),
    ],
)
def test_a_bad_value_is_told_with_the_allowed_ones(bench: Bench, arguments: list[str], allowed: str) -> None:
    assert allowed in refused(bench, *arguments)


def test_a_gpu_that_is_not_there_is_told_with_those_that_are(bench: Bench) -> None:
    assert "--gpus 7: not on this machine; allowed are 0, 1" in refused(bench, "--gpus=0,7")


def test_a_node_that_is_not_there_is_told_with_those_that_are(bench: Bench) -> None:
    assert "--nodes 4: not on this machine; allowed are 0, 1" in refused(bench, "--nodes=4")


def test_asking_for_a_gpu_where_none_is_gives_the_reason(bench: Bench) -> None:
    bench.machine = NO_GPU
    assert "no NVIDIA driver is loaded" in refused(bench, "--gpus=0")


def test_the_machine_is_checked_for_benchmarks_in_another_folder_too(bench: Bench) -> None:
    """There it is met while collecting, where pytest would make a collection error of it."""
    (bench.path / "mine").mkdir()
    (bench.path / "mine" / "test_host_copy.py").write_text(COPY)
    result = bench.pytester.runpytest_inprocess("-p", "suite.plugin", "mine", "--gpus=7")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*--gpus 7: not on this machine*"])


def test_a_machine_that_cannot_be_probed_is_one_sentence(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> None:
        raise ProbeError("NVML did not answer within 10 s: the driver hangs, look at dmesg")

    monkeypatch.setattr("suite.session.probe", broken)
    assert "NVML did not answer within 10 s" in refused(bench)


@pytest.mark.parametrize("name", ["absent.json", "broken.json", "empty"])
def test_a_bad_machine_file_is_a_usage_error_not_a_collection_error(bench: Bench, name: str) -> None:
    (bench.path / "broken.json").write_text("{]")
    (bench.path / "empty").mkdir()
    text = refused(bench, f"--machine={name}")
    assert "--machine: " in text
    assert name in text


def test_a_report_folder_that_is_a_file_is_refused(bench: Bench) -> None:
    (bench.path / "file").touch()
    assert "is a file: name a folder" in refused(bench, "--report-dir=file/reports")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_report_folder_that_may_not_be_written_is_refused(bench: Bench) -> None:
    (bench.path / "locked").mkdir(mode=0o500)
    assert "cannot be written to (Permission denied)" in refused(bench, "--report-dir=locked/reports")


def test_a_report_folder_that_not_even_root_can_write_is_refused_before_collecting(bench: Bench) -> None:
    text = refused(bench, "--report-dir=/proc/reports")
    assert "--report-dir /proc/reports: /proc cannot be written to" in text
    assert "collected" not in text


def test_checking_the_report_folder_leaves_nothing_behind(bench: Bench) -> None:
    bench.run("--collect-only", "--report-dir=some/where")
    assert not (bench.path / "some").exists()
    assert not list(bench.path.glob(".lanecheck-*"))


def test_more_ranks_than_the_cpus_can_run_are_refused_with_the_bound(bench: Bench) -> None:
    text = refused(bench, "--world-size=2,64")
    assert "--world-size 64: this machine has 4 CPUs, which run at most 16 ranks" in text


def test_as_many_ranks_as_the_bound_are_allowed_and_ranks_on_several_hosts_have_none(bench: Bench) -> None:
    assert bench.run("--sizes=8", "--world-size=16").ret == 0
    assert bench.run("--sizes=8", "--world-size=64", "--write-plan=plan.json").ret != pytest.ExitCode.USAGE_ERROR


def test_the_bound_of_ranks_rises_with_the_cpus() -> None:
    many = replace(MACHINE, nodes=(replace(MACHINE.nodes[0], cpus=tuple(range(32))),))
    check_ranks(Settings(world_sizes=(128,)), many)
    with pytest.raises(pytest.UsageError, match="32 CPUs, which run at most 128"):
        check_ranks(Settings(world_sizes=(129,)), many)


def test_the_report_goes_to_the_folder_that_was_asked_for(bench: Bench) -> None:
    bench.run("--sizes=8", "--report-dir=some/where").assert_outcomes(passed=4)
    (folder,) = (bench.path / "some" / "where").iterdir()
    assert {"run.json", "run.jsonl", "report.md"} <= {path.name for path in folder.iterdir()}


def test_settings_reach_the_run_file(bench: Bench) -> None:
    bench.run("--effort=full", "--sizes=8,16", "--gpus=1", "--nodes=1,0", "--world-size=4", "--deadline=2.5")
    assert bench.report.settings == Settings("full", (8, 16), (1,), (0, 1), (4,), 2.5)


def test_the_deadline_reaches_every_plan(bench: Bench) -> None:
    bench.run("--sizes=8", "--deadline=2.5")
    assert bench.engine is not None
    assert {plan.deadline_s for plan in bench.engine.plans} == {2.5}


def test_the_host_name_is_recorded_only_where_asked_for(bench: Bench) -> None:
    bench.run("--sizes=8", "--gpus=0", "--benchmark-json=out.json")
    assert bench.report.machine.host_name is None
    assert f'"{os.uname().nodename}"' not in (bench.path / "out.json").read_text()
    bench.run("--sizes=8", "--gpus=0", "--host-name", "--benchmark-json=out.json")
    assert bench.report.machine.host_name == os.uname().nodename
    assert f'"{os.uname().nodename}"' in (bench.path / "out.json").read_text()


def test_xdist_is_refused_for_benchmarks(bench: Bench) -> None:
    assert "benchmarks cannot run under xdist" in refused(bench, "-n2")


def test_xdist_is_fine_for_tests(bench: Bench) -> None:
    bench.pytester.makepyfile(test_other="def test_one(): pass")
    result = bench.pytester.runpytest_inprocess("-p", "suite.plugin", "-n1", "test_other.py")
    result.assert_outcomes(passed=1)


def test_xdist_is_refused_where_a_parent_of_the_benchmarks_is_named(bench: Bench) -> None:
    result = bench.pytester.runpytest_inprocess("-p", "suite.plugin", "-n2", ".")
    assert result.ret == pytest.ExitCode.USAGE_ERROR


def test_benchmarks_need_pytest_benchmark(bench: Bench) -> None:
    assert "drop -p no:benchmark" in refused(bench, "-p", "no:benchmark")


def test_tests_do_not_need_pytest_benchmark(bench: Bench) -> None:
    bench.pytester.makepyfile(test_other="def test_one(): pass")
    result = bench.pytester.runpytest_inprocess("-p", "suite.plugin", "-p", "no:benchmark", "test_other.py")
    result.assert_outcomes(passed=1)


def test_a_missing_folder_for_the_json_file_is_made(bench: Bench) -> None:
    bench.run("--sizes=8", "--benchmark-json=new/folder/out.json").assert_outcomes(passed=4)
    assert len(bench.json("new/folder/out.json")) == 4


def test_a_json_file_that_is_a_folder_is_refused(bench: Bench) -> None:
    assert "name a file" in refused(bench, "--benchmark-json=benchmarks")


def test_a_json_file_below_a_file_is_refused(bench: Bench) -> None:
    (bench.path / "file").touch()
    assert "its folder cannot be made" in refused(bench, "--benchmark-json=file/sub/out.json")


def test_a_histogram_without_pygal_is_refused_before_the_run(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("suite.plugin.options.find_spec", lambda _name: None)
    assert "pytest-benchmark[histogram]" in refused(bench, "--benchmark-histogram")


def test_strict_verdicts_is_not_pytests_strict(bench: Bench, tmp_path: Path) -> None:
    result = bench.run("--help")
    assert result.ret == 0
    result.stdout.fnmatch_lines(["lanecheck:*", "*--strict-verdicts*"])
    assert tmp_path.is_dir()


def test_ranks_on_a_gpu_that_is_not_there_are_told_to_change_nothing(bench: Bench) -> None:
    line = "lanecheck: --ranks-per-gpu 2 changes nothing: there is no GPU (no NVIDIA driver is loaded)"
    assert line not in bench.run("--sizes=8", "--ranks-per-gpu=2").stdout.lines
    bench.machine = NO_GPU
    assert line in bench.run("--sizes=8", "--ranks-per-gpu=2").stdout.lines
    assert "changes nothing" not in bench.run("--sizes=8").stdout.str()


def test_histograms_without_a_name_go_below_the_reports(bench: Bench) -> None:
    config = bench.pytester.parseconfigure("-p", "suite.plugin", "benchmarks/", "--benchmark-histogram")
    (prefix,) = config.option.benchmark_histogram
    assert Path(prefix).parent == bench.path / "reports" / "histograms"
    config = bench.pytester.parseconfigure("-p", "suite.plugin", "benchmarks/", "--benchmark-histogram=plots/mine")
    assert config.option.benchmark_histogram == ["plots/mine"]
