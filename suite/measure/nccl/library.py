"""The NCCL library that torch loaded, by its C interface: its version, and communicators of threads of one process.

torch tells the version that it was built with, not the one that is loaded (LD_PRELOAD), and has one rank a process.
"""

from __future__ import annotations

import ctypes
import re
from functools import cache
from typing import Any

from suite.errors import MeasureError, Unavailable

SHARED_GPU_SINCE = (2, 30, 3)
SHARING = "ranks that share a GPU need NCCL 2.30.3 or newer with NCCL_MULTI_RANK_GPU_ENABLE=1 NCCL_NVLS_ENABLE=0"
# nccl.h: ncclDataType_t, ncclRedOp_t, NCCL_UNIQUE_ID_BYTES.
DTYPES = {"float16": 6, "float32": 7, "bfloat16": 9}
SUM = 0
UNIQUE_ID_BYTES = 128
_LAST_ERROR = re.compile(r"Last error:\s*(\S.*)")


class UniqueId(ctypes.Structure):
    """ncclUniqueId."""

    _fields_ = [("internal", ctypes.c_char * UNIQUE_ID_BYTES)]


@cache
def library() -> ctypes.CDLL:
    """libnccl.so.2 as it is loaded; torch must have been imported. Raises Unavailable where there is none."""
    try:
        found = ctypes.CDLL("libnccl.so.2")
    except OSError as error:
        raise Unavailable(f"NCCL's library cannot be loaded: {error}") from error
    found.ncclGetErrorString.restype = ctypes.c_char_p
    found.ncclCommInitRank.argtypes = [ctypes.POINTER(ctypes.c_void_p), ctypes.c_int, UniqueId, ctypes.c_int]
    found.ncclAllReduce.argtypes = [
        ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p,
    ]  # fmt: skip
    found.ncclCommAbort.argtypes = [ctypes.c_void_p]
    return found


def version() -> tuple[int, int, int]:
    """Of the library that is loaded. NCCL_VERSION_CODE: major · 10000 + minor · 100 + patch from 2.9 on."""
    code = ctypes.c_int()
    check(library().ncclGetVersion(ctypes.byref(code)))
    return code.value // 10_000, code.value // 100 % 100, code.value % 100


def require_shared_gpu() -> None:
    """Raises Unavailable, with the version found, where NCCL refuses two ranks on one GPU."""
    found = version()
    if found < SHARED_GPU_SINCE:
        raise Unavailable(f"{SHARING}; NCCL {'.'.join(map(str, found))} is loaded")


def unique_id() -> UniqueId:
    """What the ranks of one communicator share."""
    made = UniqueId()
    check(library().ncclGetUniqueId(ctypes.byref(made)))
    return made


def communicator(ranks: int, shared: UniqueId, rank: int) -> ctypes.c_void_p:
    """This thread's rank in a new communicator; waits for the others."""
    made = ctypes.c_void_p()
    check(library().ncclCommInitRank(ctypes.byref(made), ranks, shared, rank))
    return made


def allreduce(source: Any, target: Any, dtype: str, comm: ctypes.c_void_p, stream: Any) -> None:
    """Enqueues a sum of tensors over all ranks."""
    check(
        library().ncclAllReduce(
            source.data_ptr(), target.data_ptr(), source.numel(), DTYPES[dtype], SUM, comm, stream.cuda_stream
        )
    )


def check(code: int) -> None:
    """Raises MeasureError for what is not ncclSuccess."""
    if code:
        text = library().ncclGetErrorString(code)
        raise MeasureError("error", f"NCCL: {text.decode(errors='replace')} (ncclResult {code})")


def last_error(text: str) -> str | None:
    """What NCCL itself said last, which torch writes into a later line of an error, after the error's first line; None
    where it is not there."""
    last = _LAST_ERROR.search(text)
    return f"{text.splitlines()[0].rstrip(', ')}: {last[1].strip()}" if last else None
