"""What stands below a table and at the end of a report: only what belongs to what is shown."""

from __future__ import annotations

from dataclasses import replace

import pytest

from suite.records.run import Result, Run, Verdict
from suite.report import markdown, text
from tests.data.machines import build
from tests.judge.pipeline import run as simulated
from tests.report import samples

GLOO = Result(
    "allreduce/gloo/1MiB", "allreduce", 1 << 20, backend="gloo", world_size=2, samples_s=(1e-3,) * 5, bandwidth=1e9,
    verified=True,
)  # fmt: skip
SPREAD = "the samples spread by 34 % (interquartile range over median)"


def only(*results: Result) -> Run:
    return replace(samples.sound(), results=results)


def passing(*evidence: str) -> Result:
    return replace(GLOO, verdict=Verdict("PASS", "correct", ("1.00 GB/s, values right.", *evidence)))


def test_gloo_says_what_its_pass_means() -> None:
    run = only(passing())
    for shown in (text.summary(run, (), "right"), markdown.render(run, (), "right")):
        assert "gloo: PASS means that the bytes and their placement are right" in " ".join(shown.split())


def test_host_memory_says_so_too() -> None:
    memory = Result(
        "host_memory/node0", "host_memory_copy", 1 << 28, memory_node=0, target_node=0, cpu_node=0, bandwidth=1e10,
        samples_s=(1e-2,) * 5, verdict=Verdict("PASS", "healthy", ("10.0 GB/s measured.",)),
    )  # fmt: skip
    assert "host memory: PASS means" in text.summary(only(memory), (), "right")


@pytest.mark.parametrize("evidence", [(SPREAD,), ()])
def test_samples_that_spread_are_said_below_the_table(evidence: tuple[str, ...]) -> None:
    run = only(passing(*evidence))
    for shown in (text.summary(run, (), "right"), markdown.render(run, (), "right")):
        assert ("34 %" in shown) == bool(evidence)
        assert ("the samples spread widely in 1 case" in " ".join(shown.split())) == bool(evidence)


def test_the_legend_explains_percents_only_where_they_are_shown() -> None:
    assert "a bar of what it could be" not in text.legend(only(passing()))
    assert "a bar of what it could be" in text.legend(samples.sound())


def test_what_a_bad_link_could_carry_stays_on_a_narrow_page() -> None:
    judged = simulated(build.scenarios()["2xpcie-gpu1-gen1"], groups=("link", "host_copy"))
    table = text.group(judged.run, "host_copy", width=60)
    assert "could be" in table.partition("over sizes")[0]


def test_code_spans_of_lanecheck_stay_code_in_markdown_and_odd_backticks_mean_themselves() -> None:
    assert markdown.own("`lanecheck report --format csv` has all *") == "`lanecheck report --format csv` has all \\*"
    assert markdown.own("a ` b") == "a \\` b"
