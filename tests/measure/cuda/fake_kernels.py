"""The project's CUDA kernels on a CUDA that has no GPU, and the runtime over both."""

from __future__ import annotations

import ctypes
import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from suite.measure.cuda.runtime import Runtime
from suite.measure.cuda.source import SOURCE
from tests.measure.cuda.fake_api import OVERHEAD_S, FakeApi, Gpu


class FakeKernels:
    """The project's kernels, done on host memory. reason: why they cannot be compiled, if they cannot."""

    def __init__(self, api: FakeApi, reason: str | None = None) -> None:
        self.api = api
        self.reason = reason
        self.load_s = 1e-6  # of one dependent load
        self.opens = True  # the gate opens when the host says so; False: it gives up first
        self._parameters = _signatures(SOURCE)

    def why_not(self) -> str | None:
        return self.reason

    def launch(self, kernel: str, blocks: int, threads: int, arguments: Sequence[Any], stream: int) -> None:
        self.api.calls.append((f"launch {kernel}", self.api.current(), (blocks, threads, *arguments, stream)))
        assert self.reason is None, "a kernel is launched although none can be compiled"
        assert 1 <= threads <= 1024
        assert blocks >= 1
        given = [type(a) for a in arguments]
        assert given == self._parameters[kernel], f"{kernel} takes {self._parameters[kernel]}, not {given}"
        values = [int(a) for a in arguments]
        self.api.queue_kernel(stream, getattr(self, f"_{kernel}")(*values))

    def _gate(self, flag: int, said: int, timeout_ns: int) -> Callable[[float], float | None]:
        def run(now: float) -> float | None:
            if not self.opens or timeout_ns == 0:
                ctypes.c_uint32.from_address(said).value = 2
                return timeout_ns / 1e9
            if ctypes.c_uint32.from_address(flag).value == 0:
                return None
            ctypes.c_uint32.from_address(said).value = 1
            return max(0.0, self.api.latest() - now)

        return run

    def _copy16(self, target: int, source: int, words: int) -> Callable[[float], float]:
        def run(_now: float) -> float:
            ctypes.memmove(target, source, words * 16)
            if words:
                self.api.arrive(target, words * 16, 0)
            return OVERHEAD_S + words * 16 / 40e9

        return run

    def _copy16_both(
        self, target: int, source: int, back_target: int, back_source: int, words: int
    ) -> Callable[[float], float]:
        one, other = self._copy16(target, source, words), self._copy16(back_target, back_source, words)
        return lambda now: max(one(now), other(now))

    def _chase(self, start: int, loads: int, _chosen: int, last: int) -> Callable[[float], float]:
        def run(_now: float) -> float:
            pointer = start
            for _ in range(loads):
                pointer = ctypes.c_uint64.from_address(pointer).value
            ctypes.c_uint64.from_address(last).value = pointer
            return loads * self.load_s

        return run

    def _ping_pong(
        self, mine: int, other: int, rounds: int, _first: int, _timeout_ns: int, said: int
    ) -> Callable[[float], float]:
        def run(_now: float) -> float:
            if rounds:
                ctypes.c_uint32.from_address(mine).value = rounds
                ctypes.c_uint32.from_address(other).value = rounds
            ctypes.c_uint32.from_address(said).value = 1
            return rounds * 2 * self.load_s

        return run


def runtime(
    *gpus: Gpu, peers: Sequence[tuple[int, int]] = (), why_no_kernels: str | None = None
) -> tuple[Runtime, FakeApi]:
    """A runtime over pretended GPUs, and the fake below it."""
    api = FakeApi(gpus or (Gpu(),), peers)
    return Runtime(api, FakeKernels(api, why_no_kernels)), api


def _signatures(source: str) -> dict[str, list[type]]:
    """The numpy type that each parameter of each kernel takes, read from the CUDA source."""
    found = {}
    for name, text in re.findall(r"__global__ void (\w+)\(([^)]*)\)", source):
        wide = [("*" in p or "long long" in p) for p in text.split(",")]
        found[name] = [np.uint64 if w else np.uint32 for w in wide]
    return found
