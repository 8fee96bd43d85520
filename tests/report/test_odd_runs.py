"""Runs whose fields are odd, as a hand-edited file can have them: every report is made all the same."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import msgspec
import pytest

from suite.judge import findings
from suite.records.run import Limits, Result, Run, Verdict
from suite.report import flat, html, junit, markdown, prometheus, text
from tests.report import samples

NUMBERS = (None, 0.0, -1.0, 1e-300, 1e300, 1.0)
COUNTS = (0, -1, 1, 3, 1 << 62)
EDITS: dict[str, tuple[Any, ...]] = {
    "case": ("", "/", "host_copy", "x/y/z", "ünï/\u202e", "host_copy/" + "long" * 200),
    "bytes": COUNTS,
    "gpus": ((), (0,), (7, 7), (99, -1), tuple(range(40))),
    "memory_node": (None, -1, 99),
    "target_node": (None, -1, 99),
    "chunk_bytes": COUNTS,
    "world_size": COUNTS,
    "threads": COUNTS,
    "samples_s": ((), (0.0,), (-1.0, 1.0), (1e300, 1e300)),
    "bandwidth": NUMBERS,
    "algbw": NUMBERS,
    "latency_s": NUMBERS,
    "fraction_of_limit": NUMBERS,
    "directions": (None, {}, {"a": 0.0}, {str(n): 1.0 for n in range(9)}),
    "verified": (None, True, False),
    "verdict": (
        None,
        Verdict("FAIL", ""),
        Verdict("WARN", "no such cause", ("",), ""),
        Verdict("PASS", "x", ("x" * 999,)),
    ),
}
LIMITS: dict[str, tuple[Any, ...]] = {
    "now": NUMBERS,
    "platform": NUMBERS,
    "device": NUMBERS,
    "expected": (None, (0.0, 0.0), (5.0, 1.0)),
    "floor_s": NUMBERS,
    "generations": ((), (0.0,), (1.0,) * 9),
}


def edited(result: Result, dice: random.Random) -> Result:
    """The result with up to four odd fields, and now and then with odd limits."""
    fields = {name: dice.choice(EDITS[name]) for name in dice.sample(sorted(EDITS), dice.randrange(5))}
    if dice.random() < 0.3:
        fields["limits"] = Limits(**{name: dice.choice(values) for name, values in LIMITS.items()})
    return replace(result, **fields)


def reports(run: Run) -> list[str]:
    found = findings.findings(run)
    headline = findings.headline(run, found)
    made = [
        text.summary(run, found, headline),
        markdown.render(run, found, headline),
        html.render(run, found, headline),
    ]
    return [*made, flat.render(run), prometheus.render(run), junit.render(run)]


@pytest.mark.parametrize("seed", range(20))
def test_odd_fields_crash_no_report(seed: int) -> None:
    run, dice = samples.troubled(), random.Random(seed)
    odd = replace(run, results=tuple(edited(result, dice) for result in run.results[:: 3 + seed % 3]))
    again = msgspec.json.decode(msgspec.json.encode(odd), type=Run)  # all of it passes the store's own check
    assert all(reports(again))


@pytest.mark.parametrize(
    "change",
    [
        lambda r: replace(r, operation=None),
        lambda r: replace(r, operation="an_operation_of_the_future"),
        lambda r: replace(r, backend="mpi"),
    ],
)
def test_an_operation_that_nobody_knows_crashes_no_report(change: Callable[[Result], Result]) -> None:
    run = samples.troubled()
    assert all(reports(replace(run, results=tuple(map(change, run.results)))))


def test_a_run_of_nothing_and_a_machine_of_nothing_make_reports() -> None:
    empty = msgspec.json.decode(json.dumps({"machine": {}, "settings": {}}), type=Run)
    assert all(reports(empty))
