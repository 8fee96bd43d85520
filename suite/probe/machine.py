"""The whole machine: sysfs first, so that links are as found, then NVML, which wakes GPUs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

import msgspec

from suite.errors import ProbeError
from suite.probe import dmi, environment, gpus, numa, pci, software
from suite.probe.nvml import Answers
from suite.probe.tree import Tree
from suite.records.machine import Environment, Gpu, Machine, MemoryModule, NumaNode, PciFunction, Software

# A recording's file with NVML's answers, and the one with what only the process that recorded could know.
NVML_FILE, PROCESS_FILE = "nvml.json", "process.json"

Record = TypeVar("Record")
Fields = TypeVar("Fields", Software, Environment)


SCHEMA = 1


@dataclass(frozen=True)
class Process:
    """What the recording process knew beyond the files that a recording holds: versions, environment, its limits, and
    the memory modules, whose table also has serial numbers."""

    schema: int = SCHEMA
    software: Software = Software()
    environment: Environment = Environment()
    memory_modules: tuple[MemoryModule, ...] = ()


def read(root: Path = Path("/"), *, nvml: bool = True, timeout_s: float = 10.0) -> Machine:
    """The machine below `root`: '/' for this one, else a recorded tree with sys/ and proc/ (its NVML answers in
    nvml.json). nvml=False asks nothing that could wake a GPU. Raises ProbeError where there is no tree."""
    tree = Tree(root)
    if not tree.live and tree.path("sys") is None:
        raise ProbeError(f"{root} holds no machine: a folder with sys/ (and proc/) in it is needed")
    machine = without_gpus(tree)
    return with_gpus(machine, answers(tree, nvml, timeout_s), tree)


def without_gpus(tree: Tree) -> Machine:
    """What files alone say."""
    facts = environment.read(tree)
    functions = pci.read(tree)
    nodes = numa.nodes(tree, functions, facts.allowed_cpus)
    functions = pci.with_numa(functions, nodes)
    process = _process(tree)
    return Machine(
        nodes=nodes,
        cpu=numa.cpu(tree),
        pci=functions,
        software=_merged(software.read(tree), process.software),
        environment=_merged(facts, process.environment),
        memory_modules=dmi.memory_modules(tree) or process.memory_modules,
    )


def with_gpus(machine: Machine, said: Answers, tree: Tree) -> Machine:
    """The machine with NVML's answers joined to it."""
    found = gpus.join(said, machine.pci)
    machine = replace(
        machine,
        nodes=_with_gpu_memory(machine.nodes, found, said),
        pci=_named(machine.pci, found),
        gpus=found,
        software=_merged(Software(driver=said.driver, cuda_driver=said.cuda_driver), machine.software),
        why_no_gpu=None if found else gpus.why_none(said, machine.pci, tree),
        notes=tuple(_notes(machine.pci, said, found)),
    )
    return replace(machine, pairs=gpus.pairs(machine, said.pairs))


def answers(tree: Tree, nvml: bool, timeout_s: float) -> Answers:
    """NVML's own answers for this machine, the recorded ones for a recorded tree."""
    if tree.live:
        return gpus.ask(timeout_s) if nvml else Answers(problem="not_asked")
    data = tree.data(NVML_FILE)
    return Answers(problem="not_recorded") if data is None else decoded(data, Answers, NVML_FILE)


def _process(tree: Tree) -> Process:
    data = None if tree.live else tree.data(PROCESS_FILE)
    process = Process() if data is None else decoded(data, Process, PROCESS_FILE)
    if process.schema != SCHEMA:
        raise ProbeError(f"the recording has schema {process.schema}, this version reads {SCHEMA}: update lanecheck")
    return process


def decoded(data: bytes, kind: type[Record], name: str) -> Record:
    """A record from JSON. Raises ProbeError with one sentence that names the place in the file."""
    try:
        return msgspec.json.decode(data, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ProbeError(f"{name} cannot be read: {error}") from error
    except RecursionError as error:
        raise ProbeError(f"{name} cannot be read: it is nested too deeply") from error


def _merged(first: Fields, second: Fields) -> Fields:
    """The first record, completed by the second where it does not say."""
    missing = {name: value for name, value in vars(second).items() if getattr(first, name) in (None, ())}
    return replace(first, **missing)


def _with_gpu_memory(nodes: tuple[NumaNode, ...], found: Sequence[Gpu], answers: Answers) -> tuple[NumaNode, ...]:
    """Marks the nodes that are GPU memory, where NVML names them."""
    owners = {node: gpu.address for index, node in answers.numa_nodes for gpu in found if gpu.index == index}
    return tuple(replace(n, gpu=owners[n.index]) if owners.get(n.index) and not n.cpus else n for n in nodes)


def _named(functions: tuple[PciFunction, ...], found: Sequence[Gpu]) -> tuple[PciFunction, ...]:
    names = {gpu.address: gpu.name for gpu in found}
    return tuple(replace(f, name=names[f.address]) if f.address in names else f for f in functions)


def _notes(functions: Sequence[PciFunction], answers: Answers, found: Sequence[Gpu]) -> Iterator[str]:
    """What is missing in the answers, where there are GPUs at all."""
    if not found:
        return
    if answers.problem in ("timeout", "crash", "error"):
        yield f"NVML's answers are not complete ({answers.problem_text}): some GPUs or pairs are missing."
    known = {f.address for f in functions}
    for gpu in found:
        if gpu.address not in known:
            yield f"GPU {gpu.index} ({gpu.address}) is not in sysfs: its links and its NUMA node are not known."
    for lost in sorted({f.address for f in functions if pci.is_nvidia_gpu(f)} - {gpu.address for gpu in found}):
        yield f"The NVIDIA GPU at {lost} is in sysfs, but the driver does not show it (its own driver, or lost)."
