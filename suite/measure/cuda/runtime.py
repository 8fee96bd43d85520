"""The one seam to CUDA: the runtime calls that lanecheck uses, with pointers and handles as plain integers.

`api` is cupy.cuda.runtime (or a fake with its functions); events answer in seconds here, cupy's in milliseconds.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Protocol

from suite.errors import Unavailable
from suite.measure.cuda.error import STATES, CudaError
from suite.measure.cuda.source import NAMES, SOURCE

# cudaMemcpyKind, cudaDeviceAttr, cudaStreamNonBlocking, cudaHostAlloc* and cudaHostRegister* flags: CUDA Runtime API
# reference, "Data types used by CUDA Runtime" (driver_types.h).
HOST_TO_DEVICE, DEVICE_TO_HOST, DEVICE_TO_DEVICE = 1, 2, 3
_CLOCK_RATE, _MULTIPROCESSORS, _ASYNC_ENGINES = 13, 16, 40
_STREAM_NON_BLOCKING = 1
_PORTABLE, _MAPPED, _WRITE_COMBINED = 1, 2, 4


class Kernels(Protocol):
    """What compiles and launches the project's kernels."""

    def why_not(self) -> str | None:
        """None when the kernels are compiled and loaded on the current device, else the reason."""
        ...

    def launch(self, kernel: str, blocks: int, threads: int, arguments: Sequence[Any], stream: int) -> None:
        """Queues a kernel by name; the arguments are numpy scalars of the parameters' types."""
        ...


class Runtime:
    """CUDA's runtime API. Every method raises CudaError with the call's name."""

    def __init__(self, api: Any, kernels: Kernels) -> None:
        self._api = api
        self._kernels = kernels

    def why_no_kernels(self) -> str | None:
        """None where kernels run on the current device, else the reason. Compiles them at the first call."""
        return self._kernels.why_not()

    def device_by_address(self, address: str) -> int:
        """CUDA's number of the GPU at a PCI address."""
        return int(self._call("deviceGetByPCIBusId", address))

    def use(self, device: int) -> None:
        """Makes a device current on this thread; every call without a handle concerns it."""
        self._call("setDevice", device)

    def multiprocessors(self, device: int) -> int:
        """Number of streaming multiprocessors (SMs)."""
        return int(self._call("deviceGetAttribute", _MULTIPROCESSORS, device))

    def copy_engines(self, device: int) -> int:
        """asyncEngineCount: with 1, copies of both directions take turns."""
        return int(self._call("deviceGetAttribute", _ASYNC_ENGINES, device))

    def clock_hz(self, device: int) -> int:
        """Peak clock of the multiprocessors in Hz (CUDA gives kHz)."""
        return int(self._call("deviceGetAttribute", _CLOCK_RATE, device)) * 1000

    def memory(self) -> tuple[int, int]:
        """Free and total bytes of the current device."""
        free, total = self._call("memGetInfo")
        return int(free), int(total)

    def malloc(self, nbytes: int) -> int:
        """Address of device memory on the current device."""
        return int(self._call("malloc", nbytes))

    def free(self, pointer: int) -> None:
        """Gives device memory back."""
        self._call("free", pointer)

    def host_alloc(self, nbytes: int, *, write_combined: bool = False) -> int:
        """Address of page-locked host memory, mapped and known to every device."""
        return int(self._call("hostAlloc", nbytes, _PORTABLE | _MAPPED | (_WRITE_COMBINED if write_combined else 0)))

    def free_host(self, pointer: int) -> None:
        """Gives memory of host_alloc back."""
        self._call("freeHost", pointer)

    def host_register(self, pointer: int, nbytes: int) -> None:
        """Page-locks memory that is there already, and maps it for every device."""
        self._call("hostRegister", pointer, nbytes, _PORTABLE | _MAPPED)

    def host_unregister(self, pointer: int) -> None:
        """Undoes host_register."""
        self._call("hostUnregister", pointer)

    def device_pointer(self, pointer: int) -> int:
        """The address by which kernels reach page-locked host memory (with unified addressing: mostly the same)."""
        return int(self._call("pointerGetAttributes", pointer).devicePointer)

    def copy(self, target: int, source: int, nbytes: int, kind: int, stream: int) -> None:
        """Queues a copy of nbytes; kind is one of the three above."""
        self._call("memcpyAsync", target, source, nbytes, kind, stream)

    def copy_peer(self, target: int, to: int, source: int, of: int, nbytes: int, stream: int) -> None:
        """Queues a copy between two devices' memory; without peer access the driver stages it."""
        self._call("memcpyPeerAsync", target, to, source, of, nbytes, stream)

    def fill(self, pointer: int, value: int, nbytes: int, stream: int) -> None:
        """Queues the setting of every byte to value (0..255)."""
        self._call("memsetAsync", pointer, value, nbytes, stream)

    def stream(self) -> int:
        """A new stream of the current device that does not wait for the default one."""
        return int(self._call("streamCreateWithFlags", _STREAM_NON_BLOCKING))

    def destroy_stream(self, stream: int) -> None:
        """Ends a stream."""
        self._call("streamDestroy", stream)

    def synchronize(self, stream: int) -> None:
        """Waits until everything queued on a stream is done."""
        self._call("streamSynchronize", stream)

    def wait_event(self, stream: int, event: int) -> None:
        """What is queued on the stream from now on waits for the event, which may be another device's."""
        self._call("streamWaitEvent", stream, event)

    def record(self, event: int, stream: int) -> None:
        """Queues the event; it must belong to the stream's device."""
        self._call("eventRecord", event, stream)

    def wait_for(self, event: int) -> None:
        """Waits until an event has passed."""
        self._call("eventSynchronize", event)

    def passed(self, event: int) -> bool:
        """Whether an event has passed; does not wait."""
        return bool(self._call("eventQuery", event) == 0)

    def elapsed(self, start: int, end: int) -> float:
        """Seconds between two events of one device."""
        return float(self._call("eventElapsedTime", start, end)) / 1e3

    def event(self) -> int:
        """A new event of the current device."""
        return int(self._call("eventCreate"))

    def destroy_event(self, event: int) -> None:
        """Ends an event."""
        self._call("eventDestroy", event)

    @contextmanager
    def events(self, devices: Sequence[int]) -> Iterator[tuple[int, ...]]:
        """One event a device named, in order, destroyed at the end. The current device may change."""
        made: list[int] = []
        try:
            for device in devices:
                self.use(device)
                made.append(self.event())
            yield tuple(made)
        finally:
            for event in made:
                self.destroy_event(event)

    def can_access_peer(self, device: int, peer: int) -> bool:
        """Whether the device can reach the peer's memory directly."""
        return bool(self._call("deviceCanAccessPeer", device, peer))

    def enable_peer(self, device: int, peer: int) -> None:
        """Lets the device reach the peer's memory."""
        self.use(device)
        self._call("deviceEnablePeerAccess", peer)

    def disable_peer(self, device: int, peer: int) -> None:
        """Undoes enable_peer."""
        self.use(device)
        self._call("deviceDisablePeerAccess", peer)

    def export_memory(self, pointer: int) -> bytes:
        """A handle by which another process can map device memory."""
        return bytes(self._call("ipcGetMemHandle", pointer))

    def import_memory(self, handle: bytes) -> int:
        """Address of device memory that another process exported."""
        return int(self._call("ipcOpenMemHandle", handle))

    def close_memory(self, pointer: int) -> None:
        """Unmaps imported memory."""
        self._call("ipcCloseMemHandle", pointer)

    def launch(self, kernel: str, blocks: int, threads: int, arguments: Sequence[Any], stream: int) -> None:
        """Queues a kernel of suite.measure.cuda.kernels on the current device."""
        self._kernels.launch(kernel, blocks, threads, arguments, stream)

    def _call(self, name: str, *arguments: Any) -> Any:
        try:
            return getattr(self._api, name)(*arguments)
        except self._api.CUDARuntimeError as error:
            raise CudaError(name, int(error.status), str(error)) from error


