"""Repeats of copies: what is wanted of one-way copies, and what is only shown."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from suite.records.case import Plan, Samples
from suite.records.machine import Gpu, Machine
from suite.units import MIB
from tools import repeat_copies as repeat


class FakeEngine:
    """Copies whose time is taken from a list, again and again, by operation."""

    def __init__(self, **seconds: list[float]) -> None:
        self.seconds: dict[str, Iterator[float]] = {name: itertools.cycle(found) for name, found in seconds.items()}

    def measure(self, plan: Plan) -> Samples:
        return Samples((next(self.seconds[plan.operation]),) * 3, "cuda-event", "copy-engine", verified=True)

    def close(self) -> None:
        """Nothing to end."""


def run(monkeypatch: pytest.MonkeyPatch, file: Path, up: list[float], both: list[float]) -> int:
    engine = FakeEngine(host_to_device=[0.01], device_to_host=up, both_ways=both)
    monkeypatch.setattr(repeat, "WorkerEngine", lambda *_: engine)
    monkeypatch.setattr(repeat.probe, "read", lambda: Machine(gpus=(Gpu(0, "a card", "0000:01:00.0"),)))
    return repeat.main(["--times", "4", "--sizes", "64", "--json", str(file)])


@pytest.mark.parametrize(("last", "status"), [(0.01005, 0), (0.0103, 1)])
def test_one_way_copies_must_repeat_within_a_percent(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, last: float, status: int
) -> None:
    file = tmp_path / "runs.json"
    assert run(monkeypatch, file, [0.01, 0.01, 0.01, last], [0.01]) == status
    found = {line["copy"]: line for line in json.loads(file.read_text())["table"]}
    assert found["device to host"]["within"] is (status == 0)
    assert found["host to device"]["median"] == pytest.approx(64 * MIB / 0.01 / 1e9)


def test_both_ways_is_shown_and_judged_by_nobody(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    file = tmp_path / "runs.json"
    assert run(monkeypatch, file, [0.01], [0.01, 0.02]) == 0
    both = next(line for line in json.loads(file.read_text())["table"] if line["copy"] == "both ways")
    assert both["within"] is None
    assert both["off"] > 0.3


def test_without_the_gpu_it_is_one_sentence(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(repeat.probe, "read", lambda: Machine(why_no_gpu="no driver is loaded"))
    assert repeat.main([]) == 2
    assert "no driver is loaded" in capsys.readouterr().err
