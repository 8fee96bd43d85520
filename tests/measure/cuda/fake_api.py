# ruff: noqa: N802 - the functions are called as cupy calls them
"""A CUDA that has no GPU: the functions of cupy.cuda.runtime that lanecheck calls, on host memory and a virtual clock.

It records every call with the device that was current, really moves the bytes (so that a check of them can fail),
executes streams in order only when the host waits for them, refuses what CUDA refuses, and raises AssertionError
where a real GPU would wait for ever.
"""

from __future__ import annotations

import ctypes
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

HOST_TO_DEVICE, DEVICE_TO_HOST, DEVICE_TO_DEVICE = 1, 2, 3
OVERHEAD_S = 1e-6
NAMES = {2: "cudaErrorMemoryAllocation", 46: "cudaErrorDevicesUnavailable", 101: "cudaErrorInvalidDevice"}


class FakeError(RuntimeError):
    """cupy's CUDARuntimeError: a status and a text."""

    def __init__(self, status: int) -> None:
        super().__init__(f"{NAMES.get(status, f'cudaError{status}')}: said by the fake")
        self.status = status


@dataclass
class Gpu:
    """One pretended GPU. rates: bytes per second by copy kind; peer_rate with peer access, staged_rate without."""

    address: str = "0000:01:00.0"
    engines: int = 2
    multiprocessors: int = 2
    total: int = 8 << 30
    free: int = 8 << 30
    rates: dict[int, float] = field(default_factory=lambda: {1: 50e9, 2: 55e9, 3: 2000e9})
    peer_rate: float = 25e9
    staged_rate: float = 12e9


@dataclass
class _Mark:
    """One recording of an event: the stream it was queued on, and when it passed."""

    stream: int
    time: float | None = None


@dataclass
class _Event:
    """An event. mark: its latest recording; waits mean the recording that was the latest when they were queued."""

    device: int
    mark: _Mark | None = None


@dataclass
class _Operation:
    """Something queued. run: what it does, answering how long it takes (None: it cannot go on yet)."""

    run: Callable[[float], float | None]
    mark: _Mark | None = None


@dataclass
class _Stream:
    device: int
    time: float = 0.0
    queue: deque[_Operation] = field(default_factory=deque)


