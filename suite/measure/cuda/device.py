"""A GPU of this process: its streams, its spin gate, whether its link is awake. Kept across cases."""

from __future__ import annotations

import ctypes
import time
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from suite.errors import Unavailable
from suite.measure.cuda import kernels
from suite.measure.cuda.error import opening
from suite.measure.cuda.runtime import Runtime

GATE_TIMEOUT_S = 5.0
STREAMS = 2
# Longest time that queueing one operation takes here, for the gate that cannot be opened (torch's sleep).
_QUEUE_S = 8e-6
_AWAKE_S = 1.0  # a link left alone for longer is woken again


@dataclass
class Gate:
    """Two 32-bit words that host and devices share: `flag` opens every gate waiting on it, `said` is the answer."""

    runtime: Runtime
    pointer: int
    device_pointer: int

    def close(self) -> None:
        """Kernels queued from now on wait."""
        self._words()[0] = 0
        self._words()[1] = 0

    def open(self) -> None:
        """Every waiting kernel ends, all at once."""
        self._words()[0] = 1

    @property
    def timed_out(self) -> bool:
        """A kernel gave up before the host was ready: what was timed held launches. Read it after synchronising."""
        return bool(self._words()[1] == 2)

    def hold(self, stream: int) -> None:
        """Queues a kernel that holds the stream until the gate opens."""
        kernels.gate(self.runtime, self.device_pointer, self.device_pointer + 4, GATE_TIMEOUT_S, stream)

    def _words(self) -> Any:
        return (ctypes.c_uint32 * 2).from_address(self.pointer)


@dataclass(eq=False)
class Device:
    """One GPU. index: CUDA's number. why_no_kernels: None where kernels can be launched."""

    runtime: Runtime
    address: str
    index: int
    multiprocessors: int
    copy_engines: int
    streams: tuple[int, ...]
    why_no_kernels: str | None
    last_used: float | None = None

    def use(self) -> None:
        """Makes it current."""
        self.runtime.use(self.index)

    def need_kernels(self) -> None:
        """Raises Unavailable, with the reason, where kernels cannot be launched."""
        if self.why_no_kernels is not None:
            raise Unavailable(f"this needs a kernel on the GPU: {self.why_no_kernels}")

    @property
    def asleep(self) -> bool:
        """Its link may have gone to a lower speed: nothing was copied for a while."""
        return self.last_used is None or time.monotonic() - self.last_used > _AWAKE_S


class Devices:
    """The GPUs that this process has opened, by PCI address, and the gate that they share."""

    def __init__(self, runtime: Runtime) -> None:
        self.runtime = runtime
        self._open: dict[str, Device] = {}
        self._gate: Gate | None = None

    def at(self, address: str) -> Device:
        """The GPU at a PCI address, opened at the first call. Raises Unavailable with the reason."""
        if address not in self._open:
            with opening():
                self._open[address] = self._opened(address)
        device = self._open[address]
        device.use()
        return device

    def stream(self, device: Device, number: int) -> int:
        """The device's stream of this number; made where there are fewer."""
        device.use()
        while len(device.streams) <= number:
            device.streams = (*device.streams, self.runtime.stream())
        return device.streams[number]

    def gate(self) -> Gate:
        """The gate. A device must be open."""
        if self._gate is None:
            pointer = self.runtime.host_alloc(4096)
            ctypes.memset(pointer, 0, 4096)
            self._gate = Gate(self.runtime, pointer, self.runtime.device_pointer(pointer))
        return self._gate

    def close(self) -> None:
        """Destroys the streams and the gate."""
        for device in self._open.values():
            device.use()
            for stream in device.streams:
                self.runtime.destroy_stream(stream)
        self._open.clear()
        if self._gate is not None:
            self.runtime.free_host(self._gate.pointer)
            self._gate = None

    def _opened(self, address: str) -> Device:
        runtime = self.runtime
        index = runtime.device_by_address(address)
        runtime.use(index)
        streams = tuple(runtime.stream() for _ in range(STREAMS))
        why_not = runtime.why_no_kernels()
        if why_not is None:
            gate = self.gate()
            gate.close()
            kernels.load(runtime, gate.device_pointer + 1024, streams[0])
        engines = runtime.copy_engines(index)
        return Device(runtime, address, index, runtime.multiprocessors(index), engines, streams, why_not)


def torch_sleep(device: Device, stream: int, operations: int) -> bool:
    """Holds a stream for as long as queueing the operations takes, with torch's sleep kernel; False without torch."""
    try:
        torch = import_module("torch")
        if not torch.cuda.is_available():
            return False
        external = torch.cuda.ExternalStream(stream, device=torch.device("cuda", device.index))
    except (ImportError, AttributeError, RuntimeError):
        return False
    with torch.cuda.stream(external):
        torch.cuda._sleep(int((operations * _QUEUE_S + 1e-3) * device.runtime.clock_hz(device.index)))
    return True
