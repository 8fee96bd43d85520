"""Plans for the workers' tests, and engines whose handlers go wrong on purpose."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from suite.measure.workers import WorkerEngine
from suite.records.case import Plan

ROOT = Path(__file__).resolve().parents[2]


def plan(operation: Any = "host_to_device", **fields: Any) -> Plan:
    """A small plan; the deadline is far off, so that a slow machine fails no test that does not ask for a hang."""
    return Plan(
        **{"case": f"test/{operation}", "bytes": 4096, "rounds": 2, "deadline_s": 60.0, **fields}, operation=operation
    )


@pytest.fixture
def engine_with(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., WorkerEngine]]:
    """Makes engines from `operation="function of tests.measure.faults"`; closes them at the end."""
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    made: list[WorkerEngine] = []

    def make(watcher: Any = None, start_s: float = 60.0, **handlers: str) -> WorkerEngine:
        named = {operation: f"tests.measure.faults:{function}" for operation, function in handlers.items()}
        made.append(WorkerEngine(watcher, tmp_path, handlers=named, start_s=start_s))
        return made[-1]

    yield make
    for engine in made:
        engine.close()
