"""A plain allreduce loop on torch.distributed, or on NCCL itself for threads of one process: what lanecheck is compared
with. It shares no code with lanecheck.

    python tools/bare_collectives.py '{"mode":"gloo","rank":0,"ranks":2,"store":"/tmp/x","calls": [[8, 9, 2, 5]]}'

calls: bytes, calls a round, warm-up calls, rounds. Prints one JSON line: seconds a call, one list a size, one entry a
round.
"""

from __future__ import annotations

import ctypes
import json
import os
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as dist


def main(task: dict[str, Any]) -> list[list[float]]:
    """Runs one rank, or all ranks as threads."""
    if task["mode"] == "threads":
        return with_threads(task)
    torch.set_num_threads(1)
    device = torch.device("cpu")
    if task["mode"] != "gloo":
        device = torch.device("cuda", 0 if task["mode"] == "shared" else task["rank"])
        torch.cuda.set_device(device)
    backend = "gloo" if task["mode"] == "gloo" else "nccl"
    store = dist.FileStore(task["store"], task["ranks"])
    dist.init_process_group(backend, store=store, rank=task["rank"], world_size=task["ranks"])
    return [with_torch(device, *call) for call in task["calls"]]


def with_torch(device: torch.device, size: int, calls: int, warmup: int, rounds: int) -> list[float]:
    """Seconds a call of each round."""
    tensor, token = torch.zeros(max(1, size // 4), device=device), torch.zeros(1, device=device)
    for _ in range(warmup):
        dist.all_reduce(tensor)
    seconds = []
    for _ in range(rounds):
        dist.all_reduce(token)
        stop = on_gpu() if device.type == "cuda" else on_host()
        for _ in range(calls):
            dist.all_reduce(tensor)
        seconds.append(stop() / calls)
    return seconds


def on_host() -> Callable[[], float]:
    """Starts a clock; what is returned stops it."""
    start = time.perf_counter()
    return lambda: time.perf_counter() - start


def on_gpu() -> Callable[[], float]:
    """The same between two events of the current stream."""
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    start.record()

    def stop() -> float:
        end.record()
        end.synchronize()
        return float(start.elapsed_time(end)) / 1e3

    return stop


class UniqueId(ctypes.Structure):
    """ncclUniqueId."""

    _fields_ = [("internal", ctypes.c_char * 128)]


def with_threads(task: dict[str, Any]) -> list[list[float]]:
    """Every thread a rank on GPU 0; the slowest one's seconds."""
    nccl = ctypes.CDLL("libnccl.so.2")
    unique, ranks = UniqueId(), task["ranks"]
    if nccl.ncclGetUniqueId(ctypes.byref(unique)):
        raise RuntimeError("ncclGetUniqueId failed")
    found: list[list[list[float]]] = [[] for _ in range(ranks)]
    barrier = threading.Barrier(ranks)

    def rank(number: int) -> None:
        torch.cuda.set_device(0)
        comm, stream = ctypes.c_void_p(), torch.cuda.Stream()
        if nccl.ncclCommInitRank(ctypes.byref(comm), ranks, unique, number):
            raise RuntimeError("ncclCommInitRank failed")
        with torch.cuda.stream(stream):
            found[number] = [one_thread(nccl, comm, stream, barrier, *call) for call in task["calls"]]

    threads = [threading.Thread(target=rank, args=(number,)) for number in range(ranks)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return [[max(r) for r in zip(*sizes, strict=True)] for sizes in zip(*found, strict=True)]


def one_thread(
    nccl: ctypes.CDLL, comm: ctypes.c_void_p, stream: Any, barrier: Any, size: int, calls: int, warmup: int, rounds: int
) -> list[float]:
    """Seconds a call of each round. 7 is ncclFloat32, 0 is ncclSum."""
    tensor = torch.zeros(max(1, size // 4), device="cuda")
    at, count, queue = ctypes.c_void_p(tensor.data_ptr()), ctypes.c_size_t(tensor.numel()), stream.cuda_stream

    def allreduce() -> None:
        if nccl.ncclAllReduce(at, at, count, 7, 0, comm, ctypes.c_void_p(queue)):
            raise RuntimeError("ncclAllReduce failed")

    for _ in range(warmup):
        allreduce()
    stream.synchronize()
    seconds = []
    for _ in range(rounds):
        barrier.wait()
        allreduce()
        stop = on_gpu()
        for _ in range(calls):
            allreduce()
        seconds.append(stop() / calls)
    return seconds


if __name__ == "__main__":
    print(json.dumps(main(json.loads(sys.argv[1]))), flush=True)
    os._exit(0)  # tearing a group down while the other ranks leave can abort
