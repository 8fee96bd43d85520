"""A terminal shows how far it is, and is left as if nothing had been shown."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys

import msgspec
import pytest

from suite.plugin import sentences
from suite.plugin.live import Pace
from suite.records.run import Failure, Limits, Result, Verdict
from suite.records.scenario import Scenario
from tests.plugin.conftest import MACHINE, ROOT, Bench

pytest_plugins = "pytester"


def on_a_terminal(bench: Bench, *arguments: str) -> str:
    """What `pytest benchmarks/` writes to a terminal of 100 columns."""
    (bench.path / "machine.json").write_bytes(msgspec.json.encode(Scenario(MACHINE)))
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "pytest", "-p", "suite.plugin", "benchmarks/", "--machine=machine.json", *arguments],
        cwd=bench.path,
        env={**os.environ, "PYTHONPATH": str(ROOT), "TERM": "xterm", "COLUMNS": "100"},
        stdin=subprocess.DEVNULL,
        stdout=theirs,
        stderr=theirs,
    )
    os.close(theirs)
    data = b""
    while True:
        try:
            part = os.read(ours, 65536)
        except OSError:  # Linux answers EIO where the other end is closed
            break
        if not part:
            break
        data += part
    os.close(ours)
    process.wait(timeout=60)
    return data.decode()


def drawn(text: str) -> list[str]:
    """What was written between saving and restoring the cursor."""
    return re.findall(r"\x1b7\x1b\[K(.*?)\x1b8", text)


def test_a_terminal_shows_the_case_and_how_many_are_left(bench: Bench) -> None:
    text = on_a_terminal(bench, "--sizes=8", "--gpus=0")
    shown = drawn(text)
    assert shown[0] == "  1 of 2: host_copy/host_to_device/gpu0/node0/8B"
    assert any(line.startswith("  2 of 2: host_copy/host_to_device/gpu0/node1/8B") for line in shown)
    assert shown[-1] == ""
    # Shown until the case ends, and taken away before its letter, which may end the line and would leave it there.
    assert re.search(r"1 of 2: [^\x1b]*\x1b8\x1b7\x1b\[K\x1b8(\x1b\[[0-9;]*m)*\.", text)
    # Nothing of it stays: with it taken out the reporter's own line is untouched.
    plain = re.sub(r"\x1b7\x1b\[K.*?\x1b8|\x1b\[[0-9;]*m", "", text)
    assert re.search(r"benchmarks/test_host_copy.py \.\. +\[100%\]", plain)


@pytest.mark.parametrize("option", ["-v", "-q"])
def test_with_v_or_q_there_is_no_live_line(bench: Bench, option: str) -> None:
    assert drawn(on_a_terminal(bench, "--sizes=8", "--gpus=0", option)) == []


def test_the_time_left_is_expected_from_each_groups_own_cases() -> None:
    pace = Pace(["host_copy", "host_copy", "host_copy", "allreduce", "allreduce", "allreduce"])
    pace.end("host_copy", 5.0)
    assert pace.seconds_left() is None
    pace.end("host_copy", 1.0)
    assert pace.seconds_left() == pytest.approx(4.0)
    pace.end("host_copy", 1.0)
    pace.end("allreduce", 40.0)
    pace.end("allreduce", 9.0)
    assert pace.seconds_left() == pytest.approx(9.0)
    pace.end("allreduce", 9.0)
    assert pace.seconds_left() == 0


def test_the_time_left_is_told_roughly() -> None:
    assert [sentences.time_left(s) for s in (0.2, 42.4, 600.0)] == [
        "almost done",
        "about 42 s left",
        "about 10 min left",
    ]


def result(**fields: object) -> Result:
    return Result("host_copy/a", "host_to_device", 8, verdict=Verdict("FAIL", "slow", advice="reseat it"), **fields)


def test_a_failure_of_a_slow_link_is_told_beside_what_the_platform_could() -> None:
    """Beside its own slow link alone it would look healthy: 86 %."""
    told = sentences.failure(result(bandwidth=3.1e9, limits=Limits(now=3.6e9, platform=57.6e9)))
    assert told.splitlines() == ["3.10 GB/s of 57.6 GB/s (5 %), 3.60 GB/s as the link runs: slow", "  next: reseat it"]


def test_a_failure_without_a_limit_invents_none() -> None:
    assert sentences.failure(result(bandwidth=3.1e9)).startswith("3.10 GB/s, limit not known: slow")


def test_a_latency_is_told_beside_its_floor() -> None:
    assert sentences.measured(result(latency_s=12e-6, limits=Limits(floor_s=5e-6))) == "12.0 µs, floor 5.00 µs"


def test_what_a_rank_said_is_told_once() -> None:
    error = Failure("error", "rank 0: out of memory", ("rank 0: out of memory", "waiting"))
    told = sentences.failure(result(error=error))
    assert told.count("out of memory") == 1
    assert "rank 1 last said: waiting" in told


def test_a_case_that_another_one_stands_for_names_it() -> None:
    assert sentences.skip(result(represented_by="host_copy/b")) == "represented by host_copy/b"
