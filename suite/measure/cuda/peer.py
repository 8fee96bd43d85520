"""Copies between GPUs: a pair one way and both ways, patterns of several pairs, and copies within one GPU.

`measure` and `prepare` are the worker's handlers; latencies and copies between processes live in modules of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from importlib import import_module

from suite.errors import Unavailable
from suite.measure.answer import Answer, Rank
from suite.measure.cuda import kernels, timing, together
from suite.measure.cuda.buffers import OnDevice
from suite.measure.cuda.copy import COUNTED, added
from suite.measure.cuda.device import Device
from suite.measure.cuda.error import PEER_ACCESS_ALREADY_ENABLED, CudaError
from suite.measure.cuda.runtime import DEVICE_TO_DEVICE
from suite.measure.cuda.session import Session, current
from suite.measure.cuda.timing import Sample, Work
from suite.measure.cuda.verify import Checker, Pattern
from suite.records.case import Plan
from suite.records.flows import Edge
from suite.records.flows import flows as flows_between

_ELSEWHERE = {
    "peer_latency": "suite.measure.cuda.peer_latency",
    "peer_flag_latency": "suite.measure.cuda.peer_latency",
    "ipc_copy": "suite.measure.cuda.ipc",
}


def prepare(plan: Plan, _rank: Rank) -> None:
    """Opens the plan's GPUs and compiles the kernels, so that no case's time holds it."""
    current().begin(plan)


def measure(plan: Plan, rank: Rank) -> Answer:
    """One case. Raises Unavailable with the reason, or CudaError."""
    return measured(current(), plan, rank)


def measured(session: Session, plan: Plan, rank: Rank) -> Answer:
    """One case in a session."""
    if plan.operation in _ELSEWHERE:
        handler: Callable[[Session, Plan, Rank], Answer] = import_module(_ELSEWHERE[plan.operation]).measured
        return handler(session, plan, rank)
    devices, notes = session.begin(plan)
    if plan.operation == "device_local_copy":
        return local(session, plan, devices[0], notes)
    flows = [Flow.between(session, plan, devices, edge) for edge in edges(plan)]
    with peer_access(session, access(plan, flows), plan.p2p) as direct:
        said = (*notes, *_path_note(plan, direct))
        plan = plan if direct else replace(plan, p2p=False)
        if plan.engine == "sm" and not direct:
            raise Unavailable("SM copies between GPUs need peer access, and this case runs without it")
        if plan.operation == "peer_pattern":
            return pattern(session, plan, flows, said)
        return pair(session, plan, flows, said)


@dataclass(frozen=True)
class Flow:
    """One copy from GPU to GPU. by: the GPU whose engine runs it (the source writes, the target reads). name: by the
    plan's GPU numbers, 'gpu0_gpu1'."""

    name: str
    source: OnDevice
    target: OnDevice
    by: Device
    pattern: Pattern

    @classmethod
    def between(cls, session: Session, plan: Plan, devices: Sequence[Device], edge: Edge) -> Flow:
        """Buffers for one edge; every edge has its own. edge: places in the plan's GPUs."""
        one, other = (devices[place] for place in edge)
        name = f"gpu{plan.gpus[edge[0]]}_gpu{plan.gpus[edge[1]]}"
        source = session.buffers.device(f"out {name}", one, plan.bytes)
        target = session.buffers.device(f"in {name}", other, plan.bytes)
        return cls(name, source, target, other if plan.operation == "peer_read" else one, Pattern(plan.bytes))

    def work(self, session: Session, plan: Plan, stream: int) -> Work:
        """Its copies on a stream of the GPU that runs it. Those that the driver stages are never held by the gate: it
        cuts a copy into chunks, and from some tens of MiB on its launch waits for the first of them to be done."""
        staged = plan.p2p is False and self.source.device is not self.target.device
        return Work(self.by, stream, copier(session, plan, self, stream), gated=not staged)


def copier(session: Session, plan: Plan, flow: Flow, stream: int) -> Callable[[], None]:
    """What queues one copy of a flow, by the plan's engine. Raises Unavailable where the engine cannot do it."""
    runtime, source, target = session.runtime, flow.source, flow.target
    if plan.engine == "sm":
        flow.by.need_kernels()
        if plan.bytes % 16:
            raise Unavailable(f"SM copies move 16 bytes at a time and {plan.bytes} is no multiple of it")
        blocks = flow.by.multiprocessors
        return lambda: kernels.copy16(runtime, target.address, source.address, plan.bytes, blocks, stream)
    if source.device is target.device:
        return lambda: runtime.copy(target.address, source.address, plan.bytes, DEVICE_TO_DEVICE, stream)
    to, of = target.device.index, source.device.index
    return lambda: runtime.copy_peer(target.address, to, source.address, of, plan.bytes, stream)


def edges(plan: Plan) -> list[Edge]:
    """(source, target) of every copy that runs at once, as places in plan.gpus; see suite.records.flows."""
    places = tuple(range(len(plan.gpus)))
    if len(places) < 2 or len(set(plan.gpus)) != len(places):
        raise Unavailable("copies between GPUs need at least two different GPUs")
    return flows_between(replace(plan, gpus=places))


def access(plan: Plan, flows: Sequence[Flow]) -> list[tuple[Device, Device]]:
    """Who must reach whose memory: the GPU that runs a copy, the other one's. None without P2P."""
    if plan.p2p is False:
        return []
    pairs = [(f.by, f.target.device if f.by is f.source.device else f.source.device) for f in flows]
    return list(dict.fromkeys(pairs))


