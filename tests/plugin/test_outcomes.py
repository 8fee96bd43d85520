"""From verdicts to what pytest, JUnit and the shell see."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pytest

from suite.errors import MeasureError, StoreError, Unavailable
from suite.records.run import Verdict
from suite.store.journal import Journal
from tests.plugin.conftest import MEMORY, NO_GPU, Bench

pytest_plugins = "pytester"

CASE = "host_memory/copy/node0"
OTHER = "host_memory/copy/node1"


@pytest.fixture
def memory(bench: Bench) -> Bench:
    """Two cases."""
    (bench.path / "benchmarks" / "test_host_copy.py").unlink()
    bench.write(host_memory=MEMORY)
    return bench


def verdict(status: str) -> Verdict:
    return Verdict(status, "remote_node_slow", ("a third of the near node",), "move the card to the other socket")


def test_a_fail_says_what_was_measured_the_cause_and_the_next_step(memory: Bench) -> None:
    memory.verdicts[CASE] = verdict("FAIL")
    result = memory.run("-v")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(
        [
            "*GB/s*: remote node slow",
            "  a third of the near node",
            "  next: move the card to the other socket",
        ]
    )
    assert "checks.py" not in result.stdout.str()


@pytest.mark.parametrize(("status", "letter"), [("WARN", "w"), ("INDETERMINATE", "i")])
def test_doubts_pass_and_are_marked(memory: Bench, status: str, letter: str) -> None:
    memory.verdicts[CASE] = verdict(status)
    result = memory.run()
    result.assert_outcomes(passed=2)
    assert result.ret == 0
    result.stdout.fnmatch_lines([f"benchmarks/test_host_memory.py {letter}.*"])
    memory.run("-v").stdout.fnmatch_lines([f"*copy?node0? {status} (remote node slow)*"])


@pytest.mark.parametrize("status", ["WARN", "INDETERMINATE"])
def test_strict_verdicts_make_doubts_fail(memory: Bench, status: str) -> None:
    memory.verdicts[CASE] = verdict(status)
    result = memory.run("--strict-verdicts", "-v")
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["  next: move the card to the other socket"])


def test_what_cannot_be_measured_is_skipped_with_the_reason(memory: Bench) -> None:
    memory.answers[CASE] = Unavailable("GPU 0 is in exclusive mode")
    result = memory.run("-rs", "-W", "error")
    result.assert_outcomes(passed=1, skipped=1)
    result.stdout.fnmatch_lines(["SKIPPED*GPU 0 is in exclusive mode"])


def test_junit_carries_the_cause_and_the_numbers_as_properties(memory: Bench) -> None:
    memory.verdicts[CASE] = verdict("WARN")
    memory.run("--junitxml=out.xml")
    root = ElementTree.parse(memory.path / "out.xml")
    one, two = ({p.get("name"): p.get("value") for p in case.iter("property")} for case in root.iter("testcase"))
    assert one | {"measured": ""} == {
        "verdict": "WARN",
        "cause": "remote_node_slow",
        "measured": "",
        "advice": "move the card to the other socket",
    }
    assert (one["measured"] or "").endswith("GB/s")
    assert (two["verdict"], two["cause"]) == ("PASS", "healthy")


def test_junit_has_the_whole_sentence_that_the_terminal_leaves_out(memory: Bench) -> None:
    memory.verdicts[CASE] = verdict("FAIL")
    memory.run("--junitxml=out.xml")
    failure = ElementTree.parse(memory.path / "out.xml").find(".//failure")
    assert failure is not None
    assert "next: move the card to the other socket" in (failure.get("message") or "")


def test_a_whole_run_is_complete_and_its_engine_closed(memory: Bench) -> None:
    assert memory.run().ret == 0
    assert memory.report.complete
    assert memory.engine is not None
    assert memory.engine.closed


def test_ctrl_c_before_the_first_case_ends_is_the_reason_that_nothing_was_measured(memory: Bench) -> None:
    memory.machine = NO_GPU
    memory.answers[CASE] = memory.answers[OTHER] = KeyboardInterrupt()
    result = memory.run()
    assert result.ret == pytest.ExitCode.INTERRUPTED
    assert "Nothing was measured before the run was broken off." in " ".join(result.stdout.str().split())
    assert "Nothing was measured: " not in result.stdout.str()


def test_ctrl_c_leaves_an_incomplete_run_and_pytests_status(memory: Bench) -> None:
    memory.answers[OTHER] = KeyboardInterrupt()
    result = memory.run("--benchmark-json=out.json", "-W", "error")
    assert result.ret == pytest.ExitCode.INTERRUPTED
    assert "not used at all" not in result.stdout.str()
    assert not memory.report.complete
    assert memory.cases == [CASE]
    assert memory.engine is not None
    assert memory.engine.closed
    assert list(memory.json()) == [CASE]


def test_stopping_at_the_first_failure_is_incomplete(memory: Bench) -> None:
    memory.verdicts[CASE] = verdict("FAIL")
    assert memory.run("-x").ret == pytest.ExitCode.TESTS_FAILED
    assert (memory.report.planned, len(memory.report.results), memory.report.complete) == (2, 1, False)


def test_a_bug_in_a_benchmark_is_an_ordinary_failure_and_incomplete(memory: Bench) -> None:
    memory.write(host_memory=MEMORY + "\ndef test_bug(check):\n    raise TypeError('bug')\n")
    result = memory.run("-W", "error")
    result.assert_outcomes(passed=2, failed=1)
    result.stdout.fnmatch_lines(["*TypeError: bug*"])
    assert not memory.report.complete


def test_nothing_measured_is_exit_status_5(memory: Bench) -> None:
    memory.answers[CASE] = memory.answers[OTHER] = Unavailable("no memory")
    assert memory.run().ret == pytest.ExitCode.NO_TESTS_COLLECTED
    assert memory.report.complete


def test_nothing_measured_beside_other_tests_is_no_error(memory: Bench) -> None:
    memory.answers[CASE] = memory.answers[OTHER] = Unavailable("no memory")
    memory.write(other="def test_one(): pass")
    assert memory.run().ret == 0


def test_a_hang_everywhere_is_a_failure_not_status_5(memory: Bench) -> None:
    memory.answers[CASE] = memory.answers[OTHER] = MeasureError("hang", "no answer within 5 s")
    assert memory.run().ret == pytest.ExitCode.TESTS_FAILED
    assert memory.report.complete


def test_a_full_disk_ends_the_run_with_one_sentence(memory: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_arguments: object) -> None:
        raise StoreError("cannot write run.jsonl (no space left on device): free some space")

    monkeypatch.setattr(Journal, "append", full)
    result = memory.run()
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    text = result.stdout.str() + result.stderr.str()
    assert "free some space" in text
    assert "Traceback" not in text


def test_a_report_folder_that_cannot_be_made_ends_pytest_with_one_sentence(
    memory: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_base: Path) -> Path:
        raise StoreError("cannot write reports (read-only file system): choose another folder with --report-dir")

    monkeypatch.setattr("suite.session.new_folder", refuse)
    result = memory.run()
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    text = result.stdout.str() + result.stderr.str()
    assert "choose another folder with --report-dir" in text
    assert "Traceback" not in text


def test_a_hook_that_fails_at_the_end_does_not_cost_the_run(memory: Bench) -> None:
    memory.pytester.makeconftest("def pytest_sessionfinish():\n    raise RuntimeError('another plugin')\n")
    memory.run()
    assert memory.report.complete
    assert memory.engine is not None
    assert memory.engine.closed


def test_a_benchmark_that_checks_twice_is_told_so(memory: Bench) -> None:
    twice = "\ndef test_twice(check):\n" + "    check('host_memory_copy', memory_node=0)\n" * 2
    memory.write(host_memory=twice)
    result = memory.run()
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*calls check() once*"])


def test_the_summary_ends_with_where_the_report_is_and_nothing_follows(memory: Bench) -> None:
    memory.verdicts[CASE] = verdict("FAIL")
    result = memory.run("-rA", "--benchmark-columns=min")
    assert result.outlines[-2:] == [f"report: {memory.folders[-1]}/report.md", result.outlines[-1]]
    result.stdout.fnmatch_lines(["*short test summary info*", "*= lanecheck =*", "*not right*", "*1 failed, 1 passed*"])


def test_the_header_says_which_machine_and_which_effort(memory: Bench) -> None:
    memory.run("--effort=full").stdout.fnmatch_lines(
        ["lanecheck *: 2 × Example GPU, 2 NUMA nodes, Example CPU; effort full"]
    )
    memory.machine = NO_GPU
    memory.run().stdout.fnmatch_lines(["lanecheck *: no GPU (no NVIDIA driver is loaded), 2 NUMA nodes*; effort quick"])


def test_quiet_is_quieter(memory: Bench) -> None:
    memory.write(
        host_copy="def test_host_to_device(check, gpu, size):\n    check('host_to_device', gpus=(gpu,), bytes=size)\n"
    )
    plain, quiet, quieter = (memory.run("--sizes=8", *option).stdout.str() for option in ((), ("-q",), ("-qq",)))
    # While it runs, in the summary, not at all.
    assert [text.count("Host memory") for text in (plain, quiet, quieter)] == [1, 1, 0]
    assert plain.index("Host memory") < plain.index("= lanecheck")
    assert quiet.index("Host memory") > quiet.index("= lanecheck")
    assert "report: " in quieter


def test_logs_have_each_groups_table_as_it_ends(memory: Bench) -> None:
    memory.write(other=MEMORY)
    lines = memory.run().outlines
    table = next(i for i, line in enumerate(lines) if line.startswith("Host memory"))
    assert table < next(i for i, line in enumerate(lines) if line.startswith("benchmarks/test_other.py"))
    assert not any("\x1b" in line for line in lines)


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["--benchmark-skip"], "--benchmark-skip skips every case"),
        (["-k", "no_such_case"], "no case is left of 2, see -k*"),
    ],
)
def test_where_every_case_was_left_out_it_is_exit_status_5_and_said(memory: Bench, words: list[str], why: str) -> None:
    result = memory.run(*words)
    assert result.ret == pytest.ExitCode.NO_TESTS_COLLECTED
    result.stdout.fnmatch_lines([f"lanecheck: nothing was measured: {why}"])


def test_listing_the_cases_and_measuring_some_say_nothing_of_it(memory: Bench) -> None:
    for words in (["--collect-only"], ["-k", "node0"]):
        result = memory.run(*words)
        assert result.ret == 0
        assert "nothing was measured:" not in result.stdout.str()
