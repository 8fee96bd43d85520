"""What changed in the machine: facts beside facts, in words. Exact differences, never statistics."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from suite.records.case import LinkWatch
from suite.records.comparison import Difference
from suite.records.machine import Gpu, LinkState, Machine, PcieConfig
from suite.records.path import path_to_root
from suite.records.run import Run
from suite.store import compare_gpus
from suite.units import GIB, format_bytes

# Above this share of its time another program had the GPU: the judge's threshold `busy`.
BUSY = 0.10


@dataclass(frozen=True)
class Fact:
    """One thing that a run knows of its machine, by name. value: in words."""

    what: str
    value: str
    gpu: int | None = None


def differences(before: Sequence[Run], after: Sequence[Run]) -> tuple[Difference, ...]:
    """What differs between the machines of two sets of runs. Where the runs of a side disagree, all that they say is
    given; a fact that any run of both sides agrees on in the same set of values is no difference. GPUs that only one
    side has come first, one line each."""
    old, new = _collected(before), _collected(after)
    alone, ways = _indices(before) ^ _indices(after), compare_gpus.folded(before, after)
    found = []
    for key in dict.fromkeys([*new, *old]):
        one, two = old.get(key), new.get(key)
        if one != two and not (one and two and set(one) == set(two)):
            words = _removed_and_added(one, two) if key[0] == _COMMAND_LINE else (_joined(one), _joined(two))
            found.append(Difference(key[0], *words, gpu=key[1], below=_below(after[-1].machine, key[0])))
    own = sorted((d for d in found if not _goes_with(d, alone, ways)), key=_order)
    return (*compare_gpus.differences(before, after), *own)


def _below(machine: Machine, what: str) -> tuple[int, ...]:
    """The GPUs below the hop that a fact is of; none where it is of something else."""
    address = what.removeprefix(_HOP).partition(" ")[0] if what.startswith(_HOP) else None
    paths = ((gpu.index, path_to_root(machine, gpu.address or "").hops) for gpu in machine.gpus)
    return tuple(index for index, hops in paths if any(hop.lower == address for hop in hops))


def busy(before: Sequence[Run], after: Sequence[Run]) -> tuple[str, ...]:
    """GPUs that another program used when a run after began, a clause each. Copies alone may not count as utilisation
    (NVML counts the time in which kernels run): a program that was not there before is named too."""
    indices = sorted(_indices(after))
    found = ((index, _most(after, index, "utilization"), _most(after, index, "processes")) for index in indices)
    said = []
    for index, share, programs in found:
        if share > BUSY:
            said.append(f"busy GPU: GPU{index} was {share * 100:.0f} % busy with another program when the run began")
        elif programs > _most(before, index, "processes"):
            said.append(f"perhaps a busy GPU: another program was on GPU{index} when the run began")
    return tuple(said)


def _most(runs: Sequence[Run], index: int, name: str) -> float:
    """The greatest value of a GPU's number over some runs; 0 where none knows it."""
    gpus = (run.machine.gpu(index) for run in runs)
    return max((getattr(gpu, name) or 0.0 for gpu in gpus if gpu is not None), default=0.0)


def link_under_load(run: Run, gpu: int) -> LinkWatch | None:
    """The link watch of a GPU in a run; None where none saw it under load."""
    watches = (r.link for r in run.results if r.operation == "link_under_load" and r.gpus == (gpu,) and r.link)
    return next((watch for watch in watches if watch.readings), None)


_COMMAND_LINE = "kernel command line"
# What explains a bandwidth best comes first; what an idle link says comes last, for it says nothing by itself.
_HOP = "link at "
_FIRST = ("link under load", "link possible", _HOP)
_LAST = ("link idle",)
Key = tuple[str, int | None]


def _order(difference: Difference) -> int:
    text = difference.what
    if any(mark in text for mark in _LAST):
        return 2
    return 0 if any(mark in text for mark in _FIRST) else 1