def pair(session: Session, plan: Plan, flows: Sequence[Flow], notes: tuple[str, ...]) -> Answer:
    """One flow, or two that oppose each other, each measured while the other one outlasts it."""
    fill(session, plan, flows)
    works = [flow.work(session, plan, flow.by.streams[0]) for flow in flows]
    taken = [
        timing.rounds(session.devices, plan, work, [w for w in works if w is not work])
        for work in works
    ]  # fmt: skip
    samples = [found for found, _ in taken]
    wrong = first_difference(session, plan, flows)
    return Answer(
        seconds=_seconds(samples),
        clock="cuda-event",
        engine=plan.engine,
        verified=wrong is None,
        wrong=wrong,
        directions={f.name: tuple(s.seconds for s in found) for f, found in zip(flows, samples, strict=True)},
        iterations=taken[0][1].count,
        counted=COUNTED if len(flows) == 1 else f"{COUNTED}; both directions added",
        notes=notes + _sample_notes([s for found in samples for s in found]),
    )


def pattern(session: Session, plan: Plan, flows: Sequence[Flow], notes: tuple[str, ...]) -> Answer:
    """Several flows at once, from one gate to the last end. One operation is one copy of every flow."""
    fill(session, plan, flows)
    streams = _streams(session, flows)
    works = [flow.work(session, plan, stream) for flow, stream in zip(flows, streams, strict=True)]
    taken = together.rounds(session, plan, works)
    wrong = first_difference(session, plan, flows)
    found = together.answer(plan, [flow.name for flow in flows], taken, wrong)
    counted = f"{COUNTED}, of {len(flows)} flows added, until the last one ended"
    return replace(found, counted=counted, notes=notes + found.notes)


def local(session: Session, plan: Plan, device: Device, notes: tuple[str, ...]) -> Answer:
    """A copy within one GPU's memory: bytes counted once, though each is read and written."""
    source = session.buffers.device("out local", device, plan.bytes)
    target = session.buffers.device("in local", device, plan.bytes)
    flow = Flow("local", source, target, device, Pattern(plan.bytes))
    answer = pair(session, plan, [flow], (*notes, "functional-only: no link is crossed"))
    return replace(answer, directions=None)


@contextmanager
def peer_access(
    session: Session, pairs: Sequence[tuple[Device, Device]], wanted: bool | None
) -> Iterator[bool]:  # fmt: skip
    """Peer access for the pairs while it lasts; False where there is none. Raises Unavailable where it was asked for
    (wanted) and CUDA does not offer it."""
    runtime = session.runtime
    blocked = [p for p in pairs if not runtime.can_access_peer(p[0].index, p[1].index)]
    if blocked and wanted:
        one, other = blocked[0]
        raise Unavailable(
            f"CUDA offers no peer access from {one.address} to {other.address}: copies between them are staged "
            "through host memory"
        )
    made: list[tuple[int, int]] = []
    try:
        for one, other in () if blocked else pairs:
            made += _enabled(session, one.index, other.index)
        yield bool(pairs) and not blocked
    finally:
        for one_index, other_index in reversed(made):
            runtime.disable_peer(one_index, other_index)


def _enabled(session: Session, device: int, peer: int) -> list[tuple[int, int]]:
    """The pair, where this call made it so; access that was there before is left as it was."""
    try:
        session.runtime.enable_peer(device, peer)
    except CudaError as error:
        if error.status != PEER_ACCESS_ALREADY_ENABLED:
            raise
        return []
    return [(device, peer)]


def fill(session: Session, plan: Plan, flows: Sequence[Flow]) -> None:
    """A fresh pattern in every source, poison in every target."""
    checker = Checker(session.runtime, session.buffers, plan.bytes, plan.memory_node)
    for flow in flows:
        checker.put(flow.pattern, flow.source)
        checker.poison(flow.target)


def first_difference(session: Session, plan: Plan, flows: Sequence[Flow]) -> str | None:
    """What is wrong in the first target that is; read back by the target's own GPU."""
    checker = Checker(session.runtime, session.buffers, plan.bytes, plan.memory_node)
    for flow in flows:
        wrong = checker.difference(flow.pattern, flow.target)
        if wrong:
            return f"{flow.name}: {wrong}"
    return None


def _streams(session: Session, flows: Sequence[Flow]) -> list[int]:
    """A stream of its GPU for every flow; a GPU that runs several gets more streams."""
    used: dict[int, int] = {}
    streams = []
    for flow in flows:
        number = used.get(flow.by.index, 0)
        used[flow.by.index] = number + 1
        streams.append(session.devices.stream(flow.by, number))
    return streams


def _seconds(samples: Sequence[Sequence[Sample]]) -> tuple[float, ...]:
    if len(samples) == 1:
        return tuple(s.seconds for s in samples[0])
    return tuple(added(a.seconds, b.seconds) for a, b in zip(*samples, strict=False))


def _path_note(plan: Plan, direct: bool) -> tuple[str, ...]:
    if direct:
        return ()
    off = "peer access is off" if plan.p2p is False else "CUDA offers no peer access"
    return (f"{off}: the driver stages the copies through host memory",)


def _sample_notes(samples: Sequence[Sample]) -> tuple[str, ...]:
    notes = []
    if not all(s.gated for s in samples):
        notes.append("timed without holding the stream first: launches may be part of the time of small copies")
    if not all(s.outlasted for s in samples):
        notes.append("the opposing copies ended before the measured ones: part of the time was one way only")
    return tuple(notes)
