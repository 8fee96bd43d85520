"""Small runs to store."""

from __future__ import annotations

from suite.records.machine import Gpu, Machine
from suite.records.run import Result, Run, Settings, Verdict

HEADER = Run(machine=Machine(gpus=(Gpu(0, "Test GPU"),)), settings=Settings(), planned=3, started="2026-01-02T03:04:05")


def result(number: int) -> Result:
    """The result of one case, with a line break in its text so that framing is tested."""
    return Result(
        case=f"host_copy/host_to_device/gpu0/node0/{number}MiB",
        operation="host_to_device",
        bytes=number << 20,
        samples_s=(0.001, 0.0011),
        bandwidth=5.5e10,
        verdict=Verdict("PASS", "healthy", ("one\ntwo",)),
    )