def _indices(runs: Sequence[Run]) -> set[int]:
    return {gpu.index for run in runs for gpu in run.machine.gpus}


def _goes_with(difference: Difference, alone: set[int], ways: set[str]) -> bool:
    """Of a GPU that only one side has, and of the ports on its way alone, its own line is enough."""
    named = {int(number) for number in re.findall(r"GPU(\d+)", difference.what)}
    return bool(named & alone) or any(word in ways for word in difference.what.split())


def _collected(runs: Sequence[Run]) -> dict[Key, tuple[str, ...]]:
    """Every fact with all values that the runs give it, in order."""
    found: dict[Key, dict[str, None]] = {}
    for run in runs:
        for fact in facts(run):
            found.setdefault((fact.what, fact.gpu), {})[fact.value] = None
    return {key: tuple(values) for key, values in found.items()}


def _joined(values: tuple[str, ...] | None) -> str | None:
    return " or ".join(values) if values else None


def _removed_and_added(before: tuple[str, ...] | None, after: tuple[str, ...] | None) -> tuple[str | None, str | None]:
    """Of two long lines only the words that the other one lacks."""
    old, new = " ".join(before or ()).split(), " ".join(after or ()).split()
    gone, come = [w for w in old if w not in new], [w for w in new if w not in old]
    return " ".join(gone) or None, " ".join(come) or ("none" if gone else "other order")


def facts(run: Run) -> Iterator[Fact]:
    """All that is compared of a run's machine; what is not known is left out."""
    machine = run.machine
    for gpu in machine.gpus:
        yield from _gpu(gpu)
        yield from _links(run, gpu)
    yield from _ports(machine)
    yield from _pairs(machine)
    yield from _host(machine)
    yield from _software(machine)


def _gpu(gpu: Gpu) -> Iterator[Fact]:
    name = f"GPU{gpu.index}"
    known = {
        "model": gpu.name,
        "address": gpu.address,
        "NUMA node": gpu.numa_node,
        "VBIOS": gpu.vbios,
        "memory": _size(gpu.memory_bytes),
        "BAR1": _size(gpu.bar1_bytes),
        "MIG": _on(gpu.mig),
        "persistence": _on(gpu.persistence),
        "power limit": f"{gpu.power_limit_w:g} W" if gpu.power_limit_w is not None else None,
        "other programs": gpu.processes,
        "active NVLinks": sum(1 for link in gpu.nvlinks if link.active) if gpu.nvlinks else None,
    }
    yield from (Fact(f"{name} {what}", str(value), gpu.index) for what, value in known.items() if value is not None)


def _links(run: Run, gpu: Gpu) -> Iterator[Fact]:
    """The GPU's own link under load, as found, and at its best; then the hops above it."""
    name, watch = f"GPU{gpu.index}", link_under_load(run, gpu.index)
    hops = path_to_root(run.machine, gpu.address or "").hops
    function = run.machine.function(gpu.address)
    possible = hops[0].possible if hops else gpu.link_max
    idle = watch.idle if watch and watch.idle.known else (function.link if function else gpu.link)
    states = {"link under load": watch.load if watch else LinkState(), "link possible": possible, "link idle": idle}
    yield from (Fact(f"{name} {what}", str(state), gpu.index) for what, state in states.items() if state != LinkState())
    loads = {hop.lower: hop.load for hop in watch.hops} if watch else {}
    for hop in hops[1:]:
        where = f"{_HOP}{hop.lower}"
        if loads.get(hop.lower, LinkState()) != LinkState():
            yield Fact(f"{where} under load", str(loads[hop.lower]))
        if hop.possible != LinkState():
            yield Fact(f"{where} possible", str(hop.possible))


def _ports(machine: Machine) -> Iterator[Fact]:
    """Settings of every function between a GPU and its root complex."""
    on_paths = {f.address: f for gpu in machine.gpus for f in machine.ancestors(gpu.address)}
    for address, function in on_paths.items():
        if function.config is not None:
            yield from _config(address, function.config)


