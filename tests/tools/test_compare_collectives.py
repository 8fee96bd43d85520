"""Comparing collectives with a bare loop: medians over pools, and one real turn on gloo."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from suite.units import KIB, MIB
from tools import compare_collectives as compare


def test_medians_over_pools_are_compared_and_their_spread_stands_beside_them() -> None:
    runs = {(64 * MIB, compare.BARE): [1.0, 2.0, 3.0], (64 * MIB, compare.OURS): [2.1, 2.1, 9.0]}
    row = compare.rows(runs, "gloo")[0]
    assert row["ratio"] == pytest.approx(1.05)
    assert (row["bare_spread"], row["within"], row["counts"]) == (3.0, True, True)


@pytest.mark.parametrize(("mode", "counts"), [("gloo", False), ("nccl", True), ("threads", True)])
def test_small_messages_of_gloo_are_shown_and_do_not_count(mode: str, counts: bool) -> None:
    runs = {(4 * KIB, compare.BARE): [1.0], (4 * KIB, compare.OURS): [2.0]}
    row = compare.rows(runs, mode)[0]
    assert (row["counts"], row["within"]) == (counts, False)


def test_one_turn_on_gloo_measures_both(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out.json"
    assert compare.main(["--mode", "gloo", "--pools", "1", "--sizes", "8,4KiB", "--json", str(out)]) == 0
    kept = json.loads(out.read_text())
    assert {(run["bytes"], run["who"]) for run in kept["runs"]} == {
        (size, who) for size in (8, 4 * KIB) for who in (compare.BARE, compare.OURS)
    }
    assert "within 10 %" in capsys.readouterr().out
