"""Whatever ends a run, what was measured is readable, marked incomplete, and no worker is left."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from suite.records.run import Run
from suite.store import journal, runs
from tests.plugin.conftest import GLOO, ROOT, Bench

pytest_plugins = "pytester"

PATIENCE_S = 60.0
# A simulated case takes no time: there would be no middle of a run to end it in.
SLOW = """
import time
from suite.measure.simulated.engine import SimulatedEngine

measure = SimulatedEngine.measure


def slowly(self, plan):
    time.sleep(0.05)
    return measure(self, plan)


SimulatedEngine.measure = slowly
"""
MARK = "LANECHECK_TEST_RUN"


@pytest.fixture(autouse=True)
def hang_up_is_heard() -> Iterator[None]:
    """Under nohup SIGHUP is ignored here, and so in every run that a test starts."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)


@pytest.fixture
def slow(bench: Bench) -> Bench:
    """68 simulated cases, about 4 s in all."""
    (bench.path / "conftest.py").write_text(SLOW)
    return bench


@pytest.fixture
def mark() -> Iterator[str]:
    """A value in the environment by which a run's processes are found, and ended where a test left some."""
    value = uuid.uuid4().hex
    yield value
    for pid in marked(value):
        subprocess.run(["kill", "-9", str(pid)], check=False)


def marked(value: str) -> list[int]:
    """Processes whose environment has the mark."""
    wanted = f"{MARK}={value}".encode()
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                if wanted in (entry / "environ").read_bytes().split(b"\0"):
                    found.append(int(entry.name))
            except OSError:
                continue
    return found


def until(condition: object, what: str) -> None:
    """Waits until condition() holds."""
    end = time.monotonic() + PATIENCE_S
    while not condition():  # type: ignore[operator]
        assert time.monotonic() < end, f"waited in vain for {what}"
        time.sleep(0.01)


def so_far(bench: Bench) -> int:
    """Results in the journal of the only run."""
    found = list((bench.path / "reports").glob("*/run.jsonl"))
    return found[0].read_bytes().count(b'{"result"') if found else 0


def end_in_the_middle(bench: Bench, process: subprocess.Popen[str], number: signal.Signals) -> str:
    """Sends a signal after a few results, and answers what was printed."""
    until(lambda: so_far(bench) >= 3 or process.poll() is not None, "three results")
    process.send_signal(number)
    output, _ = process.communicate(timeout=PATIENCE_S)
    return output


