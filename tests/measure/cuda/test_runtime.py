"""The seam to cupy: units, errors in words, and kernels that cannot be compiled."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

import pytest

from suite.errors import Unavailable
from suite.measure.cuda.error import CudaError
from suite.measure.cuda.runtime import HOST_TO_DEVICE, CupyKernels, Runtime, load
from tests.measure.cuda.fake_api import FakeApi, FakeError, Gpu
from tests.measure.cuda.fake_kernels import FakeKernels


class DriverError(RuntimeError):
    status = 700


class CompileError(Exception):
    """cupy's CompileException derives from Exception alone."""


class Kernel:
    """A RawKernel: asking for num_regs compiles it."""

    def __init__(self, failure: Exception | None) -> None:
        self.failure = failure
        self.launched: list[Any] = []

    @property
    def num_regs(self) -> int:
        if self.failure:
            raise self.failure
        return 10

    def __call__(self, grid: Any, block: Any, arguments: Any, *, stream: Any) -> None:
        if self.failure:
            raise self.failure
        self.launched.append((grid, block, arguments, stream.ptr))


def cupy(failure: Exception | None = None, api: Any = None) -> Any:
    kernel = Kernel(failure)
    cuda = SimpleNamespace(
        runtime=api or FakeApi([Gpu()]),
        driver=SimpleNamespace(CUDADriverError=DriverError),
        compiler=SimpleNamespace(CompileException=CompileError),
    )
    return SimpleNamespace(RawKernel=lambda _source, _name: kernel, cuda=cuda, kernel=kernel)


def test_events_answer_in_seconds() -> None:
    api = FakeApi([Gpu(rates={1: 1e9, 2: 1e9, 3: 1e9})])
    runtime = Runtime(api, FakeKernels(api))
    stream, device, host = runtime.stream(), runtime.malloc(1_000_000), runtime.host_alloc(1_000_000)
    with runtime.events([0, 0]) as (start, end):
        runtime.record(start, stream)
        runtime.copy(device, host, 1_000_000, HOST_TO_DEVICE, stream)
        runtime.record(end, stream)
        runtime.synchronize(stream)
        assert runtime.elapsed(start, end) == pytest.approx(1e-3, rel=0.01)


def test_an_error_names_the_call_and_keeps_its_cause() -> None:
    api = FakeApi([Gpu()])
    api.fail("malloc", 719)
    with pytest.raises(CudaError, match="malloc failed: the GPU failed in the middle") as caught:
        Runtime(api, FakeKernels(api)).malloc(8)
    assert caught.value.status == 719
    assert isinstance(caught.value.__cause__, FakeError)


@pytest.mark.parametrize("failure", [CompileError("bad source\nline 2"), OSError("libnvrtc.so.13: cannot open")])
def test_kernels_that_do_not_compile_leave_a_reason_of_one_line(failure: Exception) -> None:
    reason = CupyKernels(cupy(failure)).why_not()
    assert reason is not None
    assert "NVRTC" in reason
    assert "\n" not in reason


def test_a_gpu_that_fails_while_kernels_load_is_not_called_a_missing_compiler() -> None:
    with pytest.raises(CudaError, match="load of the kernels"):
        CupyKernels(cupy(FakeError(2))).why_not()


def test_a_launch_goes_to_the_stream_and_its_errors_are_cuda_errors() -> None:
    library = cupy()
    CupyKernels(library).launch("gate", 1, 2, (3,), 77)
    assert library.kernel.launched == [((1,), (2,), (3,), 77)]
    with pytest.raises(CudaError, match="launch of gate"):
        CupyKernels(cupy(DriverError("illegal address"))).launch("gate", 1, 2, (3,), 77)


@pytest.mark.parametrize(
    ("library", "words"),
    [
        (None, "cupy is not installed"),
        (cupy(api=FakeApi([])), "finds no GPU"),
    ],
)
def test_a_machine_without_cuda_is_told_why(monkeypatch: pytest.MonkeyPatch, library: Any, words: str) -> None:
    load.cache_clear()
    monkeypatch.setitem(sys.modules, "cupy", library)
    with pytest.raises(Unavailable, match=words):
        load()