class FakeApi:
    """What suite.measure.cuda.runtime needs of cupy.cuda.runtime. `calls`: (name, current device, arguments)."""

    CUDARuntimeError = FakeError

    def __init__(self, gpus: Sequence[Gpu], peers: Sequence[tuple[int, int]] = ()) -> None:
        self.gpus = list(gpus)
        self.reachable = set(peers)
        self.enabled: set[tuple[int, int]] = set()
        self.calls: list[tuple[str, int, tuple[Any, ...]]] = []
        self.failures: dict[str, list[int]] = {}
        self.corrupt: Callable[[int, int], bool] = lambda _kind, _nbytes: False
        self.lenders: list[FakeApi] = []  # other processes, whose exported memory may be mapped here
        self._current = 0
        self._handles = 100
        self._memory: dict[int, tuple[int, int, Any]] = {}
        self._pinned: dict[int, tuple[int, Any]] = {}
        self._registered: dict[int, int] = {}
        self._imported: list[int] = []
        self._streams: dict[int, _Stream] = {}
        self._events: dict[int, _Event] = {}

    # What tests ask

    def fail(self, name: str, status: int, *, after: int = 0) -> None:
        """The call of this name fails once, after this many that do not."""
        self.failures[name] = [0] * after + [status]

    def names(self) -> list[str]:
        """The names of the calls, in order."""
        return [name for name, _, _ in self.calls]

    def left_over(self) -> dict[str, int]:
        """What was made and not given back."""
        made = {
            "device memory": len(self._memory),
            "pinned memory": len(self._pinned),
            "registered memory": len(self._registered),
            "imported memory": len(self._imported),
            "streams": len(self._streams),
            "events": len(self._events),
            "peer access": len(self.enabled),
        }
        return {name: count for name, count in made.items() if count}

    # Devices

    def deviceGetByPCIBusId(self, address: str) -> int:
        self._log("deviceGetByPCIBusId", address)
        for index, gpu in enumerate(self.gpus):
            if gpu.address == address:
                return index
        raise FakeError(101)

    def getDeviceCount(self) -> int:
        return len(self.gpus)

    def setDevice(self, device: int) -> None:
        self._log("setDevice", device)
        if not 0 <= device < len(self.gpus):
            raise FakeError(101)
        self._current = device

    def deviceGetAttribute(self, attribute: int, device: int) -> int:
        gpu = self.gpus[device]
        return {13: 1_980_000, 16: gpu.multiprocessors, 40: gpu.engines}[attribute]

    def memGetInfo(self) -> tuple[int, int]:
        gpu = self.gpus[self._current]
        return gpu.free, gpu.total

    # Memory

    def malloc(self, nbytes: int) -> int:
        self._log("malloc", nbytes)
        gpu = self.gpus[self._current]
        if nbytes > gpu.free:
            raise FakeError(2)
        gpu.free -= nbytes
        block = ctypes.create_string_buffer(nbytes)
        pointer = ctypes.addressof(block)
        self._memory[pointer] = (self._current, nbytes, block)
        return pointer

    def free(self, pointer: int) -> None:
        self._log("free", pointer)
        self._drain()
        device, nbytes, _ = self._memory.pop(pointer)
        assert device == self._current, "memory is freed while another device is current"
        self.gpus[device].free += nbytes

    def hostAlloc(self, nbytes: int, flags: int) -> int:
        self._log("hostAlloc", nbytes, flags)
        block = ctypes.create_string_buffer(nbytes)
        pointer = ctypes.addressof(block)
        self._pinned[pointer] = (nbytes, block)
        return pointer

    def freeHost(self, pointer: int) -> None:
        self._log("freeHost", pointer)
        self._drain()
        del self._pinned[pointer]

    def hostRegister(self, pointer: int, nbytes: int, flags: int) -> None:
        self._log("hostRegister", pointer, nbytes, flags)
        if pointer in self._registered:
            raise FakeError(712)
        self._registered[pointer] = nbytes

    def hostUnregister(self, pointer: int) -> None:
        self._log("hostUnregister", pointer)
        self._drain()
        del self._registered[pointer]

    def pointerGetAttributes(self, pointer: int) -> Any:
        if pointer not in self._registered and pointer not in self._pinned:
            raise FakeError(1)
        return SimpleNamespace(devicePointer=pointer, hostPointer=pointer, device=self._current, type=1)

    # Copies

    def memcpyAsync(self, target: int, source: int, nbytes: int, kind: int, stream: int) -> None:
        self._log("memcpyAsync", target, source, nbytes, kind, stream)
        device = self._streams[stream].device
        if kind in (HOST_TO_DEVICE, DEVICE_TO_DEVICE):
            self._inside(target, nbytes)
        if kind in (DEVICE_TO_HOST, DEVICE_TO_DEVICE):
            self._inside(source, nbytes)
        rate = self.gpus[device].rates[kind]
        self._queue(stream, self._move(target, source, nbytes, kind, rate))

    def memcpyPeerAsync(self, target: int, to: int, source: int, of: int, nbytes: int, stream: int) -> None:
        self._log("memcpyPeerAsync", target, to, source, of, nbytes, stream)
        assert self._inside(target, nbytes) == to, "the target is not on the device that is named"
        assert self._inside(source, nbytes) == of, "the source is not on the device that is named"
        device = self._streams[stream].device
        direct = (to, of) in self.enabled or (of, to) in self.enabled
        rate = self.gpus[device].peer_rate if direct else self.gpus[device].staged_rate
        self._queue(stream, self._move(target, source, nbytes, DEVICE_TO_DEVICE, rate))

    def memsetAsync(self, pointer: int, value: int, nbytes: int, stream: int) -> None:
        self._log("memsetAsync", pointer, value, nbytes, stream)
        self._inside(pointer, nbytes)

        def run(_time: float) -> float:
            ctypes.memset(pointer, value, nbytes)
            return OVERHEAD_S

        self._queue(stream, run)

    # Streams and events

    def streamCreateWithFlags(self, flags: int) -> int:
        self._log("streamCreateWithFlags", flags)
        handle = self._handle()
        self._streams[handle] = _Stream(self._current)
        return handle

    def streamDestroy(self, stream: int) -> None:
        self._log("streamDestroy", stream)
        del self._streams[stream]

    def streamSynchronize(self, stream: int) -> None:
        self._log("streamSynchronize", stream)
        self._run(stream)

    def streamWaitEvent(self, stream: int, event: int) -> None:
        self._log("streamWaitEvent", stream, event)
        mark = self._events[event].mark

        def run(now: float) -> float:
            return max(0.0, self._passed(mark) - now)

        self._queue(stream, run)

    def eventCreate(self) -> int:
        self._log("eventCreate")
        handle = self._handle()
        self._events[handle] = _Event(self._current)
        return handle

    def eventDestroy(self, event: int) -> None:
        self._log("eventDestroy", event)
        del self._events[event]

    def eventRecord(self, event: int, stream: int) -> None:
        self._log("eventRecord", event, stream)
        recorded = self._events[event]
        if recorded.device != self._streams[stream].device:
            raise FakeError(400)
        recorded.mark = _Mark(stream)
        self._queue(stream, lambda _time: 0.0, recorded.mark)

    def eventSynchronize(self, event: int) -> None:
        self._log("eventSynchronize", event)
        self._passed(self._events[event].mark)

    def eventQuery(self, event: int) -> int:
        self._log("eventQuery", event)
        mark = self._events[event].mark
        return 0 if mark is None or mark.time is not None else 600

    def eventElapsedTime(self, start: int, end: int) -> float:
        before, after = self._events[start], self._events[end]
        if before.device != after.device or before.mark is None or after.mark is None:
            raise FakeError(400)
        if before.mark.time is None or after.mark.time is None:
            raise FakeError(600)
        return (after.mark.time - before.mark.time) * 1e3

    # Peers and other processes

    def deviceCanAccessPeer(self, device: int, peer: int) -> int:
        return int((device, peer) in self.reachable)

    def deviceEnablePeerAccess(self, peer: int) -> None:
        self._log("deviceEnablePeerAccess", peer)
        pair = (self._current, peer)
        if pair not in self.reachable:
            raise FakeError(217)
        if pair in self.enabled:
            raise FakeError(704)
        self.enabled.add(pair)

    def deviceDisablePeerAccess(self, peer: int) -> None:
        self._log("deviceDisablePeerAccess", peer)
        pair = (self._current, peer)
        if pair not in self.enabled:
            raise FakeError(705)
        self.enabled.remove(pair)

    def ipcGetMemHandle(self, pointer: int) -> bytes:
        self._log("ipcGetMemHandle", pointer)
        return pointer.to_bytes(8, "little").ljust(64, b"\0")

    def ipcOpenMemHandle(self, handle: bytes) -> int:
        self._log("ipcOpenMemHandle", handle)
        assert len(handle) == 64
        pointer = int.from_bytes(handle[:8], "little")
        self._imported.append(pointer)
        return pointer

    def ipcCloseMemHandle(self, pointer: int) -> None:
        self._log("ipcCloseMemHandle", pointer)
        self._imported.remove(pointer)

    # Execution

    def current(self) -> int:
        """The device that is current."""
        return self._current

    def queue_kernel(self, stream: int, run: Callable[[float], float | None]) -> None:
        """Queues a kernel; its stream must be of the current device."""
        assert self._streams[stream].device == self._current, "a kernel is launched on another device's stream"
        self._queue(stream, run)

    def arrive(self, target: int, nbytes: int, kind: int) -> None:
        """Breaks a byte where a test asked for it."""
        if self.corrupt(kind, nbytes):
            ctypes.c_uint8.from_address(target + nbytes // 2).value ^= 0x40

    def _move(self, target: int, source: int, nbytes: int, kind: int, rate: float) -> Callable[[float], float]:
        def run(_time: float) -> float:
            ctypes.memmove(target, source, nbytes)
            self.arrive(target, nbytes, kind)
            return OVERHEAD_S + nbytes / rate

        return run

    def _queue(self, stream: int, run: Callable[[float], float | None], mark: _Mark | None = None) -> None:
        queue = self._streams[stream].queue
        if len(queue) >= 1000:  # a full stream makes the host wait; behind a closed gate that never ends
            self._run(stream)
        queue.append(_Operation(run, mark))

    def _passed(self, mark: _Mark | None) -> float:
        """When a recording passed, after running its stream that far; 0 for an event that was never recorded."""
        if mark is None:
            return 0.0
        if mark.time is None:
            self._run(mark.stream, until=mark)
        assert mark.time is not None
        return mark.time

    def _run(self, handle: int, until: _Mark | None = None) -> None:
        """Executes a stream's queue, up to a recording."""
        stream = self._streams[handle]
        while stream.queue:
            operation = stream.queue[0]
            taken = operation.run(stream.time)
            assert taken is not None, "waiting for a stream behind a closed gate: a real GPU would wait for ever"
            stream.queue.popleft()
            stream.time += taken
            if operation.mark is not None:
                operation.mark.time = stream.time
                if operation.mark is until:
                    return

    def latest(self) -> float:
        """The latest time that any stream has reached."""
        return max((s.time for s in self._streams.values()), default=0.0)

    def _drain(self) -> None:
        for handle in list(self._streams):
            self._run(handle)

    def _inside(self, pointer: int, nbytes: int) -> int:
        """The device whose memory this is; refuses what lies outside."""
        for start, (device, size, _) in self._memory.items():
            if start <= pointer and pointer + nbytes <= start + size:
                return device
        if any(start <= pointer for start in self._imported):
            return next(lender._inside(pointer, nbytes) for lender in self.lenders)
        raise FakeError(1)

    def _handle(self) -> int:
        self._handles += 1
        return self._handles

    def _log(self, name: str, *arguments: Any) -> None:
        self.calls.append((name, self._current, arguments))
        pending = self.failures.get(name)
        if pending and (status := pending.pop(0)):
            raise FakeError(status)
