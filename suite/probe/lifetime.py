"""Children end with their parent, and a parent never waits for a child that hangs in the kernel."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
from pathlib import Path

_PR_SET_PDEATHSIG = 1  # linux/prctl.h


def end_with_parent() -> None:
    """In a child: be killed when the parent ends, however it ends.

    Linux ties this to the thread that started the child, so that children are started from threads that stay.
    """
    parent = os.getppid()
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:  # it ended in between
        os._exit(1)


def start(module: str, *arguments: str) -> subprocess.Popen[bytes]:
    """A child that runs a module of this project, in a session of its own, with pipes for stdin and stdout."""
    here = str(Path(__file__).resolve().parents[2])
    paths = [here, *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
    return subprocess.Popen(
        [sys.executable, "-m", module, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(paths)},
    )


def end(child: subprocess.Popen[bytes], patience_s: float = 1.0) -> None:
    """Kills a child and waits a moment for it. One that is stuck in the kernel is left behind: it cannot be ended."""
    with contextlib.suppress(ProcessLookupError):
        child.kill()
    with contextlib.suppress(subprocess.TimeoutExpired):
        child.wait(patience_s)
    for pipe in (child.stdin, child.stdout):
        if pipe is not None:
            with contextlib.suppress(OSError):
                pipe.close()
