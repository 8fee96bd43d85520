"""Runs in the emulated machine: measures and probes it, and prints one JSON object of what was found."""

from __future__ import annotations

import json
import mmap
import tempfile
from pathlib import Path
from typing import Any

import msgspec

from suite.errors import Unavailable
from suite.measure import numa
from suite.measure.numa_calls import NumaCalls
from suite.measure.workers import WorkerEngine
from suite.probe import machine as probe
from suite.records.case import Plan

PAGES = 64
SIZE = PAGES * mmap.PAGESIZE
CPUS = {0: (0, 1), 1: (2, 3)}


def main() -> None:
    found: dict[str, Any] = {
        "machine": msgspec.to_builtins(probe.read(nvml=False, timeout_s=60.0)),
        "copies": copies(),
        "moved": moved(),
        "far_touch": msgspec.to_builtins(first_touch(1)),
        "absent": absent(),
    }
    print(json.dumps(found))


def copies() -> dict[str, Any]:
    """Host memory cases of 2 × 2 nodes, through the engine and its worker."""
    with tempfile.TemporaryDirectory() as folder:
        engine = WorkerEngine(None, Path(folder))
        try:
            return {f"{a}{b}": msgspec.to_builtins(engine.measure(plan(a, b))) for a in CPUS for b in CPUS}
        finally:
            engine.close()


def plan(source: int, target: int) -> Plan:
    return Plan(
        case=f"host_memory/copy/node{source}/node{target}",
        operation="host_memory_copy",
        bytes=8 << 20,
        memory_node=source,
        target_node=target,
        cpu_node=source,
        cpus=CPUS[source],
        engine="memcpy",
        memory="pageable",
        rounds=2,
        deadline_s=120.0,
    )


def moved() -> dict[str, Any]:
    """Proof before and after one page was moved to the other node on purpose."""
    with numa.HostBuffer(SIZE, 0) as buffer:
        before = buffer.prove()
        NumaCalls().move(buffer.address + 5 * mmap.PAGESIZE, 1, mmap.PAGESIZE, 1)
        after = buffer.prove()
    return {"before": msgspec.to_builtins(before), "after": msgspec.to_builtins(after)}


def first_touch(node: int) -> Any:
    """Placement where neither mbind nor move_pages is allowed, as in a container."""

    class Refusing(NumaCalls):
        def bind(self, *_: Any) -> None:
            raise PermissionError(1, "Operation not permitted")

        def page_nodes(self, *_: Any) -> Any:
            raise PermissionError(1, "Operation not permitted")

    with numa.HostBuffer(256 * SIZE, node, calls=Refusing()) as buffer:
        return buffer.prove()


def absent() -> str:
    try:
        with numa.HostBuffer(SIZE, 2):
            return "it was accepted"
    except Unavailable as reason:
        return str(reason)


if __name__ == "__main__":
    main()
