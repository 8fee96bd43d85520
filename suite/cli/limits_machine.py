"""`lanecheck limits --machine FILE`: what the path of a GPU, or of a pair, of a recorded machine could deliver."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

from suite.cli import source
from suite.errors import PlanError
from suite.limits.case import as_recorded
from suite.limits.words import gigabytes
from suite.probe.recording import load
from suite.records.case import Operation, Plan
from suite.records.machine import Gpu, Hop, LinkState, Machine
from suite.records.p2p import meaning
from suite.records.path import path_to_root, topology
from suite.records.run import Limits
from suite.report.style import printable
from suite.units import MIB

_BYTES = 256 * MIB
_CHUNK = 4 * MIB
_NOTE = (
    "As recorded: as if the recorded states were those under load. An idle link is often recorded at Gen1: what counts "
    "is the state under load, which `pytest benchmarks/` reads."
)


def text(file: Path, gpu: int | None, pair: list[int] | None, as_json: bool, explain: bool) -> str:
    """The limits of copies of one GPU with the host, or between two. Raises SuiteError, one sentence."""
    scenario = load(file)
    machine = scenario.machine
    if (gpu is None) == (pair is None):
        raise PlanError(f"name one GPU with --gpu N or two with --pair A B: {_there(machine)}")
    indices = tuple(pair) if pair else (gpu or 0,)
    found = [_gpu(machine, index) for index in indices]
    if len(set(indices)) < len(indices):
        raise PlanError(f"--pair needs two different GPUs: {_there(machine)}")
    plans = _pair_plans(indices) if pair else _host_plans(indices)
    rows = [(title, as_recorded(machine, plan)) for title, plan in plans]
    if as_json:
        return json.dumps({title: asdict(limits) for title, limits in rows})
    lines = [source.sentence(scenario, file), "", *_paths(machine, found), *(_pair(machine, *found) if pair else ())]
    shown = [*lines, "", *_table(rows), "", _NOTE, *(_explained(rows) if explain else ())]
    return "\n".join(map(printable, shown))


def _host_plans(gpus: tuple[int, ...]) -> list[tuple[str, Plan]]:
    operations: tuple[Operation, ...] = ("host_to_device", "device_to_host", "both_ways")
    plans = [(name, Plan(name, name, _BYTES, gpus=gpus)) for name in operations]
    return [*plans, ("staging", Plan("staging", "staging", _BYTES, gpus=gpus, chunk_bytes=_CHUNK))]


def _pair_plans(gpus: tuple[int, ...]) -> list[tuple[str, Plan]]:
    operations: tuple[Operation, ...] = ("peer_write", "peer_read", "peer_both_ways")
    plans = [(name, Plan(name, name, _BYTES, gpus=gpus)) for name in operations]
    off = Plan("p2p_off", "peer_write", _BYTES, gpus=gpus, p2p=False)
    return [*plans, ("p2p_off", off), ("staging", Plan("staging", "staging", _BYTES, gpus=gpus, chunk_bytes=_CHUNK))]


def _paths(machine: Machine, gpus: list[Gpu]) -> list[str]:
    """Every hop of each GPU, nearest first."""
    lines = []
    for gpu in gpus:
        node = f", NUMA node {gpu.numa_node}" if gpu.numa_node is not None else ""
        lines.append(f"GPU {gpu.index} {gpu.name}, {gpu.address or 'address not known'}{node}")
        lines += [f"  {_hop(hop)}" for hop in path_to_root(machine, gpu.address or "").hops]
    return lines


def _pair(machine: Machine, one: Gpu, other: Gpu) -> list[str]:
    """How near two GPUs are, and what the driver says of peer access."""
    pair = machine.pair(one.index, other.index)
    status = pair.p2p_write if pair else None
    where = (pair and (pair.topology or pair.topology_nvml)) or topology(
        machine, one.address or "", other.address or ""
    )
    return [f"Pair: {where or 'not known how near'}; P2P {status or 'not read'}: {meaning(status)}"]


def _hop(hop: Hop) -> str:
    ends = f"{hop.lower} to {hop.upper or 'a hidden port'}"
    return f"{ends:<32} recorded {_state(hop.now):<10} could be {_state(hop.possible)}"


def _state(link: LinkState) -> str:
    return str(link) if link.known else "unknown"


def _table(rows: list[tuple[str, Limits]]) -> list[str]:
    lines = [f"{'':<16}{'as recorded':>14}{'platform':>14}{'device':>14}  binding"]
    for title, limits in rows:
        numbers = (
            gigabytes(rate) if rate is not None else "–" for rate in (limits.now, limits.platform, limits.device)
        )
        lines.append(
            f"{title:<16}{''.join(f'{number:>14}' for number in numbers)}  {limits.binding or limits.why}".rstrip()
        )
    return lines


def _explained(rows: list[tuple[str, Limits]]) -> list[str]:
    return [line for title, limits in rows for line in ("", f"{title}: {limits.why}")]


def _gpu(machine: Machine, index: int) -> Gpu:
    gpu = machine.gpu(index)
    if gpu is None:
        raise PlanError(f"GPU {index} is not in this machine: {_there(machine)}")
    return gpu


def _there(machine: Machine) -> str:
    known = ", ".join(str(gpu.index) for gpu in machine.gpus)
    return f"it has GPUs {known}" if known else "it has no GPU"