def rebuilt(folder: Path) -> Run:
    """What `lanecheck report` makes of a folder."""
    done = subprocess.run(
        [sys.executable, "-m", "suite", "report", str(folder)], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "INCOMPLETE" in done.stdout
    assert "INCOMPLETE" in (folder / "report.md").read_text()
    return runs.read(folder / "run.json")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_ctrl_c_and_sigterm_close_an_incomplete_run(slow: Bench, number: signal.Signals) -> None:
    process = slow.spawn("--benchmark-json=out.json")
    output = end_in_the_middle(slow, process, number)
    assert process.returncode == pytest.ExitCode.INTERRUPTED, output
    assert "Traceback" not in output
    (folder,) = slow.folders
    kept = journal.read(folder / "run.jsonl")
    assert 3 <= len(kept.results) < kept.planned
    assert (folder / "run.jsonl").read_bytes().endswith(b'{"end":{"complete":false}}\n')
    written = runs.read(folder / "run.json")
    assert not written.complete
    assert written.results[: len(kept.results)] == kept.results
    asked = [r for r in kept.results if r.operation != "link_under_load"]  # the link is watched unasked
    assert 0 <= len(asked) - len(slow.json()) <= 1  # the signal may come between keeping a case and its replay
    assert f"report: {folder}/report.md" in output
    rebuilt(folder)


def test_a_second_ctrl_c_does_not_tear_the_closing(slow: Bench) -> None:
    (slow.path / "conftest.py").write_text(
        SLOW
        + """
def close(self):
    import os, signal
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(0.05)

SimulatedEngine.close = close
"""
    )
    process = slow.spawn()
    output = end_in_the_middle(slow, process, signal.SIGINT)
    assert process.returncode == pytest.ExitCode.INTERRUPTED, output
    assert (slow.folders[0] / "run.jsonl").read_bytes().endswith(b'{"end":{"complete":false}}\n')


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_repeats_between_the_first_signal_and_the_end_tear_nothing(slow: Bench, number: signal.Signals) -> None:
    """At pytest's own hook, before our closing has begun, and at its last one, after it has ended."""
    (slow.path / "conftest.py").write_text(
        SLOW
        + f"""
import os
import pytest


def again():
    os.kill(os.getpid(), {int(number)})
    time.sleep(0.05)


@pytest.hookimpl(tryfirst=True)
def pytest_keyboard_interrupt():
    again()


def pytest_unconfigure():
    again()
"""
    )
    process = slow.spawn()
    output = end_in_the_middle(slow, process, number)
    assert process.returncode == pytest.ExitCode.INTERRUPTED, output
    assert "Traceback" not in output
    assert f"report: {slow.folders[0]}/report.md" in output
    assert (slow.folders[0] / "run.jsonl").read_bytes().endswith(b'{"end":{"complete":false}}\n')


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_before_the_first_case_is_an_interruption_too(bench: Bench, number: signal.Signals) -> None:
    (bench.path / "conftest.py").write_text(
        f"""
import os

def pytest_collection():
    os.kill(os.getpid(), {int(number)})
"""
    )
    process = bench.spawn()
    output, _ = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == pytest.ExitCode.INTERRUPTED, output
    assert "Traceback" not in output
    assert bench.folders == []


def test_a_run_that_nohup_started_goes_on_after_sighup(slow: Bench) -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)  # inherited by what is started
    try:
        process = slow.spawn()
    finally:
        signal.signal(signal.SIGHUP, before)
    output = end_in_the_middle(slow, process, signal.SIGHUP)
    assert process.returncode == 0, output
    assert slow.report.complete


def test_after_kill_9_the_report_is_rebuilt_from_the_journal(slow: Bench) -> None:
    process = slow.spawn()
    end_in_the_middle(slow, process, signal.SIGKILL)
    assert process.returncode == -signal.SIGKILL
    (folder,) = slow.folders
    kept = journal.read(folder / "run.jsonl")
    assert 3 <= len(kept.results) < kept.planned
    assert not kept.complete
    assert not runs.read(folder / "run.json").complete  # of the last checkpoint, readable too
    assert rebuilt(folder).results == kept.results


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_no_worker_outlives_a_real_run(bench: Bench, mark: str, number: signal.Signals) -> None:
    """Two real ranks over gloo, ended between or in their collectives."""
    (bench.path / "benchmarks" / "test_host_copy.py").unlink()
    bench.write(allreduce=GLOO)
    process = bench.spawn("--world-size=2", "--effort=full", simulated=False, **{MARK: mark})
    output = end_in_the_middle(bench, process, number)
    assert process.returncode in (pytest.ExitCode.INTERRUPTED, -signal.SIGKILL), output
    until(lambda: not marked(mark), "the workers' end")
    (folder,) = bench.folders
    kept = journal.read(folder / "run.jsonl")
    assert len(kept.results) >= 3
    assert {r.verdict.status for r in kept.results if r.verdict} == {"PASS"}
    assert not kept.complete
    rebuilt(folder)


def test_a_whole_real_run_leaves_no_worker_and_imports_nothing_heavy(bench: Bench, mark: str) -> None:
    (bench.path / "benchmarks" / "test_host_copy.py").unlink()
    bench.write(allreduce=GLOO)
    heavy = ("torch", "cupy", "numpy", "scipy", "matplotlib")
    (bench.path / "conftest.py").write_text(
        f"""
import sys

def pytest_unconfigure():
    print("HEAVY", [name for name in {heavy} if name in sys.modules])
"""
    )
    process = bench.spawn("--world-size=2", "--sizes=8,64KiB", simulated=False, **{MARK: mark})
    output, _ = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0, output
    assert "HEAVY []" in output
    assert marked(mark) == []
    assert bench.report.complete
    assert all(result.verified and result.bandwidth for result in bench.report.results)
