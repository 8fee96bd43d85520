"""Signals that end a run: SIGTERM and SIGHUP as Ctrl-C does, and no second one within what the first set going."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)  # a terminal, Slurm or CI or systemd, a lost connection
# Who presses Ctrl-C twice, and who sends SIGTERM to a group and its leader, means one end: pytest, on its way to close
# the run, must not be torn. Beyond this a repeat ends what hangs.
REPEATS_S = 2.0


class Signals:
    """From catch() to give_back() each of ENDING raises KeyboardInterrupt where it is not ignored (nohup, a shell's
    background)."""

    def __init__(self) -> None:
        self._before: dict[signal.Signals, Any] = {}
        self._raised_at: float | None = None

    def catch(self) -> None:
        """Nothing where signals cannot be set: not in the main thread."""
        if threading.current_thread() is not threading.main_thread():
            return
        for number in ENDING:
            before = signal.getsignal(number)
            if before not in (signal.SIG_IGN, None):  # None: set by C code, which could not be given back
                self._before[number] = signal.signal(number, self._interrupt)

    def give_back(self) -> None:
        """To whoever had them. Not after a signal: the process is about to end, and a repeat may still come."""
        before, self._before = self._before, {}
        if self._raised_at is not None:
            return
        for number, handler in before.items():
            signal.signal(number, handler)

    @contextmanager
    def undisturbed(self) -> Iterator[None]:
        """For what must not be torn, every wait in it with a deadline. Repeats are ignored for a while beyond it too:
        pytest has its summary to write."""
        held = {number: signal.signal(number, signal.SIG_IGN) for number in self._before}
        try:
            yield
        finally:
            if self._raised_at is not None:
                self._raised_at = time.monotonic()
            for number, handler in held.items():
                signal.signal(number, handler)

    def _interrupt(self, number: int, _frame: FrameType | None) -> None:
        now = time.monotonic()
        if self._raised_at is not None and now - self._raised_at < REPEATS_S:
            return
        self._raised_at = now
        raise KeyboardInterrupt(signal.Signals(number).name)