def _config(address: str, config: PcieConfig) -> Iterator[Fact]:
    acs = None if config.acs is None else (", ".join(config.acs) or "off")
    known = {
        "MPS": _bytes(config.mps),
        "MRRS": _bytes(config.mrrs),
        "relaxed ordering": _on(config.relaxed_ordering),
        "extended tags": _on(config.extended_tags),
        "flit mode": _on(config.flit_mode),
        "ASPM": config.aspm,
        "target speed": f"{config.target_speed_gts:g} GT/s" if config.target_speed_gts else None,
        "ACS": acs,
        "ACS redirect": _on(config.acs_redirect),
        "resizable BAR": _on(config.resizable_bar),
    }
    yield from (Fact(f"{address} {what}", value) for what, value in known.items() if value is not None)


def _pairs(machine: Machine) -> Iterator[Fact]:
    for pair in machine.pairs:
        name = f"GPU{pair.first}–GPU{pair.second}"
        known = {
            "topology": pair.topology or pair.topology_nvml,
            "P2P read": pair.p2p_read,
            "P2P write": pair.p2p_write,
            "NVLinks": pair.nvlinks,
        }
        yield from (Fact(f"{name} {what}", str(value)) for what, value in known.items() if value is not None)


def _host(machine: Machine) -> Iterator[Fact]:
    cpu, environment = machine.cpu, machine.environment
    if machine.nodes:
        yield Fact("NUMA nodes", str(len(machine.nodes)))
    for node in machine.nodes:
        yield Fact(f"node {node.index} CPUs", str(len(node.cpus)))
        if node.memory_bytes is not None:
            yield Fact(f"node {node.index} memory", f"{node.memory_bytes / GIB:.0f} GiB")
        if node.distances:
            yield Fact(f"node {node.index} distances", " ".join(map(str, node.distances)))
    known = {
        "CPU": cpu.model,
        "CPU sockets": cpu.packages,
        "memory modules": _modules(machine),
        "board": environment.board,
        "BIOS": environment.bios,
        "IOMMU": environment.iommu,
        _COMMAND_LINE: environment.kernel_command_line,
        "CPU governor": environment.governor,
        "virtual machine": environment.virtual_machine,
        "container": environment.container,
        "/dev/shm": _size(environment.shm_bytes),
        "memory that may be locked": _bytes(environment.memlock_bytes),
        "CPUs allowed": len(environment.allowed_cpus) or None,
        "run as root": None if environment.root is None else ("yes" if environment.root else "no"),
    }
    yield from (Fact(what, str(value)) for what, value in known.items() if value is not None)


def _modules(machine: Machine) -> str | None:
    modules = machine.memory_modules
    if not modules:
        return None
    rates = sorted({module.rate for module in modules if module.rate})
    speeds = "/".join(f"{rate / 1e6:.0f}" for rate in rates)
    return f"{len(modules)}" + (f" at {speeds} MT/s" if speeds else "")


def _software(machine: Machine) -> Iterator[Fact]:
    """Versions, and the variables that change results."""
    software = machine.software
    known = {
        "kernel": software.kernel,
        "driver": software.driver,
        "CUDA of the driver": software.cuda_driver,
        "NCCL": software.nccl,
        "torch": software.torch,
        "cupy": software.cupy,
        "lanecheck": software.lanecheck,
    }
    yield from (Fact(what, value) for what, value in known.items() if value is not None)
    yield from (Fact(name, value or "(empty)") for name, value in machine.environment.variables)


def _size(size: int | None) -> str | None:
    """Rounded, so that a page more or less is no difference."""
    return None if size is None else f"{size / GIB:.2f} GiB"


def _bytes(size: int | None) -> str | None:
    return None if size is None else format_bytes(size)


def _on(flag: bool | None) -> str | None:
    return None if flag is None else ("on" if flag else "off")
