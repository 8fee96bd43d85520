"""What the operating system says about a worker process, and how it is ended within a bounded time."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

# proc(5), /proc/PID/stat, field 3, in words that fit "rank 1 is …".
STATES = {
    "T": "stopped",
    "t": "stopped by a debugger",
    "D": "stuck in the kernel",
    "Z": "ended",
    "X": "ended",
    "R": "running",
    "S": "waiting",
    "I": "waiting",
}
Process = subprocess.Popen[bytes]


def state(pid: int, proc: Path = Path("/proc")) -> str:
    """What a process does, in a word or two: 'stopped', 'running', …; 'gone' where there is none."""
    try:
        text = (proc / str(pid) / "stat").read_text(errors="replace")
    except OSError:
        return "gone"
    # The command's name is in brackets and may hold any character, brackets too.
    letter = text.rpartition(")")[2].split()[:1]
    return STATES.get(letter[0], "in an unknown state") if letter else "gone"


def how_it_ended(process: Process) -> str:
    """'was ended by SIGKILL' or 'exited with status 3'; the process must have ended."""
    status = process.returncode
    if status is None or status >= 0:
        return f"exited with status {status}"
    return f"was ended by {_signal_name(-status)}"


def ended(processes: Sequence[Process], within_s: float) -> list[Process]:
    """Those that have ended, after waiting until all have or the time is over."""
    end = time.monotonic() + within_s
    while any(p.poll() is None for p in processes) and time.monotonic() < end:
        time.sleep(0.005)
    return [p for p in processes if p.poll() is not None]


def any_ended(processes: Sequence[Process], within_s: float) -> bool:
    """True as soon as one of them has ended; False where none has when the time is over, or there is none."""
    end = time.monotonic() + within_s
    while processes:
        if any(p.poll() is not None for p in processes):
            return True
        if time.monotonic() > end:
            break
        time.sleep(0.005)
    return False


def kill(process: Process) -> None:
    """SIGKILL to a worker's whole session. No error where it has ended already."""
    if process.poll() is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