@functools.cache
def load() -> Runtime:
    """This process's runtime. Raises Unavailable with the reason where cupy or a driver is missing."""
    cupy = _cupy()
    try:
        count = int(cupy.cuda.runtime.getDeviceCount())
    except cupy.cuda.runtime.CUDARuntimeError as error:
        raise Unavailable(STATES.get(int(error.status), f"CUDA finds no usable GPU: {error}")) from error
    if count == 0:
        raise Unavailable("CUDA finds no GPU")
    return Runtime(cupy.cuda.runtime, CupyKernels(cupy))


class CupyKernels:
    """The project's kernels, compiled with NVRTC by cupy, once a device."""

    def __init__(self, cupy: Any) -> None:
        self._cupy = cupy
        self._kernels = {name: cupy.RawKernel(SOURCE, name) for name in NAMES}

    def why_not(self) -> str | None:
        """See Kernels."""
        try:
            for kernel in self._kernels.values():
                _ = kernel.num_regs  # asking for it compiles and loads the kernel
        except self._cupy.cuda.runtime.CUDARuntimeError as error:
            raise CudaError("load of the kernels", int(error.status), str(error)) from error
        except (RuntimeError, OSError, ImportError, self._cupy.cuda.compiler.CompileException) as error:
            return f"NVRTC is missing or refuses: {_first_line(error)}"
        return None

    def launch(self, kernel: str, blocks: int, threads: int, arguments: Sequence[Any], stream: int) -> None:
        """See Kernels."""
        try:
            self._kernels[kernel]((blocks,), (threads,), tuple(arguments), stream=_Handle(stream))
        except (self._cupy.cuda.driver.CUDADriverError, self._cupy.cuda.runtime.CUDARuntimeError) as error:
            raise CudaError(f"launch of {kernel}", int(error.status), str(error)) from error


@dataclass(frozen=True)
class _Handle:
    """A stream as cupy's launches want it: they read `ptr` alone (cupy.cuda.ExternalStream is deprecated since 14)."""

    ptr: int


def _cupy() -> Any:
    try:
        return import_module("cupy")
    except ImportError as error:
        raise Unavailable(
            "cupy is not installed or does not load: install lanecheck[cuda12] or lanecheck[cuda13], as the driver is "
            f"({_first_line(error)})"
        ) from error


def _first_line(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__
