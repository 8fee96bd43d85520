"""What a described machine must keep to, so that nothing behind it meets a value that no machine can have.

The measured rooms take a machine as it is: a width of 0, a rate below 0 or a bridge above itself would come out as a
figure, or never come out. Each check answers with the first place that is wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from suite.errors import ProbeError
from suite.records.machine import LinkState, Machine
from suite.records.scenario import Fault, Scenario

# Bounds of what the suite is made for: every pair of GPUs is a case, and the largest hosts hold 16 to 32 of them.
MOST_GPUS = 64
MOST_NODES = 1024  # Linux' own bound, MAX_NUMNODES with CONFIG_NODES_SHIFT=10
MOST_FUNCTIONS = 65_536  # of one PCI domain: 256 buses, 32 devices, 8 functions
MOST_INDEX = 1023
MOST_LANES = 32  # PCI Express Base Specification: the widest link
MOST_NOISE = 0.5  # beyond it a sample's time would be negative now and then
# What a kind of fault does nothing without.
_NEEDS: dict[str, tuple[str, ...]] = {
    "hop_capacity": ("address", "rate"),
    "node_capacity": ("node", "rate"),
    "node_to_gpu_capacity": ("gpu", "node", "rate"),
    "outstanding_reads": ("rate",),
    "pair_capacity": ("gpu", "peer", "rate"),
    "latency": ("seconds",),
    "link_errors": ("address", "rate"),
    "link_state": ("link",),
}


def check(scenario: Scenario, name: str) -> None:
    """Raises ProbeError, one sentence with the place, for the first thing that no machine can have. name: of the
    file."""
    wrong = next(_wrong(scenario), None)
    if wrong is not None:
        raise ProbeError(f"{name}: {wrong}")


def _wrong(scenario: Scenario) -> Iterator[str]:
    machine = scenario.machine
    yield from _counts(machine)
    yield from _indices("gpus", [gpu.index for gpu in machine.gpus])
    yield from _indices("nodes", [node.index for node in machine.nodes])
    yield from _tree(machine)
    yield from _memory(machine)
    yield from _links(machine)
    yield from _spread(scenario)
    for place, fault in enumerate(scenario.faults):
        yield from (f"faults[{place}] ({fault.kind}): {words}" for words in _fault(machine, fault))


def _counts(machine: Machine) -> Iterator[str]:
    bounds = (
        ("gpus", machine.gpus, MOST_GPUS),
        ("nodes", machine.nodes, MOST_NODES),
        ("pci", machine.pci, MOST_FUNCTIONS),
    )
    for field, found, most in bounds:
        if len(found) > most:
            yield f"{field} has {len(found)} entries, at most {most} are allowed"


def _indices(field: str, indices: list[int]) -> Iterator[str]:
    seen: set[int] = set()
    for place, index in enumerate(indices):
        if not 0 <= index <= MOST_INDEX:
            yield f"{field}[{place}].index is {index}, allowed are 0 to {MOST_INDEX}"
        if index in seen:
            yield f"{field}[{place}].index is {index}, which another of them has already"
        seen.add(index)


def _tree(machine: Machine) -> Iterator[str]:
    """Every address once, and no bridge above itself. Each function is visited once: a long chain costs no more."""
    parents: dict[str, str | None] = {}
    for place, function in enumerate(machine.pci):
        if function.address in parents:
            yield f"pci[{place}].address is {function.address}, which another of them has already"
        parents[function.address] = function.parent
    ended: set[str] = set()
    for start in parents:
        way: dict[str, None] = {}
        at: str | None = start
        while at in parents and at not in ended:
            if at in way:
                yield f"pci: {at} is a parent of itself (its parent is {parents[at]})"
                return
            way[at] = None
            at = parents[at]
        ended.update(way)


def _memory(machine: Machine) -> Iterator[str]:
    groups = (
        ("nodes", machine.nodes, ("memory_bytes", "free_bytes")),
        ("gpus", machine.gpus, ("memory_bytes", "memory_free_bytes", "bar1_bytes")),
        ("memory_modules", machine.memory_modules, ("size_bytes", "rate", "width_bits")),
    )
    for field, found, names in groups:
        for place, record in enumerate(found):
            for part in names:
                if (value := getattr(record, part)) is not None and value < 0:
                    yield f"{field}[{place}].{part} is {value:g}, below 0: leave out what is not known"


def _links(machine: Machine) -> Iterator[str]:
    for place, function in enumerate(machine.pci):
        yield from _link(f"pci[{place}].link", function.link)
        yield from _link(f"pci[{place}].link_max", function.link_max)
    for place, gpu in enumerate(machine.gpus):
        for part in ("link", "link_max", "link_device"):
            yield from _link(f"gpus[{place}].{part}", getattr(gpu, part))


def _link(place: str, link: LinkState) -> Iterator[str]:
    if link.width is not None and not 1 <= link.width <= MOST_LANES:
        yield f"{place}.width is {link.width}, allowed are 1 to {MOST_LANES} lanes: write null where it is not known"
    if link.speed_gts is not None and link.speed_gts <= 0:
        yield f"{place}.speed_gts is {link.speed_gts:g}, it must be above 0: write null where it is not known"


def _spread(scenario: Scenario) -> Iterator[str]:
    if not 0 <= scenario.noise <= MOST_NOISE:
        yield f"noise is {scenario.noise:g}, allowed are 0 to {MOST_NOISE:g}"
    if scenario.efficiency is not None and not 0 < scenario.efficiency <= 1:
        yield f"efficiency is {scenario.efficiency:g}, it must be above 0 and at most 1"


def _fault(machine: Machine, fault: Fault) -> Iterator[str]:
    for field in _NEEDS.get(fault.kind, ()):
        if getattr(fault, field) is None:
            yield f"{field} is missing, without it this fault does nothing"
    if fault.kind == "link_state" and fault.gpu is None and fault.address is None:
        yield "gpu or address is missing, without one of them this fault does nothing"
    if fault.rate is not None and fault.rate <= 0:
        yield f"rate is {fault.rate:g}, it must be above 0"
    if fault.seconds is not None and fault.seconds < 0:
        yield f"seconds is {fault.seconds:g}, it must not be below 0"
    if fault.link is not None:
        yield from _link("link", fault.link)
    yield from _named(machine, fault)


def _named(machine: Machine, fault: Fault) -> Iterator[str]:
    """What a fault names and the machine has not."""
    there: tuple[tuple[str, Callable[[int], object | None]], ...] = (
        ("gpu", machine.gpu), ("peer", machine.gpu), ("node", machine.node),
    )  # fmt: skip
    for field, find in there:
        index = getattr(fault, field)
        if index is not None and find(index) is None:
            yield f"{field} is {index}, which this machine has not"
    addresses = {f.address for f in machine.pci} | {g.address for g in machine.gpus}
    if fault.address is not None and fault.address not in addresses:
        yield f"address is {fault.address}, which this machine has not (addresses are in lower case)"
