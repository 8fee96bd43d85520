"""Collectives over torch.distributed: each rank times fixed rounds of its own calls, and checks every element.

The parent takes the slowest rank of each round. It also says how many rounds and calls there are; where these
would take too long on a slow path, the ranks agree on fewer in one allreduce. One that decided alone would hang the
others.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from typing import Any

import torch
import torch.distributed as dist

from suite.errors import MeasureError, Unavailable
from suite.measure import collective_data as data
from suite.measure import collective_threads as threads
from suite.measure import progress, rendezvous
from suite.measure.answer import Answer, Rank
from suite.measure.nccl import buffers as nccl_buffers
from suite.measure.nccl import library as nccl
from suite.records.case import COLLECTIVES, Engine, Plan
from suite.units import KIB

# The parent's deadline ends a hang; torch's own time-outs would abort the process before it can be asked.
_NEVER = timedelta(days=1)
# Sizes whose algorithm and protocol are read from NCCL's log in one untimed pass: 8 B to 64 MiB, beyond which nothing
# changes that would be worth the time of a slow network.
LOGGED_SIZES = tuple(sorted([*(8 << power for power in range(24)), *(n * KIB for n in (10, 20, 40, 80))]))
# Of a case's timed rounds, about. Large messages over TCP would else take minutes.
LONGEST_S = 2.0
FEWEST_ROUNDS = 3
COUNTED = "bytes of one rank's message, as nccl-tests counts them"


@dataclass(frozen=True)
class _Buffers:
    """What one rank sends and gets. In place they share memory."""

    source: Any
    target: Any
    in_place: bool


def prepare(plan: Plan, rank: Rank) -> None:
    """Joins the process group. Raises Unavailable where this torch or this machine cannot."""
    torch.set_num_threads(1)  # one thread a rank: ranks on one host would fight for the cores
    device = _device(plan, rank)
    if plan.gpus and len(set(plan.gpus)) < plan.world_size:
        nccl.require_shared_gpu()
    if plan.ranks_as == "threads":
        threads.prepare(plan, device)
        return
    options = {"device_id": device} if device.type == "cuda" else {}
    store = rendezvous.store(rank)
    with _known_refusals():
        dist.init_process_group(
            plan.backend, store=store, rank=rank.rank, world_size=rank.world_size, timeout=_NEVER, **options
        )
        dist.all_reduce(torch.zeros(1, device=device))
    _wait(device)


def measure(plan: Plan, rank: Rank) -> Answer:
    """Verifies, times plan.rounds rounds of plan.iterations calls, verifies again. rounds 0: for NCCL's log only."""
    device = _device(plan, rank)
    if plan.ranks_as == "threads":
        return threads.measure(plan, device) if plan.rounds else threads.only_call(plan, device, LOGGED_SIZES)
    if plan.graph and device.type != "cuda":
        raise Unavailable("CUDA graphs need the nccl backend")
    if plan.rounds == 0:
        return _only_call(plan, rank, device)
    sent = data.message(plan, rank.rank, device)
    buffers = _buffers(plan, sent)
    with _known_refusals():
        first = _verify(plan, sent, buffers)
        progress.step()
        start = time.monotonic()
        with _undisturbed():
            plan = _warm_up(plan, sent, buffers)
            seconds = _rounds_cuda(plan, sent, buffers) if device.type == "cuda" else _rounds_host(plan, sent, buffers)
        end = time.monotonic()
        wrong = first or _verify(plan, sent, buffers)
    return Answer(
        seconds=tuple(seconds),
        clock="cuda-event" if device.type == "cuda" else "host-monotonic",
        engine=_engine(plan),
        verified=wrong is None,
        wrong=wrong,
        window=(start, end),
        iterations=plan.iterations,
        counted=COUNTED,
        notes=_notes(plan, sent),
    )


@contextmanager
def _undisturbed() -> Iterator[None]:
    """Without Python's collector of garbage: one of its passes takes longer than many small calls."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def _engine(plan: Plan) -> Engine:
    return "nccl" if plan.backend == "nccl" else "gloo"


def _device(plan: Plan, rank: Rank) -> Any:
    """The rank's own GPU by its PCI address, or the CPU."""
    if plan.backend != "nccl":
        return torch.device("cpu")
    if not dist.is_nccl_available():
        raise Unavailable("this torch has no NCCL: install torch with CUDA")
    if not torch.cuda.is_available():
        raise Unavailable("torch finds no usable GPU")
    address = plan.addresses[rank.rank] if plan.addresses else None
    index = _device_index(address, plan.gpus[rank.rank] if plan.gpus else rank.local)
    torch.cuda.set_device(index)
    return torch.device("cuda", index)


