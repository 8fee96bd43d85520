"""An object with pynvml's functions: answers from dictionaries, everything else 'not supported'."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any


class NVMLError(Exception):
    """pynvml's error: `value` is nvmlReturn_t."""

    def __init__(self, value: int) -> None:
        super().__init__(f"NVML error {value}")
        self.value = value


class FakeNvml:
    """calls: name without 'nvml' → value, or function of the arguments. What is not there raises NOT_SUPPORTED."""

    NVMLError = NVMLError

    def __init__(self, calls: dict[str, Any], start_error: int | None = None) -> None:
        self.calls, self.start_error = calls, start_error

    def nvmlInit(self) -> None:  # noqa: N802 - their spelling
        if self.start_error is not None:
            raise NVMLError(self.start_error)

    def nvmlShutdown(self) -> None:  # noqa: N802 - their spelling
        """Nothing to do."""

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if not name.startswith("nvml"):
            raise AttributeError(name)

        def call(*arguments: Any) -> Any:
            answer = self.calls.get(name.removeprefix("nvml"))
            if answer is None:
                raise NVMLError(3)
            return answer(*arguments) if callable(answer) else answer

        return call


def two_gpus(**more: Any) -> FakeNvml:
    """Two cards at 0000:01:00.0 and 0000:02:00.0 whose handles are 0 and 1."""
    calls: dict[str, Any] = {
        "SystemGetDriverVersion": "580.95.05",
        "SystemGetCudaDriverVersion_v2": 13000,
        "DeviceGetCount": 2,
        "DeviceGetHandleByIndex": lambda index: index,
        "DeviceGetName": b"NVIDIA H200",
        "DeviceGetPciInfo_v3": lambda h: SimpleNamespace(busId=f"00000000:0{h + 1}:00.0", pciDeviceId=0x233510DE),
        "DeviceGetCurrPcieLinkGeneration": 1,
        "DeviceGetCurrPcieLinkWidth": 16,
        "DeviceGetMaxPcieLinkGeneration": 5,
        "DeviceGetMaxPcieLinkWidth": 16,
        "DeviceGetGpuMaxPcieLinkGeneration": 5,
    }
    return FakeNvml(calls | more)
