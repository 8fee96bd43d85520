"""One worker process: it reads plans, measures each, answers, and ends when its parent does.

Run by the pool as `python -m suite.measure.worker SETUP`. The first plan is only prepared for (imports, process group).
"""

from __future__ import annotations

import ctypes
import os
import signal
import socket
import sys
import traceback
from collections.abc import Callable, Mapping
from importlib import import_module
from types import ModuleType
from typing import cast

import msgspec

from suite.errors import SuiteError, Unavailable
from suite.measure import progress
from suite.measure.answer import Answer, Rank, Setup
from suite.records.case import Plan

Handler = Callable[[Plan, Rank], Answer]

_COLLECTIVE = "suite.measure.collective:measure"
_COPY = "suite.measure.cuda.copy:measure"
_PEER = "suite.measure.cuda.peer:measure"
HANDLERS: dict[str, str] = {
    "host_memory_copy": "suite.measure.host_memory:measure",
    "allreduce": _COLLECTIVE,
    "all_gather": _COLLECTIVE,
    "reduce_scatter": _COLLECTIVE,
    "broadcast": _COLLECTIVE,
    "all_to_all": _COLLECTIVE,
    "send_recv": _COLLECTIVE,
    "link_under_load": _COPY,
    "host_to_device": _COPY,
    "device_to_host": _COPY,
    "both_ways": _COPY,
    "host_to_device_latency": _COPY,
    "device_to_host_latency": _COPY,
    "host_device_load_latency": _COPY,
    "staging": _COPY,
    "all_gpus_host_to_device": _COPY,
    "all_gpus_device_to_host": _COPY,
    "all_gpus_both_ways": _COPY,
    "device_local_copy": _PEER,
    "ipc_copy": _PEER,
    "peer_write": _PEER,
    "peer_read": _PEER,
    "peer_both_ways": _PEER,
    "peer_latency": _PEER,
    "peer_flag_latency": _PEER,
    "peer_pattern": _PEER,
}
PR_SET_PDEATHSIG = 1  # linux/prctl.h


def main(arguments: list[str]) -> None:
    """Serves until the parent closes the channel."""
    setup = msgspec.json.decode(arguments[0], type=Setup)
    die_with(setup.parent)
    if setup.cpus:
        os.sched_setaffinity(0, setup.cpus)
    with socket.socket(fileno=setup.channel) as channel:
        serve(channel, setup.rank, {**HANDLERS, **setup.handlers})
    sys.stdout.flush()
    # Tearing CUDA and process groups down with the other ranks half gone can hang; the kernel frees everything.
    os._exit(0)


def die_with(parent: int) -> None:
    """Asks for SIGKILL when the parent ends, and ends now where that happened before the question."""
    if ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_PDEATHSIG) failed")
    if os.getppid() != parent:
        os._exit(1)


def serve(channel: socket.socket, rank: Rank, handlers: Mapping[str, str]) -> None:
    """Answers one plan a line; the first one by getting ready for it."""
    cpus = os.sched_getaffinity(0)
    progress.goes_to(lambda: channel.sendall(b"\n"))
    with channel.makefile("rb") as requests:
        for number, line in enumerate(requests):
            os.sched_setaffinity(0, cpus)  # the plan before may have pinned this thread
            plan = msgspec.json.decode(line, type=Plan)
            answer = answer_to(plan, rank, handlers, prepare if number == 0 else measure)
            channel.sendall(msgspec.json.encode(answer) + b"\n")


def answer_to(
    plan: Plan,
    rank: Rank,
    handlers: Mapping[str, str],
    how: Callable[[str, Plan, Rank], Answer],
) -> Answer:
    """What came of it, or one sentence on what went wrong; the traceback goes to stderr, the rank's log."""
    try:
        return how(handlers[plan.operation], plan, rank)
    except Unavailable as reason:
        return Answer(unavailable=str(reason))
    except Exception as error:  # noqa: BLE001 - whatever a handler raises is this case's failure, not the worker's
        traceback.print_exc()
        sys.stderr.flush()
        return Answer(error=sentence(error))


def prepare(handler: str, plan: Plan, rank: Rank) -> Answer:
    """Imports a handler's module and calls its `prepare(plan, rank)` where it has one."""
    getattr(_module(handler), "prepare", lambda _plan, _rank: None)(plan, rank)
    return Answer()


def measure(handler: str, plan: Plan, rank: Rank) -> Answer:
    """Calls a handler, 'module:function'."""
    function = cast(Handler, getattr(_module(handler), handler.partition(":")[2]))
    return function(plan, rank)


def sentence(error: Exception) -> str:
    """An error in one line, with its type where the project did not write the text."""
    lines = str(error).strip().splitlines()
    text = lines[0] if lines else ""
    if isinstance(error, SuiteError):
        return text
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def _module(handler: str) -> ModuleType:
    name = handler.partition(":")[0]
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or name.startswith(error.name):
            raise
        raise Unavailable(f"the package {error.name} is not installed") from error


if __name__ == "__main__":
    main(sys.argv[1:])
