"""A verdict is said once in the summary; errors of the code stay where pytest shows them."""

from __future__ import annotations

import pytest

from suite.records.run import Verdict
from tests.plugin.conftest import MEMORY, Bench

pytest_plugins = "pytester"

SLOW = Verdict("FAIL", "slow_path", ("a third of the near node",), "move the card to the other socket")
BUGS = """
def test_bug(check):
    raise TypeError("a bug before the verdict")

def test_after(check):
    check("host_memory_copy", memory_node=0, target_node=0)
    raise TypeError("a bug after the verdict")

def test_claim(check):
    assert check("host_memory_copy", memory_node=0, target_node=0).bandwidth is None, "a claim of the benchmark"
"""


@pytest.fixture
def slow(bench: Bench) -> Bench:
    """Two cases that fail by their verdict."""
    (bench.path / "benchmarks" / "test_host_copy.py").unlink()
    bench.write(host_memory=MEMORY)
    bench.verdicts = {f"host_memory/copy/node{node}": SLOW for node in (0, 1)}
    return bench


def seen(bench: Bench, *arguments: str) -> tuple[bool, int]:
    """Whether there is a FAILURES block, and the lines of the short summary."""
    result = bench.run(*arguments)
    result.assert_outcomes(failed=2)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    text = result.stdout.str()
    return "= FAILURES =" in text, text.count("\nFAILED ")


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ((), (False, 0)),
        (("-v",), (True, 2)),
        (("-rf",), (False, 2)),
        (("-ra",), (False, 2)),
        (("-rN",), (False, 0)),
        (("--tb=short",), (True, 0)),
        (("--tb=no", "-rf"), (False, 2)),
    ],
)
def test_verdicts_are_listed_only_where_asked_for(
    slow: Bench, arguments: tuple[str, ...], expected: tuple[bool, int]
) -> None:
    assert seen(slow, *arguments) == expected


def test_the_summary_says_how_many_were_left_out_and_how_to_see_them(slow: Bench) -> None:
    slow.run().stdout.fnmatch_lines(["2 cases fail by their verdict: -rf lists them, -v says*"])
    assert "by their verdict" not in slow.run("-rf").stdout.str()


def test_a_root_cause_is_said_once_and_the_others_name_its_first_case(slow: Bench) -> None:
    own = Verdict("FAIL", "slow_path", (*SLOW.evidence, "only node 1 says this"), SLOW.advice)
    slow.verdicts["host_memory/copy/node1"] = own
    text = slow.run("-v", "--junitxml=out.xml").stdout.str()
    blocks = text[text.index("= FAILURES =") : text.index("short test summary")]
    assert blocks.count("a third of the near node") == blocks.count("next: move the card") == 1
    assert blocks.count("only node 1 says this") == 1
    assert "same cause as test_copy[node0]" in blocks
    assert "same cause" not in (slow.path / "out.xml").read_text(), "a build server shows each case alone"


def test_the_short_summary_has_the_measurement_of_every_case(slow: Bench) -> None:
    lines = [line for line in slow.run("-v").stdout.lines if line.startswith("FAILED ")]
    assert len(lines) == 2
    assert all("Failed: 67.1 GB/s" in line for line in lines)


def test_another_cause_is_said_whole(slow: Bench) -> None:
    slow.verdicts["host_memory/copy/node1"] = Verdict("FAIL", "slow_path", ("another evidence",), SLOW.advice)
    text = slow.run("-v").stdout.str()
    assert "same cause" not in text
    assert text.count("next: move the card") >= 2


def test_errors_of_the_code_keep_their_traceback(slow: Bench) -> None:
    slow.write(host_memory=MEMORY + BUGS)
    result = slow.run()
    result.assert_outcomes(failed=5)
    text = result.stdout.str()
    for said in ("a bug before the verdict", "a bug after the verdict", "a claim of the benchmark"):
        assert f"\nE       {'AssertionError' if 'claim' in said else 'TypeError'}: {said}" in text
    assert text.count("\nFAILED ") == 3
    assert text.rindex("FAILED ") < text.index("= lanecheck =")


def test_the_last_line_is_red_and_counts_all(slow: Bench) -> None:
    result = slow.run("--color=yes")
    assert "\x1b[31m" in result.outlines[-1]
    assert "2 failed" in result.outlines[-1]


def test_other_tests_are_pytests_own(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("def test_one(): assert 1 == 2")
    result = pytester.runpytest_inprocess("-p", "suite.plugin")
    result.stdout.fnmatch_lines(["*= FAILURES =*", "E *assert 1 == 2", "FAILED *test_one*"])
    assert "= lanecheck" not in result.stdout.str()