def _device_index(address: str | None, gpu: int) -> int:
    """CUDA's index of a PCI address; NVML's index (both in bus order) where torch does not tell the address."""
    count = torch.cuda.device_count()
    known = {_address(torch.cuda.get_device_properties(i)): i for i in range(count)}
    if address is not None and address in known:
        return known[address]
    if (address is not None and None not in known) or gpu >= count:
        raise Unavailable(f"GPU{gpu} ({address}) is not visible to CUDA: look at CUDA_VISIBLE_DEVICES")
    return gpu


def _address(properties: Any) -> str | None:
    """Of a device as the project writes it, '0000:4e:00.0'; None where this torch does not tell."""
    bus = getattr(properties, "pci_bus_id", None)
    if bus is None:
        return None
    return f"{properties.pci_domain_id:04x}:{bus:02x}:{properties.pci_device_id:02x}.0"


@contextmanager
def _known_refusals() -> Iterator[None]:
    """What a library cannot do at all is unavailable, not an error of the machine."""
    try:
        yield
    except RuntimeError as error:
        text = str(error)
        if "Duplicate GPU" in text:
            raise Unavailable(nccl.SHARING) from error
        if "Invalid scalar type" in text or "does not support" in text:
            raise Unavailable(f"the backend cannot do this: {text.splitlines()[0]}") from error
        said = nccl.last_error(text)
        if said:
            raise MeasureError("error", said) from error
        raise


def _buffers(plan: Plan, sent: data.Message) -> _Buffers:
    """Source and target, one within the other where the plan says in place and the operation can."""

    def empty(elements: int) -> Any:
        return torch.empty(elements, dtype=sent.dtype, device=sent.device)

    mine = slice(sent.rank * sent.chunk, (sent.rank + 1) * sent.chunk)
    if plan.operation == "broadcast" or (plan.operation == "allreduce" and plan.in_place):
        both = empty(sent.total)
        return _Buffers(both, both, True)
    if plan.in_place and plan.operation == "all_gather":
        target = empty(sent.target)
        return _Buffers(target[mine], target, True)
    if plan.in_place and plan.operation == "reduce_scatter":
        source = empty(sent.source)
        return _Buffers(source, source[mine], True)
    return _Buffers(empty(sent.source), empty(sent.target), False)


def _call(plan: Plan, sent: data.Message, buffers: _Buffers) -> Callable[[], object]:
    """The operation as a function without arguments."""
    source, target = buffers.source, buffers.target
    if plan.operation == "send_recv":
        return lambda: _send_to_the_next(sent, source, target)
    if plan.operation == "allreduce" and not buffers.in_place:
        return lambda: dist.all_reduce(target.copy_(source))
    calls: dict[str, Callable[[], object]] = {
        "allreduce": partial(dist.all_reduce, target),
        "broadcast": partial(dist.broadcast, target, src=0),
        "all_gather": partial(dist.all_gather_into_tensor, target, source),
        "reduce_scatter": partial(dist.reduce_scatter_tensor, target, source),
        "all_to_all": partial(dist.all_to_all_single, target, source),
    }
    return calls[plan.operation]


def _send_to_the_next(sent: data.Message, source: Any, target: Any) -> None:
    """Every rank sends to the next one and gets from the one before, at once (nccl-tests' sendrecv)."""
    following, before = (sent.rank + 1) % sent.world_size, (sent.rank - 1) % sent.world_size
    transfers = [dist.P2POp(dist.isend, source, following), dist.P2POp(dist.irecv, target, before)]
    for work in dist.batch_isend_irecv(transfers):
        work.wait()


def _verify(plan: Plan, sent: data.Message, buffers: _Buffers) -> str | None:
    """One call on fresh values and, where it is apart, a poisoned target; what is wrong, None where nothing is."""
    run = _call(plan, sent, buffers)
    if plan.graph:
        run = _graph(run, 1)  # runs once before the capture: in place, values written earlier would be summed twice
    call = _next_call()
    if not buffers.in_place or plan.operation == "all_gather":
        buffers.target.fill_(float("nan"))
    data.fill(buffers.source, sent, call)
    run()
    _wait(sent.device)
    return data.difference(buffers.target, sent, call)


_calls = 0


def _next_call() -> int:
    """A number that all ranks share, as they get the same plans in the same order; no two calls carry equal values."""
    global _calls
    _calls += 1
    return _calls


