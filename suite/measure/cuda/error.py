"""CUDA's errors as sentences a person can act on."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from suite.errors import SuiteError, Unavailable
from suite.units import format_bytes

# cudaError_t: CUDA Runtime API reference, "Data types used by CUDA Runtime".
OUT_OF_MEMORY = 2
NOT_SUPPORTED = 801
PEER_ACCESS_ALREADY_ENABLED = 704
PEER_ACCESS_NOT_ENABLED = 705

# States of the machine, not faults of a copy: the case is not measurable here, for this reason.
STATES: dict[int, str] = {
    35: "there is no NVIDIA driver, or one older than this CUDA runtime: update it, or install lanecheck[cuda12]",
    46: "the GPU is in exclusive or prohibited compute mode and another process holds it: end that process, "
    "or ask for `nvidia-smi -c DEFAULT`",
    100: "CUDA finds no GPU: look at `nvidia-smi`, at CUDA_VISIBLE_DEVICES, and whether MIG is on without instances",
    101: "CUDA has no GPU at this address: it may be hidden by CUDA_VISIBLE_DEVICES, or be split by MIG",
    802: "the system is not ready: on NVSwitch machines nvidia-fabricmanager must run",
    803: "the driver and its libraries have different versions: restart after the update",
    804: "this GPU does not support forward compatibility: install a driver as new as the CUDA runtime",
}
# Out of memory where a context is made: it needs some hundred MiB.
NO_ROOM = (
    "another program holds so much of the GPU's memory that no CUDA context fits beside it: end it (`nvidia-smi` "
    "lists it)"
)
# After these the context is lost; only a new process helps.
FATAL: dict[int, str] = {
    214: "the GPU reported an uncorrectable ECC error: look at `nvidia-smi -q -d ECC`",
    220: "the GPU reported an uncorrectable NVLink error",
    700: "a copy or kernel touched an address it must not",
    719: "the GPU failed in the middle of a copy: look for Xid lines in the kernel log",
    999: "CUDA reports an unknown error: look for Xid lines in the kernel log",
}


class CudaError(SuiteError):
    """A CUDA call that failed. status: the number of cudaError_t."""

    def __init__(self, call: str, status: int, text: str) -> None:
        reason = FATAL.get(status) or STATES.get(status)
        super().__init__(f"CUDA's {call} failed: {reason} ({text})" if reason else f"CUDA's {call} failed: {text}")
        self.call = call
        self.status = status


@contextmanager
def opening() -> Iterator[None]:
    """Turns what keeps a GPU from being opened into Unavailable; other errors pass."""
    try:
        yield
    except CudaError as error:
        reason = NO_ROOM if error.status == OUT_OF_MEMORY else STATES.get(error.status)
        if reason is not None:
            raise Unavailable(reason) from error
        raise


@contextmanager
def allocating(nbytes: int, what: str, advice: str) -> Iterator[None]:
    """Turns out-of-memory and what is not supported into Unavailable: what was asked for, what to do. Others pass."""
    try:
        yield
    except CudaError as error:
        if error.status == OUT_OF_MEMORY:
            raise Unavailable(f"no {format_bytes(nbytes)} of {what} could be had: {advice}") from error
        if error.status == NOT_SUPPORTED:
            raise Unavailable(
                f"CUDA has no {what} of this kind here ({error.call}): a sandbox may forbid it"
            ) from error
        raise
