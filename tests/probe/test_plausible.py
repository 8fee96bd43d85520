"""A described machine that cannot be is refused with the place, before anything simulates it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest

from suite.errors import ProbeError
from suite.probe import recording
from suite.records.machine import Gpu, LinkState, Machine, MemoryModule, NumaNode, PciFunction
from suite.records.scenario import Fault, Scenario

MACHINE = Machine(
    nodes=(NumaNode(0, memory_bytes=0), NumaNode(1)),
    pci=(
        PciFunction("0000:00:01.0", link=LinkState(8.0, 16)),
        PciFunction("0000:01:00.0", "0000:00:01.0", link=LinkState(8.0, 16)),
        PciFunction("0000:00:02.0"),
        PciFunction("0000:02:00.0", "0000:00:02.0"),
    ),
    gpus=(Gpu(0, "x", "0000:01:00.0"), Gpu(1, "x", "0000:02:00.0")),
)
SOUND = (
    Fault("hop_capacity", address="0000:00:01.0", rate=1e9),
    Fault("latency", seconds=0.0),
    Fault("link_state", gpu=1, link=LinkState(2.5, None)),
    Fault("node_to_gpu_capacity", gpu=0, node=1, rate=1e9),
    Fault("hang", group="host_copy"),
)


def load(folder: Path, record: Scenario | Machine) -> Scenario:
    path = folder / "rack.json"
    path.write_bytes(msgspec.json.encode(record))
    return recording.load(path)


def refusal(folder: Path, record: Scenario | Machine) -> str:
    with pytest.raises(ProbeError) as caught:
        load(folder, record)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_a_sound_scenario_loads_as_it_is(tmp_path: Path) -> None:
    scenario = Scenario(MACHINE, SOUND, noise=0.0, efficiency=1.0, title="t")
    assert load(tmp_path, scenario) == scenario


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"noise": -0.01}, "noise is -0.01"),
        ({"noise": 0.6}, "noise is 0.6, allowed are 0 to 0.5"),
        ({"efficiency": 0.0}, "efficiency is 0,"),
        ({"efficiency": 1.1}, "efficiency is 1.1,"),
    ],
)
def test_a_spread_that_no_samples_have_is_refused(tmp_path: Path, fields: dict[str, float], words: str) -> None:
    assert words in refusal(tmp_path, replace(Scenario(MACHINE), **fields))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        (Fault("outstanding_reads", gpu=0, rate=0.0), "faults[0] (outstanding_reads): rate is 0"),
        (Fault("outstanding_reads", rate=-1.0), "rate is -1"),
        (Fault("latency", seconds=-1e-6), "seconds is -1e-06"),
        (Fault("hang", gpu=2), "gpu is 2, which this machine has not"),
        (Fault("pair_capacity", gpu=0, peer=9, rate=1.0), "peer is 9"),
        (Fault("node_capacity", node=4, rate=1.0), "node is 4"),
        (Fault("hop_capacity", address="0000:09:00.0", rate=1.0), "address is 0000:09:00.0"),
        (Fault("hop_capacity", address="0000:01:00.0"), "rate is missing"),
        (Fault("link_state", link=LinkState(2.5, 16)), "gpu or address is missing"),
        (Fault("link_state", gpu=0, link=LinkState(2.5, 0)), "link.width is 0"),
    ],
)
def test_a_fault_that_cannot_be_is_refused(tmp_path: Path, fault: Fault, words: str) -> None:
    assert words in refusal(tmp_path, Scenario(MACHINE, (fault,)))


def _bridges(*pairs: tuple[str, str]) -> tuple[PciFunction, ...]:
    return tuple(PciFunction(address, parent) for address, parent in pairs)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"gpus": (Gpu(0, "x"), Gpu(0, "y"))}, "gpus[1].index is 0, which another of them has already"),
        ({"nodes": (NumaNode(3), NumaNode(3))}, "nodes[1].index is 3"),
        ({"gpus": (Gpu(1024, "x"),)}, "gpus[0].index is 1024, allowed are 0 to 1023"),
        ({"gpus": (Gpu(-1, "x"),)}, "gpus[0].index is -1"),
        ({"gpus": tuple(Gpu(i, "x") for i in range(65))}, "gpus has 65 entries, at most 64"),
        ({"nodes": tuple(NumaNode(i) for i in range(1025))}, "nodes has 1025 entries, at most 1024"),
        ({"gpus": (Gpu(0, "x", memory_bytes=-1),)}, "gpus[0].memory_bytes is -1"),
        ({"nodes": (NumaNode(0, free_bytes=-5),)}, "nodes[0].free_bytes is -5"),
        ({"memory_modules": (MemoryModule(size_bytes=-5),)}, "memory_modules[0].size_bytes is -5"),
        ({"gpus": (Gpu(0, "x", link_max=LinkState(8.0, 0)),)}, "gpus[0].link_max.width is 0, allowed are 1 to 32"),
        ({"pci": (PciFunction("a", link=LinkState(-8.0, 4)),)}, "pci[0].link.speed_gts is -8"),
        ({"pci": _bridges(("a", "a"))}, "pci: a is a parent of itself"),
        ({"pci": _bridges(("x", "a"), ("a", "b"), ("b", "a"))}, "pci: a is a parent of itself (its parent is b)"),
        ({"pci": _bridges(("a", "b"), ("a", "c"))}, "pci[1].address is a, which another of them has already"),
    ],
)
def test_a_machine_that_cannot_be_is_refused(tmp_path: Path, fields: dict[str, Any], words: str) -> None:
    assert words in refusal(tmp_path, Machine(**fields))
    assert words in refusal(tmp_path, Scenario(Machine(**fields)))