def _warm_up(plan: Plan, sent: data.Message, buffers: _Buffers) -> Plan:
    """Makes the warm-up calls. The plan with fewer calls and, at one call a round, fewer rounds, where they would take
    much longer than LONGEST_S."""
    run = _call(plan, sent, buffers)
    buffers.source.zero_()  # in place, sums of anything else would grow without end
    seconds = _one_call(run, sent.device)
    if paced(plan, seconds) != plan:  # the first call may just have been unlucky
        seconds = min(seconds, _one_call(run, sent.device))
    if seconds * plan.warmup < LONGEST_S / 4:
        for _ in range(plan.warmup - 1):
            run()
    return paced(plan, seconds)


def _one_call(run: Callable[[], object], device: Any) -> float:
    """Seconds of one call on the slowest rank: on every rank the same number, so that all of them decide alike."""
    _wait(device)
    start = time.perf_counter()
    run()
    _wait(device)
    found = torch.tensor([max(time.perf_counter() - start, 1e-9)], dtype=torch.float64, device=device)
    dist.all_reduce(found, op=dist.ReduceOp.MAX)
    progress.step()
    return float(found.item())


def paced(plan: Plan, seconds: float) -> Plan:
    """The plan with as many calls and rounds as there is time for. seconds: of one call."""
    calls = max(1, min(plan.iterations, int(LONGEST_S / (plan.rounds * seconds))))
    rounds = max(FEWEST_ROUNDS, int(LONGEST_S / (calls * seconds)))
    return replace(plan, iterations=calls, rounds=min(plan.rounds, rounds))


def _rounds_host(plan: Plan, sent: data.Message, buffers: _Buffers) -> list[float]:
    """Seconds a call, by the host's clock; before each round the ranks meet in an untimed allreduce."""
    run, meet = _call(plan, sent, buffers), _meeting(sent.device)
    seconds = []
    for _ in range(plan.rounds):
        progress.step()
        meet()
        start = time.perf_counter()
        for _ in range(plan.iterations):
            run()
        seconds.append((time.perf_counter() - start) / plan.iterations)
    return seconds


def _rounds_cuda(plan: Plan, sent: data.Message, buffers: _Buffers) -> list[float]:
    """Seconds a call between two events on the GPU: an untimed allreduce, event, the calls (or one graph), event."""
    run, meet = _call(plan, sent, buffers), _meeting(sent.device)
    repeated = _graph(run, plan.iterations) if plan.graph else _repeat(run, plan.iterations)
    repeated()
    seconds = []
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    for _ in range(plan.rounds):
        progress.step()
        meet()
        start.record()
        repeated()
        end.record()
        end.synchronize()
        seconds.append(start.elapsed_time(end) / 1e3 / plan.iterations)  # milliseconds
    return seconds


def _meeting(device: Any) -> Callable[[], object]:
    token = torch.zeros(1, device=device)
    return lambda: dist.all_reduce(token)


def _repeat(run: Callable[[], object], times: int) -> Callable[[], None]:
    def repeated() -> None:
        for _ in range(times):
            run()

    return repeated


def _graph(run: Callable[[], object], times: int) -> Callable[[], None]:
    """The calls as one CUDA graph. NCCL must have run once outside of it: connections are not made in a capture."""
    run()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    # NCCL's watchdog thread asks for events meanwhile: only this thread's calls are held to the capture's rules.
    with torch.cuda.graph(graph, capture_error_mode="thread_local"):
        for _ in range(times):
            run()
    return lambda: graph.replay()


def _only_call(plan: Plan, rank: Rank, device: Any) -> Answer:
    """One call of every operation and logged size, for the log that NCCL writes meanwhile. Ranks that share a GPU make
    the plan's own only: a call takes them milliseconds, and not everything works there."""
    shared = bool(plan.gpus) and len(set(plan.gpus)) < plan.world_size
    for operation in (plan.operation,) if shared else COLLECTIVES:
        for size in LOGGED_SIZES:
            called = replace(plan, operation=operation, bytes=size)
            sent = data.message(called, rank.rank, device)
            buffers = _buffers(called, sent)
            buffers.source.zero_()
            _call(called, sent, buffers)()
    _wait(device)
    return Answer(engine=_engine(plan), notes=nccl_buffers.shared_files() if device.type == "cuda" else ())


def _wait(device: Any) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def _notes(plan: Plan, sent: data.Message) -> tuple[str, ...]:
    notes = []
    if plan.operation == "allreduce" and not plan.in_place:
        notes.append("out of place: torch.distributed reduces in place, so a copy into the target is timed with it")
    moved = sent.total * sent.dtype.itemsize
    if moved != plan.bytes:
        notes.append(f"{moved} bytes were moved: one element a rank is the least, and ranks get equal shares")
    return tuple(notes)
