"""Did the bytes arrive that were sent? A fresh random pattern, a poisoned target, compared by bytes."""

from __future__ import annotations

import secrets

import numpy as np

from suite.measure import progress
from suite.measure.cuda.buffers import Buffers, Bytes, Host, OnDevice
from suite.measure.cuda.runtime import DEVICE_TO_HOST, HOST_TO_DEVICE, Runtime
from suite.units import MIB

POISON = 0xA5
_BLOCK = 1 * MIB
_SPARE = 16 * MIB


class Pattern:
    """Random bytes, different in every case and in every block: a random megabyte, each block of it exclusive-ored
    with a random word of its own. So an old, shifted, swapped or missing block is seen, and writing it is quick."""

    def __init__(self, nbytes: int, seed: int | None = None) -> None:
        """seed: where another process must know the same bytes; fresh ones by default."""
        generator = np.random.default_rng(secrets.randbits(128) if seed is None else seed)
        blocks = -(-nbytes // _BLOCK)
        self.nbytes = nbytes
        self._base = generator.integers(0, 1 << 64, _BLOCK // 8, dtype=np.uint64)
        self._words = generator.integers(0, 1 << 64, blocks, dtype=np.uint64)

    def block(self, number: int) -> Bytes:
        """The bytes of one block; the last one may be short."""
        whole: Bytes = (self._base ^ self._words[number]).view(np.uint8)
        return whole[: self.nbytes - number * _BLOCK]

    def write(self, view: Bytes, offset: int = 0) -> None:
        """Writes the pattern's bytes from offset (a multiple of the block) on into view."""
        for start in range(0, view.nbytes, _BLOCK):
            part = self.block((offset + start) // _BLOCK)[: view.nbytes - start]
            view[start : start + part.nbytes] = part

    def difference(self, view: Bytes, offset: int = 0) -> str | None:
        """None where view holds the pattern's bytes from offset on, else the first byte that differs, in words."""
        for start in range(0, view.nbytes, _BLOCK):
            expected = self.block((offset + start) // _BLOCK)[: view.nbytes - start]
            seen = view[start : start + expected.nbytes]
            if not np.array_equal(expected, seen):
                return self._words_for(expected, seen, offset + start)
        return None

    def _words_for(self, expected: Bytes, seen: Bytes, start: int) -> str:
        wrong = np.flatnonzero(expected != seen)
        first = int(wrong[0])
        never = " (never written)" if seen[first] == POISON else ""
        return (
            f"byte {start + first} of {self.nbytes} is 0x{int(seen[first]):02x}{never} and should be "
            f"0x{int(expected[first]):02x}; {wrong.size} bytes are wrong in this block of {expected.nbytes}"
        )


class Checker:
    """Puts patterns into device memory and looks at what is there, through a buffer that no measured copy uses."""

    def __init__(self, runtime: Runtime, buffers: Buffers, nbytes: int, node: int | None) -> None:
        self._runtime = runtime
        self._spare = buffers.host("spare", min(nbytes, _SPARE), node=node)

    def put(self, pattern: Pattern, target: OnDevice) -> None:
        """Writes the pattern into a device buffer."""
        for offset, size in self._parts(target.nbytes):
            pattern.write(self._spare.view[:size], offset)
            self._copy(target, target.address + offset, self._spare.address, size, HOST_TO_DEVICE)
            progress.step()

    def poison(self, target: OnDevice) -> None:
        """Overwrites a device buffer, so that bytes that never arrive are seen."""
        target.device.use()
        stream = target.device.streams[0]
        self._runtime.fill(target.address, POISON, target.nbytes, stream)
        self._runtime.synchronize(stream)

    def difference(self, pattern: Pattern, target: OnDevice) -> str | None:
        """None where the device buffer holds the pattern, else what is wrong."""
        for offset, size in self._parts(target.nbytes):
            view = self._spare.view[:size]
            view[:] = np.uint8(~POISON & 0xFF)
            self._copy(target, self._spare.address, target.address + offset, size, DEVICE_TO_HOST)
            wrong = pattern.difference(view, offset)
            if wrong:
                return wrong
            progress.step()
        return None

    def _parts(self, nbytes: int) -> list[tuple[int, int]]:
        step = _SPARE
        return [(offset, min(step, nbytes - offset)) for offset in range(0, nbytes, step)]

    def _copy(self, buffer: OnDevice, target: int, source: int, nbytes: int, kind: int) -> None:
        buffer.device.use()
        stream = buffer.device.streams[0]
        self._runtime.copy(target, source, nbytes, kind, stream)
        self._runtime.synchronize(stream)


def poison_host(buffer: Host) -> None:
    """Overwrites a host buffer."""
    buffer.view[:] = POISON
