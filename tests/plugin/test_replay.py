"""pytest-benchmark's numbers are the measured ones, and no case can spoil another one's."""

from __future__ import annotations

from typing import Any

import pytest

from suite.errors import MeasureError
from suite.plugin.replay import Clock, facts
from suite.records.run import Limits, Result, Verdict
from tests.plugin.conftest import MEMORY, Bench, samples

pytest_plugins = "pytester"

SLOW, FAST = "host_memory/copy/node0", "host_memory/copy/node1"
FAIL = Verdict("FAIL", "remote_node_slow", ("a third of the near node",), "move the card")


@pytest.fixture
def memory(bench: Bench) -> Bench:
    """Two cases, no sizes."""
    (bench.path / "benchmarks" / "test_host_copy.py").unlink()
    bench.write(host_memory=MEMORY)
    return bench


def test_the_recorded_durations_are_the_measured_ones_to_the_bit(memory: Bench) -> None:
    measured = (0.1, 0.3, 1e-7, 0.2, 1 / 3)
    memory.answers[SLOW] = samples(*measured)
    memory.run("--benchmark-json=out.json").assert_outcomes(passed=2)
    stats = memory.json()[SLOW]["stats"]
    assert tuple(stats["data"]) == measured
    assert (stats["min"], stats["max"], stats["median"], stats["rounds"]) == (1e-7, 1 / 3, 0.2, 5)


def test_operations_per_sample_are_the_iterations(memory: Bench) -> None:
    memory.answers[SLOW] = samples(0.1, 0.2, iterations=16)
    memory.run("--benchmark-json=out.json")
    stats = memory.json()[SLOW]["stats"]
    assert (stats["iterations"], stats["rounds"]) == (16, 2)


def test_extra_info_holds_plain_values_only(memory: Bench) -> None:
    memory.run("--benchmark-json=out.json")
    info = memory.json()[SLOW]["extra_info"]
    assert (info["case"], info["status"], info["cause"]) == (SLOW, "PASS", "healthy")
    assert info["bandwidth"] == info["bytes"] / 0.001
    assert all(isinstance(value, str | int | float) for value in info.values())


def test_what_is_not_known_is_left_out_of_extra_info() -> None:
    known = facts(Result("a/b", "host_to_device", 8, limits=Limits(now=2.0)))
    assert known["limit"] == 2.0
    assert "bandwidth" not in known
    assert "limit_device" not in known


def test_a_failed_case_keeps_its_sample_and_says_so(memory: Bench) -> None:
    """It is the 'before' of a repair."""
    memory.verdicts[SLOW] = FAIL
    memory.run("--benchmark-json=out.json").assert_outcomes(passed=1, failed=1)
    assert memory.json()[SLOW]["extra_info"]["status"] == "FAIL"


def test_wrong_bytes_leave_no_sample_and_no_bandwidth(memory: Bench) -> None:
    memory.answers[SLOW] = samples(verified=False, wrong="3 of 4096 words differ")
    result = memory.run("--benchmark-json=out.json", "-v")
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["*wrong bytes (3 of 4096 words differ)*"])
    assert list(memory.json()) == [FAST]
    assert memory.report.results[0].bandwidth is None


def test_a_hang_is_a_fail_without_a_warning_of_an_unused_fixture(memory: Bench) -> None:
    memory.answers[SLOW] = MeasureError("hang", "no answer within 5 s from rank 1", ("", "in barrier"))
    result = memory.run("--benchmark-json=out.json", "-W", "error", "-v")
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["*no answer within 5 s from rank 1*", "*rank 1 last said: in barrier*"])
    assert list(memory.json()) == [FAST]


@pytest.mark.parametrize("seconds", [0.0, -1.0, float("nan"), float("inf")])
def test_an_impossible_duration_costs_its_own_case_only(memory: Bench, seconds: float) -> None:
    memory.answers[SLOW] = samples(0.1, seconds)
    memory.run("--benchmark-json=out.json").assert_outcomes(passed=1, failed=1)
    assert list(memory.json()) == [FAST]


def test_markers_merge_with_the_clock_in_front(bench: Bench) -> None:
    """pytest-benchmark reads the closest marker only: a group on the function must not cost the clock."""
    marked = "import pytest\npytestmark = pytest.mark.benchmark(disable_gc=True)\n"
    bench.write(host_copy=f"{marked}@pytest.mark.benchmark(group='mine')\n{MEMORY.strip()}\n")
    bench.run("--benchmark-json=out.json").assert_outcomes(passed=2)
    recorded = bench.json()["host_copy/copy/node0"]
    assert recorded["group"] == "mine"
    assert recorded["options"]["disable_gc"] is True
    assert recorded["options"]["timer"] == "device_clock"


def test_a_timer_of_the_command_line_does_not_replace_the_clock(memory: Bench) -> None:
    memory.run("--benchmark-json=out.json", "--benchmark-timer=time.process_time").assert_outcomes(passed=2)
    assert memory.json()[SLOW]["stats"]["data"] == [0.001] * 5


def test_another_timer_than_the_clock_fails_the_case(memory: Bench) -> None:
    wrong = """
        import pytest, time

        @pytest.hookimpl(trylast=True)
        def pytest_collection_modifyitems(items):
            items[0].add_marker(pytest.mark.benchmark(timer=time.perf_counter), append=False)
    """
    memory.pytester.makeconftest(wrong)
    result = memory.run("--benchmark-json=out.json")
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["*ReplayError*another timer*"])
    assert list(memory.json()) == [FAST]


def test_benchmark_disable_still_measures_and_judges(memory: Bench) -> None:
    memory.verdicts[SLOW] = FAIL
    memory.run("--benchmark-disable", "-W", "error").assert_outcomes(passed=1, failed=1)
    assert memory.cases == [SLOW, FAST]


def test_benchmark_skip_measures_nothing_and_writes_nothing(memory: Bench) -> None:
    memory.run("--benchmark-skip").assert_outcomes(skipped=2)
    assert memory.folders == []


def test_cprofile_may_call_once_more(memory: Bench) -> None:
    memory.run("--benchmark-cprofile=tottime", "--benchmark-json=out.json").assert_outcomes(passed=2)
    assert memory.json()[SLOW]["stats"]["data"] == [0.001] * 5


def test_the_clock_stands_still_between_rounds() -> None:
    clock = Clock()
    clock.feed(0.1)
    clock.feed(0.2)
    assert clock() == pytest.approx(0.3)
    clock.reset()
    clock.feed(1 / 3)
    assert clock() == 1 / 3


def test_iterations_are_no_calls(memory: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """A sample holds many operations already: the target is called once a round."""
    fed: list[float] = []
    feed = Clock.feed

    def counted(self: Any, seconds: float) -> None:
        fed.append(seconds)
        feed(self, seconds)

    monkeypatch.setattr(Clock, "feed", counted)
    memory.answers[SLOW] = samples(0.1, 0.2, iterations=100)
    memory.run("-k", "node0")
    assert fed == [0.1, 0.2]
