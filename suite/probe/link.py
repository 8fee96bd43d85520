"""The link watch: a child process samples links while the workers move data."""

from __future__ import annotations

import contextlib
import os
import selectors
import subprocess
import time
from collections.abc import Sequence

import msgspec

from suite.probe import lifetime
from suite.records.case import LinkReading

Readings = dict[str, tuple[LinkReading, ...]]

# The child answers `ready` after its first reading and NVML's start, and its readings soon after it is told to stop.
_READY_S, _STOP_S = 8.0, 3.0
_MOST = 256 << 20


class Watcher:
    """Samples the links of PCI functions every `interval_s` seconds: sysfs for every hop, NVML for NVIDIA's GPUs.

    Never raises for what cannot be read, and never waits long: a watch that fails has no readings.
    """

    def __init__(self, interval_s: float = 0.025) -> None:
        self.interval_s = interval_s
        self._child: subprocess.Popen[bytes] | None = None

    def start(self, addresses: Sequence[str]) -> None:
        """Returns when the first reading, the idle one, is taken."""
        self.close()
        with contextlib.suppress(OSError):  # it cannot be started: no readings
            self._child = lifetime.start("suite.probe.watch", f"{self.interval_s:g}", *addresses)
            _line(self._child, _READY_S)

    def stop(self) -> Readings:
        """Readings by address, in order of time; empty where the watch was not started or did not answer."""
        child = self._child
        if child is None or child.stdin is None:
            return {}
        with contextlib.suppress(OSError):
            child.stdin.close()
        answer = _line(child, _STOP_S)
        self.close()
        try:
            return msgspec.json.decode(answer, type=dict[str, tuple[LinkReading, ...]]) if answer else {}
        except (msgspec.DecodeError, UnicodeDecodeError):
            return {}

    def close(self) -> None:
        """Ends the child. Safe to call twice."""
        if self._child is not None:
            lifetime.end(self._child)
            self._child = None


def _line(child: subprocess.Popen[bytes], patience_s: float) -> bytes:
    """The next line that the child writes; empty where none came within `patience_s` seconds or it ended."""
    assert child.stdout is not None
    until, line = time.monotonic() + patience_s, bytearray()
    with selectors.DefaultSelector() as selector:
        selector.register(child.stdout, selectors.EVENT_READ)
        while (left := until - time.monotonic()) > 0 and selector.select(left):
            part = os.read(child.stdout.fileno(), 1 << 16)
            line += part
            if part.endswith(b"\n"):
                return bytes(line)
            if not part or len(line) > _MOST:
                break
    return b""
