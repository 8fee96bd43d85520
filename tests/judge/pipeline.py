"""Simulated machines through the real planning, limits and judge: what the session does, without pytest and files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from suite.errors import MeasureError, Unavailable
from suite.judge.findings import findings, headline
from suite.judge.rules import judge
from suite.limits import case as limits
from suite.limits.collective import bus_factor
from suite.measure.simulated.engine import SimulatedEngine
from suite.plan.cases import complete
from suite.records.case import COLLECTIVES, Operation, Plan, Samples
from suite.records.machine import Machine
from suite.records.run import Failure, Finding, Result, Run, Settings, Verdict
from suite.records.scenario import Scenario
from suite.session import assemble
from suite.units import MIB, format_bytes

SETTINGS = Settings()
LARGE = (64 * MIB, 256 * MIB)


@dataclass(frozen=True)
class Judged:
    """A whole simulated run."""

    run: Run
    found: tuple[Finding, ...]
    headline: str

    def verdict(self, case: str) -> Verdict:
        """The verdict of the case of that name."""
        result = next(r for r in self.run.results if r.case == case)
        assert result.verdict is not None
        return result.verdict

    def statuses(self, group: str = "") -> set[str]:
        """Statuses of all cases whose name starts so."""
        return {r.verdict.status for r in self.run.results if r.verdict and r.case.startswith(group)}


def run(scenario: Scenario, *, groups: Iterable[str] = ("link", "host_memory", "host_copy", "allreduce")) -> Judged:
    """Every case of the groups, judged in order."""
    machine, engine = scenario.machine, SimulatedEngine(scenario, lambda m, p: limits.ideal_seconds(m, p))
    results: list[Result] = []
    for plan in plans(machine, tuple(groups)):
        results.append(_check(machine, engine, plan, results))
    whole = Run(machine, SETTINGS, tuple(results), len(results), complete=True, simulated=True)
    found = findings(whole)
    return Judged(whole, found, headline(whole, found))


def _check(machine: Machine, engine: SimulatedEngine, plan: Plan, so_far: list[Result]) -> Result:
    samples = failure = None
    try:
        samples = engine.measure(plan)
    except MeasureError as error:
        failure = Failure(error.kind, str(error), error.said)
    except Unavailable as reason:
        return replace(assemble.result(plan, None), verdict=Verdict("UNAVAILABLE", "unavailable", (str(reason),)))
    return judge_samples(machine, plan, samples, so_far, failure)


def judge_samples(
    machine: Machine, plan: Plan, samples: Samples | None, so_far: Sequence[Result] = (), failure: Failure | None = None
) -> Result:
    """What was measured, with its real limits and its verdict."""
    measured = assemble.result(plan, samples, failure)
    limited = assemble.with_limits(measured, limits.of(machine, plan, samples, so_far))
    return replace(limited, verdict=judge(limited, machine, so_far))


def measured(
    machine: Machine, case: str, operation: Operation, rate: float, so_far: Sequence[Result] = (), **given: Any
) -> Result:
    """A case that was measured at `rate` GB/s (of a collective: bus bandwidth), with its real limits and verdict."""
    transport = given.pop("transport_taken", None)
    made = plan(machine, case, operation, **given)
    factor = bus_factor(operation, made.world_size) if operation in COLLECTIVES else 1.0
    seconds = assemble.bytes_moved(made) * factor / (rate * 1e9)
    samples = Samples((seconds,) * 5, "simulated", "simulated", verified=True, transport=transport)
    return judge_samples(machine, made, samples, so_far)


def plans(machine: Machine, groups: tuple[str, ...]) -> Iterator[Plan]:
    """A short sweep: large copies, near nodes first; collectives from small to large."""
    makers = {"link": _link, "host_memory": _memory, "host_copy": _copies}
    makers |= {"latency": _latencies, "host_staging": _staging, "peer_copy": _peers, "allreduce": _allreduce}
    for group in groups:
        yield from makers[group](machine)


def plan(machine: Machine, case: str, operation: Operation, **given: Any) -> Plan:
    """One plan, completed as the benchmarks do."""
    return complete(machine, SETTINGS, case, operation, **given)


def _link(machine: Machine) -> Iterator[Plan]:
    for gpu in machine.gpus:
        yield plan(machine, f"link/under_load/gpu{gpu.index}", "link_under_load", gpus=(gpu.index,))


def _memory(machine: Machine) -> Iterator[Plan]:
    for one in machine.nodes:
        for other in machine.nodes:
            case = f"host_memory/copy/node{one.index}/to_{other.index}"
            yield plan(machine, case, "host_memory_copy", memory_node=one.index, target_node=other.index)


def _copies(machine: Machine) -> Iterator[Plan]:
    operations: tuple[Operation, ...] = ("host_to_device", "device_to_host", "both_ways")
    for operation in operations:
        for gpu in machine.gpus:
            for node in sorted(machine.nodes, key=lambda n: n.index != gpu.numa_node):
                for size in (4096, *LARGE):
                    case = f"host_copy/{operation}/gpu{gpu.index}/node{node.index}/{format_bytes(size)}"
                    yield plan(machine, case, operation, gpus=(gpu.index,), memory_node=node.index, bytes=size)

    given: dict[str, Any] = {"gpus": tuple(gpu.index for gpu in machine.gpus), "bytes": 256 * MIB}
    if len(machine.gpus) > 1:
        for operation in operations:
            yield plan(machine, f"host_copy/all_gpus_{operation}", f"all_gpus_{operation}", **given)  # type: ignore[arg-type]


def _latencies(machine: Machine) -> Iterator[Plan]:
    operations: tuple[Operation, ...] = ("host_to_device_latency", "device_to_host_latency", "host_device_load_latency")
    for gpu in machine.gpus:
        for operation in operations:
            yield plan(machine, f"host_copy/{operation}/gpu{gpu.index}", operation, gpus=(gpu.index,))
    for pair in machine.pairs:
        for p2p in (False, True):
            case = f"peer_copy/latency/gpu{pair.first}_gpu{pair.second}/{'p2p' if p2p else 'staged'}"
            yield plan(machine, case, "peer_latency", gpus=(pair.first, pair.second), p2p=p2p)


def _staging(machine: Machine) -> Iterator[Plan]:
    routes = [(gpu.index,) for gpu in machine.gpus] + [(pair.first, pair.second) for pair in machine.pairs]
    for route in routes:
        for node in machine.nodes:
            case = f"host_staging/staging/{'_'.join(f'gpu{g}' for g in route)}/node{node.index}"
            yield plan(machine, case, "staging", gpus=route, memory_node=node.index, chunk_bytes=4 * MIB)


def _peers(machine: Machine) -> Iterator[Plan]:
    for p2p in (False, True):
        for pair in machine.pairs:
            case = f"peer_copy/write/gpu{pair.first}_gpu{pair.second}/{'p2p' if p2p else 'staged'}/64MiB"
            yield plan(machine, case, "peer_write", gpus=(pair.first, pair.second), bytes=64 * MIB, p2p=p2p)


def _allreduce(machine: Machine) -> Iterator[Plan]:
    if len(machine.gpus) < 2:
        return
    for size in (8, 65536, *LARGE):
        case = f"allreduce/nccl/default/{format_bytes(size)}"
        given = {"backend": "nccl", "world_size": len(machine.gpus), "transport": "default"}
        yield plan(machine, case, "allreduce", bytes=size, **given)
