"""The simulation behind docs/comparing.md keeps what the page promises, on few trials."""

from __future__ import annotations

import random
import re
from pathlib import Path

from tools import compare_statistics as simulation
from tools.compare_statistics import WORLDS, World, rate

PAGE = (Path(__file__).parents[2] / "docs" / "comparing.md").read_text(encoding="utf-8")
TRIALS = 400
STEADY = WORLDS[0]


def _rate(world: World, test: simulation.Test, runs: int, factor: float) -> float:
    return rate(world, test, runs, random.Random(8), TRIALS, factor)


def test_four_runs_a_side_call_hardly_any_healthy_case_and_nearly_every_loss() -> None:
    assert _rate(STEADY, simulation.repeated, 4, 1.0) <= 0.01
    assert _rate(STEADY, simulation.repeated, 4, 0.95) >= 0.95


def test_naive_tests_call_healthy_cases() -> None:
    assert _rate(STEADY, simulation.t_test, 1, 1.0) > 0.5
    assert _rate(STEADY, simulation.apart, 1, 1.0) > 0.3
    assert _rate(STEADY, simulation.gate, 1, 1.0) > 0.1


def test_the_wider_gate_keeps_one_boot_a_side_from_false_alarms() -> None:
    one_boot = next(world for world in WORLDS if world.one_boot)
    assert _rate(one_boot, simulation.ours, 4, 1.0) <= 0.01


def test_the_page_has_every_row_of_the_simulation() -> None:
    rows = re.findall(r"^\| (.+?) \| (\d) × 5 \| (.+?) \|", PAGE, re.M)
    assert rows == [(world.name, str(runs), name) for world in WORLDS for runs, name, _ in simulation.TESTS]


def test_the_page_shows_what_was_asked_for() -> None:
    (row,) = re.findall(r"^\| steady \| 4 × 5 \| lanecheck, repeated \| ([\d.]+) % \| ([\d.]+) % \|", PAGE, re.M)
    assert float(row[0]) <= 1
    assert float(row[1]) >= 95
