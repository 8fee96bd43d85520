"""The pipeline keeps what was measured, whatever the engine does."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from suite import session as pipeline
from suite.errors import MeasureError, Unavailable
from suite.records.case import Plan, Samples
from suite.records.machine import Machine, NumaNode
from suite.records.run import Finding, Run, Settings
from suite.store import journal, runs

PLAN = Plan("host_memory/copy/node0", "host_memory_copy", 1 << 20, memory_node=0)


class ScriptedEngine:
    """Answers with what it was given: samples, or an exception to raise."""

    def __init__(self, *answers: Samples | Exception) -> None:
        self._answers = list(answers)
        self.closed = 0

    def measure(self, plan: Plan) -> Samples:
        assert plan.case
        answer = self._answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def close(self) -> None:
        self.closed += 1


GOOD = Samples((1e-4,) * 5, "host-monotonic", "memcpy", True)


def start(folder: Path, engine: ScriptedEngine, planned: int = 1) -> pipeline.Session:
    machine = Machine(nodes=(NumaNode(0, cpus=(0, 1), memory_bytes=1 << 30),), why_no_gpu="no driver")
    made = pipeline.new_folder(folder)
    return pipeline.Session(machine, Settings(), engine, made, planned, simulated=False)


def test_a_result_is_on_disk_before_the_next_case_starts(tmp_path: Path) -> None:
    session = start(tmp_path, ScriptedEngine(GOOD), planned=2)
    session.check(PLAN)
    kept = runs.read(session.folder)
    assert [r.case for r in kept.results] == [PLAN.case]
    assert not kept.complete


def test_a_hang_is_a_fail_and_the_next_case_goes_on(tmp_path: Path) -> None:
    hang = MeasureError("hang", "no answer within 5 s from rank 1", ("", "stuck"))
    session = start(tmp_path, ScriptedEngine(hang, GOOD))
    first, second = session.check(PLAN), session.check(PLAN)
    assert first.verdict is not None
    assert second.verdict is not None
    assert first.verdict.status == "FAIL"
    assert second.verdict.status != "FAIL"


def test_what_cannot_be_measured_says_why(tmp_path: Path) -> None:
    session = start(tmp_path, ScriptedEngine(Unavailable("the GPU is in MIG mode")))
    verdict = session.check(PLAN).verdict
    assert verdict is not None
    assert (verdict.status, verdict.evidence) == ("UNAVAILABLE", ("the GPU is in MIG mode",))


def test_closing_ends_the_engine_and_leaves_a_whole_run(tmp_path: Path) -> None:
    engine = ScriptedEngine(GOOD)
    session = start(tmp_path, engine)
    session.check(PLAN)
    session.close(complete=True)
    assert engine.closed == 1
    assert runs.read(session.folder).complete
    assert "Host memory" in (session.folder / "report.md").read_text()


def test_the_findings_of_a_run_are_looked_for_once_at_its_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[int] = []

    def findings(run: Run) -> tuple[Finding, ...]:
        looked.append(len(run.results))
        return ()

    monkeypatch.setattr(pipeline.judge_findings, "findings", findings)
    session = start(tmp_path, ScriptedEngine(GOOD, GOOD), planned=2)
    session.check(PLAN)
    session.check(PLAN)
    session.close(complete=True)
    assert list(session.findings()) == []
    assert looked == [0, 2]


def test_a_bug_in_an_engine_is_not_hidden(tmp_path: Path) -> None:
    session = start(tmp_path, ScriptedEngine(ZeroDivisionError()))
    with pytest.raises(ZeroDivisionError):
        session.check(PLAN)


def test_a_link_is_watched_once_before_the_cases_that_it_bounds(tmp_path: Path) -> None:
    watched = replace(GOOD, directions={"host_to_device": (1e-4,), "device_to_host": (1e-4,)})
    engine = ScriptedEngine(watched, GOOD)
    session = start(tmp_path, engine)
    session.see_links((0,))
    session.see_links((0,))
    assert [r.case for r in session.results] == ["link/under_load/gpu0"]
    assert session.planned == 2
    assert journal.read(session.folder / journal.NAME).planned == 2, "what a kill would leave"
