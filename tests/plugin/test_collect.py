"""The cases follow from the machine, in the order that verdicts need."""

from __future__ import annotations

import pytest

from tests.plugin.conftest import COPY, GLOO, MEMORY, NO_GPU, Bench

pytest_plugins = "pytester"

LINK = """
def test_under_load(check, gpu):
    check("link_under_load", gpus=(gpu,))
"""


def test_a_case_is_named_by_file_function_and_places(bench: Bench) -> None:
    bench.run("--sizes=64MiB", "--gpus=0", "--nodes=1").assert_outcomes(passed=1)
    assert bench.cases == ["host_copy/host_to_device/gpu0/node1/64MiB"]


def test_near_nodes_come_before_far_ones(bench: Bench) -> None:
    bench.run("--sizes=8", "--gpus=1")
    assert bench.cases == ["host_copy/host_to_device/gpu1/node1/8B", "host_copy/host_to_device/gpu1/node0/8B"]


def test_sizes_change_fastest_and_ascend(bench: Bench) -> None:
    bench.run("--sizes=64,8,1MiB,4KiB", "--gpus=0", "--nodes=0")
    assert [case.rpartition("/")[2] for case in bench.cases] == ["8B", "64B", "4KiB", "1MiB"]


def test_what_later_verdicts_need_is_measured_first(bench: Bench) -> None:
    """By the alphabet allreduce would come before all that it is judged by."""
    bench.write(allreduce=GLOO, host_memory=MEMORY, link=LINK, other=MEMORY)
    bench.run("--sizes=8", "--world-size=2")
    groups = list(dict.fromkeys(case.partition("/")[0] for case in bench.cases))
    assert groups == ["link", "host_memory", "host_copy", "allreduce", "other"]


def test_tests_that_are_no_cases_keep_their_place_before(bench: Bench) -> None:
    bench.write(aaa="def test_one(): pass\ndef test_two(): pass\n", allreduce=GLOO)
    result = bench.run("--collect-only", "-q", "--sizes=8", "--world-size=2", "--gpus=0", "--nodes=0")
    names = [line.split("::")[1] for line in result.outlines if "::" in line]
    assert names == ["test_one", "test_two", "test_host_to_device[gpu0-node0-8B]", "test_gloo[2ranks-8B]"]


def test_without_a_gpu_a_function_is_one_skip_with_the_reason(bench: Bench) -> None:
    bench.machine = NO_GPU
    bench.write(host_memory=MEMORY, link=LINK)
    result = bench.run("-rs", "-W", "error")
    result.assert_outcomes(passed=2, skipped=2)
    result.stdout.fnmatch_lines(["SKIPPED *no NVIDIA driver is loaded"])
    verdicts = {r.case: r.verdict for r in bench.report.results}
    unavailable = verdicts["host_copy/host_to_device"]
    assert unavailable is not None
    assert (unavailable.status, unavailable.evidence) == ("UNAVAILABLE", ("no NVIDIA driver is loaded",))
    assert bench.report.complete


def test_own_parameters_do_not_multiply_an_unavailable_function(bench: Bench) -> None:
    bench.machine = NO_GPU
    bench.write(
        host_copy="""
import pytest

@pytest.mark.parametrize("memory", ["pinned", "pageable"])
def test_memory(check, gpu, memory):
    check("host_to_device", gpus=(gpu,), memory=memory, bytes=8)
""",
        host_memory=MEMORY,
    )
    bench.run().assert_outcomes(passed=2, skipped=1)


def test_own_parameters_follow_the_axes_and_may_replace_one(bench: Bench) -> None:
    bench.write(
        host_copy="""
import pytest

@pytest.mark.parametrize("size", [16, 32])
@pytest.mark.parametrize("memory", ["pinned", "pageable"])
def test_memory(check, gpu, memory, size):
    check("host_to_device", gpus=(gpu,), memory=memory, bytes=size)
"""
    )
    bench.run("--gpus=0", "--sizes=8").assert_outcomes(passed=4)
    assert bench.cases[0] == "host_copy/memory/gpu0/pinned/16" or bench.cases[0] == "host_copy/memory/gpu0/16/pinned"
    assert bench.engine is not None
    assert {p.bytes for p in bench.engine.plans if p.operation == "host_to_device"} == {16, 32}


def test_selection_by_name_is_planned_as_selected_with_the_link_that_bounds_it(bench: Bench) -> None:
    bench.run("--sizes=8", "-k", "gpu0").assert_outcomes(passed=2, deselected=2)
    report = bench.report
    assert report.results[0].case == "link/under_load/gpu0"
    assert (report.planned, len(report.results), report.complete) == (3, 3, True)


def test_collecting_alone_writes_and_measures_nothing(bench: Bench) -> None:
    bench.run("--collect-only", "-q")
    assert bench.folders == []
    assert bench.engine is None


def test_tests_that_are_no_cases_never_probe(bench: Bench) -> None:
    bench.pytester.makepyfile(test_other="def test_one(): pass")
    bench.pytester.runpytest_inprocess("-p", "suite.plugin", "test_other.py").assert_outcomes(passed=1)
    assert bench.probed == 0


def test_the_machine_is_read_once(bench: Bench) -> None:
    bench.write(host_memory=MEMORY)
    bench.run("--sizes=8", "--benchmark-json=out.json", "--benchmark-save=one")
    assert bench.probed == 1


def test_a_groups_name_leaves_the_size_out(bench: Bench) -> None:
    bench.write(host_memory=MEMORY)
    bench.run("--sizes=8..16", "--gpus=0", "--nodes=0", "--benchmark-json=out.json")
    groups = {case: bench["group"] for case, bench in bench.json().items()}
    assert groups == {
        "host_memory/copy/node0": "host_memory/copy",
        "host_copy/host_to_device/gpu0/node0/8B": "host_copy/host_to_device/gpu0/node0",
        "host_copy/host_to_device/gpu0/node0/16B": "host_copy/host_to_device/gpu0/node0",
    }


@pytest.mark.parametrize(
    "where", ["benchmarks/test_host_copy.py", ".", "benchmarks/test_host_copy.py::test_host_to_device"]
)
def test_any_way_to_name_the_benchmarks_measures_them(bench: Bench, where: str) -> None:
    bench.write(host_copy=COPY)
    bench.pytester.runpytest_inprocess("-p", "suite.plugin", where, "--sizes=8", "--gpus=0").assert_outcomes(passed=2)


def test_copies_without_the_link_cases_have_their_links_watched_first(bench: Bench) -> None:
    bench.run("--sizes=64MiB", "--gpus=1", "--nodes=1")
    assert [r.case for r in bench.report.results] == [
        "link/under_load/gpu1",
        "host_copy/host_to_device/gpu1/node1/64MiB",
    ]
    assert bench.report.complete
