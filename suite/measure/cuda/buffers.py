"""Host and device buffers of this process, kept from case to case and bounded: a case frees what it does not use."""

from __future__ import annotations

import ctypes
import resource
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from suite.errors import Unavailable
from suite.measure.cuda import room
from suite.measure.cuda.device import Device, Devices
from suite.measure.cuda.error import allocating
from suite.measure.numa import HostBuffer
from suite.records.case import Memory, Placement
from suite.units import MIB, format_bytes

Bytes = npt.NDArray[np.uint8]

# A server may hold nearly all of the GPU's memory; what is free is shared with it.
FREE_FRACTION = 0.8
_GRAIN = 2 * MIB


@dataclass
class Host:
    """A host buffer. address: the host's, device_address: by which kernels reach it (None: pageable). view: its bytes.

    placed: the placed mapping below it; None for memory that CUDA allocated itself.
    """

    address: int
    nbytes: int
    memory: Memory
    node: int | None
    device_address: int | None
    placed: HostBuffer | None
    release: Callable[[], None]

    @property
    def view(self) -> Bytes:
        """All its bytes."""
        if self.placed is not None:
            return self.placed.array[: self.nbytes]
        return np.ctypeslib.as_array((ctypes.c_uint8 * self.nbytes).from_address(self.address))

    @property
    def pinned(self) -> bool:
        """Page-locked: copies run without the host's help."""
        return self.memory != "pageable"

    @property
    def notes(self) -> tuple[str, ...]:
        """Which huge pages were got, where they were asked for."""
        return (f"huge pages: {self.placed.pages}",) if self.placed is not None and self.memory == "huge" else ()

    def prove(self) -> Placement:
        """Where its pages lie now."""
        if self.placed is not None:
            return self.placed.prove()
        detail = "cudaHostAlloc's pages cannot be looked at; the thread that allocated them ran on the node's CPUs"
        return Placement(node=self.node, proved=None, detail=detail)


@dataclass
class OnDevice:
    """A buffer in a GPU's memory."""

    device: Device
    address: int
    nbytes: int


class Buffers:
    """Buffers by role. `begin` starts a case: what it does not ask for is freed before anything new is allocated."""

    def __init__(self, devices: Devices) -> None:
        self._devices = devices
        self._host: dict[tuple[Any, ...], Host] = {}
        self._device: dict[tuple[Any, ...], OnDevice] = {}
        self._used: set[tuple[Any, ...]] = set()

    def begin(self) -> None:
        """A new case."""
        self._used.clear()

    def host(self, role: str, nbytes: int, memory: Memory = "pinned", node: int | None = None) -> Host:
        """nbytes of host memory on a node. A device must be current. Raises Unavailable where there is no room."""
        key = (role, _capacity(nbytes), memory, node)
        self._used.add(key)
        if key not in self._host:
            self._trim()
            room.need_host(_capacity(nbytes))
            self._host[key] = _allocated(self._devices, _capacity(nbytes), memory, node)
        return replace(self._host[key], nbytes=nbytes)

    def device(self, role: str, device: Device, nbytes: int) -> OnDevice:
        """nbytes of a GPU's memory. Raises Unavailable where there is no room."""
        key = (role, device.address, _capacity(nbytes))
        self._used.add(key)
        if key not in self._device:
            self._trim()
            device.use()
            self._device[key] = OnDevice(device, _device_memory(device, _capacity(nbytes)), _capacity(nbytes))
        return replace(self._device[key], nbytes=nbytes)

    def close(self) -> None:
        """Frees everything."""
        self._used.clear()
        self._trim()

    def _trim(self) -> None:
        for key in [k for k in self._device if k not in self._used]:
            buffer = self._device.pop(key)
            buffer.device.use()
            self._devices.runtime.free(buffer.address)
        for key in [k for k in self._host if k not in self._used]:
            self._host.pop(key).release()


def _capacity(nbytes: int) -> int:
    """Small buffers share one allocation, so that a sweep of sizes does not allocate at each."""
    return -(-nbytes // _GRAIN) * _GRAIN


def _device_memory(device: Device, nbytes: int) -> int:
    free, total = device.runtime.memory()
    if nbytes > FREE_FRACTION * free:
        raise Unavailable(
            f"needs {format_bytes(nbytes)} more of GPU memory; {free / 2**30:.1f} of {total / 2**30:.1f} GiB are free: "
            "end what holds the rest, or measure smaller sizes with --sizes"
        )
    with allocating(nbytes, "GPU memory", "another process took it meanwhile; measure smaller sizes with --sizes"):
        return device.runtime.malloc(nbytes)


def _allocated(devices: Devices, nbytes: int, memory: Memory, node: int | None) -> Host:
    """Everything that was done is undone where a later step fails, and by `release`."""
    runtime = devices.runtime
    placed = None
    with ExitStack() as undo:
        if memory in ("host_alloc", "write_combined"):
            with allocating(nbytes, "page-locked memory", _pinning_advice(nbytes)):
                address = runtime.host_alloc(nbytes, write_combined=memory == "write_combined")
            undo.callback(runtime.free_host, address)
        else:
            placed = undo.enter_context(HostBuffer(nbytes, node, huge=memory == "huge"))
            address = placed.address
        if placed is not None and memory != "pageable":
            with allocating(nbytes, "page-locked memory", _pinning_advice(nbytes)):
                runtime.host_register(address, nbytes)
            undo.callback(runtime.host_unregister, address)
        reached = None if memory == "pageable" else runtime.device_pointer(address)
        return Host(address, nbytes, memory, node, reached, placed, undo.pop_all().close)


def _pinning_advice(nbytes: int) -> str:
    """ulimit -l where it is the likely cause."""
    soft, _hard = resource.getrlimit(resource.RLIMIT_MEMLOCK)
    if soft not in (resource.RLIM_INFINITY, -1) and soft < nbytes:
        return f"the limit on locked memory is {format_bytes(soft)}; raise it (`ulimit -l unlimited`) or use --sizes"
    return "end other programs that pin memory, or measure smaller sizes with --sizes"
