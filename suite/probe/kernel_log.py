"""Xid events from the kernel's log, where NVML's events are not to be had: each tells of a failing GPU or link.

The format of a record: Linux' Documentation/ABI/testing/dev-kmsg; of an Xid: NVIDIA's "XID Errors".
"""

from __future__ import annotations

import contextlib
import os
import re
from pathlib import Path

from suite.probe.pci import normal_address

LOG = Path("/dev/kmsg")
_RECORD = 8192  # the kernel hands out whole records; CONSOLE_EXT_LOG_MAX is 8192
_MOST = 100_000  # records of one look; more than a ring buffer holds
_XID = re.compile(rb"NVRM: Xid \(PCI:([0-9a-fA-F:.]{5,16})\): (\d{1,4})\b")


class XidLog:
    """The Xid events that the kernel logs from now on. Needs root, or a kernel that lets everyone read its log."""

    def __init__(self, path: Path = LOG) -> None:
        self._seen: dict[str, list[int]] = {}
        self._handle: int | None = None
        with contextlib.suppress(OSError):
            self._handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
            os.lseek(self._handle, 0, os.SEEK_END)

    def since_start(self, address: str) -> tuple[int, ...] | None:
        """The Xid numbers of one GPU, in order; None where the log cannot be read."""
        if self._handle is None:
            return None
        for _ in range(_MOST):
            record = self._next(self._handle)
            if not record:
                break
            self._note(record)
        return tuple(self._seen.get(address.rpartition(".")[0], ()))

    def _next(self, handle: int) -> bytes:
        try:
            return os.read(handle, _RECORD)
        except BrokenPipeError:  # records were overwritten before they were read: the next read goes on after them
            return b" "
        except OSError:  # nothing more for now
            return b""

    def _note(self, record: bytes) -> None:
        for place, number in _XID.findall(record):
            function = place if b"." in place else place + b".0"
            address = normal_address(function.decode("ascii"))
            if address is not None:
                self._seen.setdefault(address.rpartition(".")[0], []).append(int(number))
