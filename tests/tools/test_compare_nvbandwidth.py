"""Reading nvbandwidth's output and comparing medians."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from suite.records.case import Plan, Samples
from suite.records.machine import Gpu, Machine
from suite.units import MIB
from tools import compare_nvbandwidth as compare

OUTPUT = "a line before\n" + json.dumps(
    {
        "nvbandwidth": {
            "testcases": [
                {"name": "host_to_device_memcpy_ce", "bandwidth_matrix": [["55.1", "54.0"]], "status": "Passed"},
                {"name": "device_to_host_memcpy_ce", "bandwidth_matrix": [["N/A", "50"]], "status": "Passed"},
                {"name": "device_local_copy", "status": "Waived"},
            ]
        }
    }
)


def test_the_column_of_the_gpu_is_read_and_gaps_are_left_out() -> None:
    assert compare.values(OUTPUT, 0) == {"host_to_device_memcpy_ce": 55.1}
    assert compare.values(OUTPUT, 1) == {"host_to_device_memcpy_ce": 54.0, "device_to_host_memcpy_ce": 50.0}
    assert compare.values("no json at all", 0) == {}


def test_both_ways_is_compared_direction_by_direction() -> None:
    row = next(r for r in compare.ROWS if r.direction == "device_to_host")
    plan = Plan("a case", "both_ways", 100 * MIB)
    samples = Samples((1.0,), "cuda-event", "copy-engine", directions={"device_to_host": (0.002, 0.004, 0.003)})
    assert compare.value(row, plan, samples) == pytest.approx(100 * MIB / 0.003 / 1e9)


def measured(**rows: tuple[list[float], list[float]]) -> compare.Runs:
    """Values of nvbandwidth and of lanecheck by row; '_' stands for a space."""
    runs = compare.Runs()
    for name, (theirs, ours) in rows.items():
        row = next(r for r in compare.ROWS if r.name == name.replace("_", " "))
        for who, found in (("nvbandwidth", theirs), ("pinned", ours)):
            for value in found:
                runs.note(row, 256, who, value)
    return runs


@pytest.mark.parametrize(
    ("row", "ratio", "within"),
    [
        ("host_to_device", 0.989, False),
        ("host_to_device", 0.991, True),
        ("host_to_device", 1.011, False),
        ("load_latency", 1.02, True),
        ("load_latency", 1.04, False),
        ("within_the_device", 0.97, False),
    ],
)
def test_a_ratio_outside_the_wanted_range_is_marked(row: str, ratio: float, within: bool) -> None:
    (line,) = compare.table(measured(**{row: ([50.0], [50.0 * ratio])}), ["pinned"])
    assert line["within"] is within


def test_more_than_nvbandwidth_both_ways_and_by_sm_is_no_fault() -> None:
    for row in compare.ROWS:
        if row.operation == "both_ways":
            (line,) = compare.table(measured(**{row.name.replace(" ", "_"): ([40.0], [48.0])}), ["pinned"])
            assert line["within"] is True


def test_medians_are_compared_and_the_spread_of_both_is_shown() -> None:
    (line,) = compare.table(measured(host_to_device=([55.0, 55.2, 54.8], [54.9, 55.0, 99.0])), ["pinned"])
    assert (line["ratio"], line["runs"]) == (1.0, "3 + 3")
    assert line["its spread"] == pytest.approx(0.4 / 55, abs=1e-4)


def test_latency_is_measured_once_and_not_at_every_size() -> None:
    names = [r.name for r in compare.at(compare.ROWS, 512, (256, 512))]
    assert "load latency" not in names
    assert "load latency" in [r.name for r in compare.at(compare.ROWS, 256, (256, 512))]


class FakeEngine:
    """Copies of 256 MiB in 10 ms each way, loads in 1 µs. Interrupts at its n-th measurement, if told to."""

    def __init__(self, interrupt: int = 0) -> None:
        self.plans: list[Plan] = []
        self.interrupt = interrupt
        self.closed = False

    def measure(self, plan: Plan) -> Samples:
        self.plans.append(plan)
        if len(self.plans) == self.interrupt:
            raise KeyboardInterrupt
        seconds = (1e-6 if plan.operation.endswith("latency") else 0.01,) * plan.rounds
        ways = {"host_to_device": seconds, "device_to_host": seconds}
        return Samples(seconds, "cuda-event", "copy-engine", verified=True, directions=ways)

    def close(self) -> None:
        self.closed = True


@pytest.fixture
def in_turn(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., tuple[int, Any, FakeEngine]]:
    """Runs the tool with a pretended nvbandwidth of 26.8 GB/s; its status, its JSON, and the engine."""

    def run(*arguments: str, interrupt: int = 0, theirs: float = 256 * MIB / 0.01 / 1e9) -> tuple[int, Any, FakeEngine]:
        engine = FakeEngine(interrupt)
        monkeypatch.setattr(compare, "WorkerEngine", lambda *_: engine)
        monkeypatch.setattr(compare.probe, "read", lambda: Machine(gpus=(Gpu(0, "a card", "0000:01:00.0"),)))
        monkeypatch.setattr(
            compare, "nvbandwidth", lambda _options, rows, _mib: [1000.0 if r.latency else theirs for r in rows]
        )
        monkeypatch.setattr(compare.signal, "signal", lambda *_: None)
        file = tmp_path / "runs.json"
        status = compare.main(["--nvbandwidth", "nvbandwidth", "--json", str(file), *arguments])
        return status, json.loads(file.read_text()), engine

    return run


def test_both_measure_in_turn_and_every_run_is_kept(in_turn: Callable[..., Any], capsys: Any) -> None:
    status, found, engine = in_turn("--times", "3")
    assert status == 0
    assert found["complete"] is True
    who = ["nvbandwidth", "lanecheck", "lanecheck", "nvbandwidth", "nvbandwidth", "lanecheck"]
    assert [t["who"] for t in found["turns"]] == who
    assert all(len(r["values"]) == 3 for r in found["runs"])
    assert len(found["table"]) == len(compare.ROWS)
    assert engine.closed
    assert "run 3" in capsys.readouterr().out


def test_both_directions_come_from_one_measurement(in_turn: Callable[..., Any]) -> None:
    _, _, engine = in_turn("--times", "1")
    asked = [(plan.operation, plan.engine) for plan in engine.plans]
    assert len(asked) == len(set(asked)) == 8


def test_a_slow_median_ends_with_1(in_turn: Callable[..., Any]) -> None:
    status, found, _ = in_turn("--times", "1", theirs=30.0)
    assert status == 1
    assert [row["within"] for row in found["table"] if row["row"] == "load latency"] == [True]


def test_what_was_measured_before_an_interrupt_is_written(in_turn: Callable[..., Any]) -> None:
    status, found, engine = in_turn("--times", "5", interrupt=12)
    assert status == 3
    assert found["complete"] is False
    assert found["table"]
    assert engine.closed
