"""An engine that simulates: physics in, samples out. It knows no causes and does not share the limits' efficiencies.

`ideal_s(machine, plan)` is the time of one operation at the ceiling of a machine whose records hold the links under
load. It is handed in, as measure/ does not know limits/. All that this engine adds is physical: how much of a ceiling
transfers reach, what an operation costs to start, noise, and the scenario's faults.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from random import Random

from suite.errors import MeasureError, Unavailable
from suite.measure.simulated import path
from suite.measure.simulated.watch import watch
from suite.records.case import COLLECTIVES, Placement, Plan, Samples, Transport
from suite.records.flows import flows
from suite.records.machine import Machine
from suite.records.p2p import meaning
from suite.records.scenario import Scenario

IdealSeconds = Callable[[Machine, Plan], float | None]

# Fraction of the ceiling that this simulator's transfers reach. Chosen, within what the field reports (0.82 to 0.99).
EFFICIENCY: dict[str, float] = {
    "host_to_device": 0.925,
    "device_to_host": 0.945,
    "both_ways": 0.875,
    "link_under_load": 0.87,
    "staging": 0.88,
    "peer_write": 0.93,
    "peer_read": 0.91,
    "allreduce": 0.90,
}
OTHERWISE = 0.90
# Copies between GPUs that the driver stages: two H200 showed 37.4 of 57.6 and 61.9 of 115 GB/s (docs/measured.md).
STAGED, STAGED_BOTH_WAYS = 0.64, 0.54
# Pageable memory, bytes per second: what the driver's copies on the host reached beside an H200 (docs/measured.md).
PAGEABLE = {"host_to_device": 9.5e9, "device_to_host": 18e9}
# Seconds of latency cases: one and two H200 (docs/measured.md); over PCIe and staged as published (limits/healthy.py).
LATENCY: dict[str, float] = {
    "host_to_device_latency": 6.0e-6,
    "device_to_host_latency": 6.8e-6,
    "host_device_load_latency": 1.2e-6,
    "peer_flag_latency": 1.8e-6,
    "peer_latency": 8e-6,
}
FLAG_NVLINK, STAGED_COPY, LOAD_NVLINK, LOAD_PCIE = 0.78e-6, 18e-6, 0.82e-6, 4.1e-6
# Seconds that one operation takes to start. Chosen: queued copies overlap their start, collectives cannot.
START = {"copy": 1.5e-6, "staging": 9e-6, "nccl_pcie": 19e-6, "nccl_nvlink": 8e-6, "gloo": 70e-6}
# Bytes per second where no ceiling is known. Chosen round numbers of the right order.
HOST_MEMORY, HOST_MEMORY_FAR, LOOPBACK, COHERENT, DEVICE_MEMORY = 60e9, 36e9, 2.5e9, 345e9, 1.4e12
ANYTHING, SOCKETS = 12e9, 6e9
# How NCCL writes an edge's transport in its log.
_VIA = {"P2P": "P2P/direct pointer", "SHM": "SHM/direct/direct", "NET": "NET/Socket/0"}


class SimulatedEngine:
    """Engine: samples of a scenario. The same scenario and case give the same samples, whatever ran before."""

    def __init__(self, scenario: Scenario, ideal_s: IdealSeconds) -> None:
        self._scenario = scenario
        self._ideal_s = ideal_s
        self._machine = path.under_load(scenario)
        self._asked: tuple[Plan, float | None] | None = None

    def measure(self, plan: Plan) -> Samples:
        """Samples of one plan. Raises MeasureError for a hang or crash, Unavailable where the machine has no P2P."""
        _refuse(self._scenario.machine, plan)
        self._break(plan)
        wrong = path.first(self._scenario, plan, "wrong_bytes")
        seconds, directions = self._rounds(plan)
        return Samples(
            seconds=seconds,
            clock="simulated",
            engine="simulated",
            verified=wrong is None,
            wrong=_wrong(plan) if wrong else None,
            mean_seconds=seconds if plan.operation in COLLECTIVES else (),
            directions=directions,
            placement=_placement(plan),
            watch=watch(self._scenario, self._machine, plan) if plan.watch and plan.gpus else None,
            transport=self._transport(plan),
            counted="bytes of one operation, as planned",
        )

    def close(self) -> None:
        """Nothing to end."""

    def _break(self, plan: Plan) -> None:
        said = tuple(f"rank {rank}: {plan.operation} of {plan.bytes} bytes started" for rank in range(plan.world_size))
        if path.first(self._scenario, plan, "hang"):
            raise MeasureError("hang", f"no rank answered within {plan.deadline_s:g} s.", said)
        if path.first(self._scenario, plan, "crash"):
            raise MeasureError("crash", "rank 0 ended with signal 9.", said)

    def _rounds(self, plan: Plan) -> tuple[tuple[float, ...], dict[str, tuple[float, ...]] | None]:
        """Seconds a round, and of each direction or GPU where the plan has several; the slowest one counts."""
        random = Random(f"{self._scenario.seed}/{plan.case}")
        times = self._flows(plan)
        rounds: dict[str, list[float]] = {name: [] for name in times}
        for _ in range(plan.rounds):
            for name, (least, typical) in times.items():
                rounds[name].append(max(least, typical * random.gauss(1.0, self._scenario.noise)))
        slowest = tuple(max(one) for one in zip(*rounds.values(), strict=True))
        return slowest, {name: tuple(taken) for name, taken in rounds.items()} if len(rounds) > 1 else None

    def _flows(self, plan: Plan) -> dict[str, tuple[float, float]]:
        """(least possible, typical) seconds of every flow that runs at once, by name."""
        if plan.operation.startswith("all_gpus"):
            return {f"gpu{gpu}": self._times(plan, plan.operation, gpu) for gpu in plan.gpus}
        if plan.operation in ("both_ways", "link_under_load"):
            return {name: self._times(plan, name) for name in ("host_to_device", "device_to_host")}
        if plan.operation in ("peer_both_ways", "peer_pattern"):
            return {f"gpu{a}_gpu{b}": self._times(plan, plan.operation, flow=(a, b)) for a, b in flows(plan)}
        return {plan.operation: self._times(plan, plan.operation)}

    def _times(
        self, plan: Plan, way: str, gpu: int | None = None, flow: tuple[int, int] | None = None
    ) -> tuple[float, float]:
        if plan.operation.endswith("latency"):
            return 0.0, self._latency(plan) + path.latency(self._scenario, plan)
        ideal = self._ideal(plan)
        known = ideal if ideal is not None else plan.bytes / self._fallback(plan)
        efficiency = _staged(plan) or self._scenario.efficiency or EFFICIENCY.get(plan.operation, OTHERWISE)
        alone = replace(plan, operation="peer_write", gpus=flow) if flow else plan
        bound = path.bound_seconds(self._scenario, alone, way, gpu)
        if plan.memory == "pageable":
            bound = max(bound, plan.bytes / PAGEABLE.get(way, PAGEABLE["host_to_device"]))
        least = max(ideal or 0.0, bound)
        return least, max(known / efficiency, bound) + self._start(plan) + path.latency(self._scenario, plan)

    def _ideal(self, plan: Plan) -> float | None:
        """Asked once a plan: a pattern of 16 GPUs has 240 flows."""
        if self._asked is None or self._asked[0] != plan:
            self._asked = plan, self._ideal_s(self._machine, plan)
        return self._asked[1]

    def _fallback(self, plan: Plan) -> float:
        """Bytes per second of what limits/ has no ceiling for."""
        if plan.operation == "host_memory_copy":
            near = plan.memory_node == plan.target_node == plan.cpu_node
            return HOST_MEMORY if near else HOST_MEMORY_FAR
        if plan.backend == "gloo":
            return LOOPBACK
        if plan.transport == "net":
            return SOCKETS
        if plan.operation in ("device_local_copy", "ipc_copy"):
            return DEVICE_MEMORY
        gpus = [self._machine.gpu(index) for index in plan.gpus]
        if gpus and all(gpu is not None and gpu.c2c for gpu in gpus):
            return COHERENT
        return path.slowest_link(self._machine, plan.gpus) or ANYTHING

    def _latency(self, plan: Plan) -> float:
        """Seconds of one small operation."""
        near = plan.p2p is not False and path.nvlinked(self._machine, plan.gpus)
        if plan.operation == "peer_flag_latency" and near:
            return FLAG_NVLINK
        if plan.operation == "peer_latency" and plan.engine == "load-store":
            return LOAD_NVLINK if near else LOAD_PCIE
        if plan.operation == "peer_latency" and plan.p2p is False:
            return STAGED_COPY
        return LATENCY[plan.operation]

    def _start(self, plan: Plan) -> float:
        if plan.backend == "gloo":
            return START["gloo"]
        if plan.operation in COLLECTIVES:
            return START["nccl_nvlink" if path.nvlinked(self._machine, plan.gpus) else "nccl_pcie"]
        return START["staging" if plan.operation == "staging" else "copy"]

    def _transport(self, plan: Plan) -> Transport | None:
        """What NCCL would log of a ring in rank order: P2P through NVLink or PCIe switches, else shared memory."""
        if plan.backend != "nccl":
            return None
        asked = {"p2p": "P2P", "shm": "SHM", "net": "NET"}.get(plan.transport or "")
        near = path.near_pairs(self._machine, plan.gpus)
        ring = [(rank, (rank + 1) % plan.world_size) for rank in range(plan.world_size)]
        denied = path.denied_pairs(self._machine, plan.gpus)
        kinds = [asked or ("P2P" if frozenset(pair) in near else "SHM") for pair in ring]
        kinds = ["SHM" if k == "P2P" and frozenset(pair) in denied else k for k, pair in zip(kinds, ring, strict=True)]
        edges = tuple(f"r{a}>r{b} {_VIA[kind]}" for (a, b), kind in zip(ring, kinds, strict=True))
        return Transport("+".join(sorted(set(kinds))), "Ring", "Simple", channels=1, edges=edges)


def _refuse(machine: Machine, plan: Plan) -> None:
    """A peer copy with P2P on needs the driver's OK in both ways."""
    if not plan.operation.startswith("peer_") or plan.p2p is False or len(plan.gpus) != 2:
        return
    pair = machine.pair(*plan.gpus)
    bad = [s for s in (pair.p2p_read, pair.p2p_write) if s not in (None, "OK")] if pair else []
    if bad:
        raise Unavailable(f"P2P {bad[0]}: {meaning(bad[0])}")


def _staged(plan: Plan) -> float | None:
    """The share of the ceiling that the driver's own staging reaches; None where it stages nothing."""
    if plan.p2p is not False or len(set(plan.gpus)) < 2:
        return None
    return STAGED_BOTH_WAYS if plan.operation == "peer_both_ways" else STAGED


def _wrong(plan: Plan) -> str:
    return f"{plan.bytes // 2} of {plan.bytes} bytes differ from those sent"


def _placement(plan: Plan) -> Placement | None:
    if plan.memory_node is None:
        return None
    return Placement(plan.memory_node, plan.target_node, plan.cpu_node, proved=True, method="simulated")
