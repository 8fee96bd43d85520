"""Reading nvbandwidth's output and comparing medians."""

from __future__ import annotations

import json

import pytest

from suite.records.case import Plan, Samples
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


def test_a_ratio_outside_the_wanted_range_is_marked() -> None:
    runs = {
        ("host to device", 256, "nvbandwidth"): [55.0, 55.2, 54.8],
        ("host to device", 256, "pinned"): [54.9, 55.0, 55.1],
        ("host to device", 512, "nvbandwidth"): [55.0],
        ("host to device", 512, "pinned"): [50.0],
    }
    near, far = compare.table(runs, ["pinned"])
    assert (near["ratio"], near["within"]) == (1.0, True)
    assert far["within"] is False
    assert near["its spread"] == pytest.approx(0.4 / 55, abs=1e-4)


def test_latency_is_measured_once_and_not_at_every_size() -> None:
    names = [r.name for r in compare._at(compare.ROWS, 512, (256, 512))]
    assert "load latency" not in names
    assert "load latency" in [r.name for r in compare._at(compare.ROWS, 256, (256, 512))]
