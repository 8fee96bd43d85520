"""The axes of the cases: which GPUs, NUMA nodes, sizes and world sizes there are to measure on this machine."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from suite.plan import rank_axes
from suite.plan.chosen import Value as Value
from suite.plan.chosen import Values as Values
from suite.plan.chosen import copy_sizes as copy_sizes
from suite.plan.chosen import doubling
from suite.plan.chosen import gpus as gpus
from suite.plan.chosen import messages as messages
from suite.plan.chosen import nodes as nodes
from suite.records.flows import PATTERNS
from suite.records.machine import Gpu, Machine
from suite.records.run import Settings
from suite.units import KIB, MIB, format_bytes

PAIR_BYTES = 16 * MIB
COMPARED_BYTES = 256 * MIB


def values(name: str, machine: Machine, settings: Settings) -> Values | str:
    """What an argument called `name` may be, each value with its id; a text is the reason why there is none."""
    return _AXES[name](machine, settings)


def _gpu(machine: Machine, settings: Settings) -> Values | str:
    found = gpus(machine, settings)
    if not found:
        return machine.why_no_gpu or "no GPU"
    return [(g.index, f"gpu{g.index}") for g in found]


def _pair(machine: Machine, settings: Settings) -> Values | str:
    found = gpus(machine, settings)
    if not found:
        return machine.why_no_gpu or "no GPU"
    if len(found) < 2:
        return "needs two GPUs and one is there"
    # A pair and its reverse follow each other: GPUs that wait for long fall asleep.
    return [value for a, b in _couples(found) for value in (_named(a, b), _named(b, a))]


def _couple(machine: Machine, settings: Settings) -> Values | str:
    """Every two GPUs once: for what is the same in both directions."""
    found = _pair(machine, settings)
    return found if isinstance(found, str) else found[::2]


def _couples(found: Sequence[Gpu]) -> list[tuple[Gpu, Gpu]]:
    return [(a, b) for place, a in enumerate(found) for b in found[place + 1 :]]


def _named(one: Gpu, other: Gpu) -> tuple[Value, str]:
    return (one.index, other.index), f"gpu{one.index}_gpu{other.index}"


def _direct(_machine: Machine, _settings: Settings) -> Values:
    """What every pair is asked with P2P on."""
    return [("peer_write", "write"), ("peer_read", "read"), ("peer_latency", "latency")]


def _sweep(_machine: Machine, settings: Settings) -> Values:
    """Copies between GPUs that are measured over all sizes."""
    names = ["write"] if settings.effort == "quick" else ["write", "read", "both_ways"]
    return [(f"peer_{name}", name) for name in names]


def _sweep_size(_machine: Machine, settings: Settings) -> Values | str:
    """Sizes beside the one at which every pair is measured."""
    if settings.sizes or settings.effort == "full":
        sizes: Sequence[int] = copy_sizes(settings)
    else:
        sizes = (4 * KIB, 256 * KIB, 4 * MIB, 64 * MIB)
    found: Values = [(size, format_bytes(size)) for size in sizes if size != pair_size(settings)]
    return found or "no other size was asked for"


def pair_size(settings: Settings) -> int:
    """Bytes at which every pair is measured: 240 pairs of 16 GPUs must not take longer than three minutes."""
    return settings.sizes[-1] if settings.sizes else PAIR_BYTES


def _gpu_pattern(machine: Machine, settings: Settings) -> Values | str:
    """Ways of copying between all GPUs at once."""
    found = len(gpus(machine, settings))
    if found == 0:
        return machine.why_no_gpu or "no GPU"
    if found < 3:
        return f"needs three GPUs and {'one is' if found == 1 else 'two are'} there"
    return [(name, name) for name in PATTERNS]


def _node(machine: Machine, settings: Settings) -> Values | str:
    """Nodes that have memory (or do not say)."""
    found = [n for n in nodes(machine, settings) if n.memory_bytes != 0]
    return [(n.index, f"node{n.index}") for n in found] or "no NUMA node with memory may be used"


def _target_node(machine: Machine, settings: Settings) -> Values | str:
    found = _node(machine, settings)
    return found if isinstance(found, str) else [(value, f"to_{text}") for value, text in found]


def _cpu_node(machine: Machine, settings: Settings) -> Values | str:
    """Every node with CPUs; with more than two nodes in quick only the one nearest to the memory."""
    found = [n for n in nodes(machine, settings) if n.cpus]
    if not found:
        return "no NUMA node with CPUs may be used"
    if len(found) > 2 and settings.effort == "quick":
        return [(None, "near_cpus")]
    return [(n.index, f"cpus{n.index}") for n in found]


def _size(_machine: Machine, settings: Settings) -> Values:
    return [(size, format_bytes(size)) for size in copy_sizes(settings)]


def _large_size(_machine: Machine, settings: Settings) -> Values:
    """Sizes at which a bandwidth is judged: the largest in quick, all from 1 MiB in full."""
    sizes = copy_sizes(settings)
    chosen = sizes[-1:] if settings.effort == "quick" else [n for n in sizes if n >= MIB] or sizes[-1:]
    return [(size, format_bytes(size)) for size in chosen]


def _one_size(_machine: Machine, settings: Settings) -> Values:
    """The size at which kinds of memory, and GPUs copying at once, are compared: the largest up to 256 MiB."""
    sizes = copy_sizes(settings)
    size = max((n for n in sizes if n <= COMPARED_BYTES), default=sizes[0])
    return [(size, format_bytes(size))]


def _pageable_size(machine: Machine, settings: Settings) -> Values:
    """Sizes with pageable memory: one in quick, since its copies are slow and say little of the path."""
    return _one_size(machine, settings) if settings.effort == "quick" else _size(machine, settings)


def _memory(_machine: Machine, settings: Settings) -> Values:
    """Kinds of page-locked memory beside placed and registered memory, which all other cases use."""
    kinds = ["host_alloc"] if settings.effort == "quick" else ["host_alloc", "huge", "write_combined"]
    return [(kind, kind) for kind in kinds]


def _chunk(_machine: Machine, settings: Settings) -> Values:
    """Bytes of a staging chunk."""
    chunks = (MIB, 4 * MIB, 16 * MIB) if settings.effort == "quick" else doubling(256 * KIB, 64 * MIB)
    return [(size, f"{format_bytes(size)}_chunks") for size in chunks]


def _route(machine: Machine, settings: Settings) -> Values | str:
    """Ways of staging: from each GPU back to itself, and from GPU to GPU (in quick from each to the next one)."""
    found = [g.index for g in gpus(machine, settings)]
    if not found:
        return machine.why_no_gpu or "no GPU"
    alone: Values = [((one,), f"gpu{one}") for one in found]
    pairs = [(a, b) for a in found for b in found if a != b]
    if settings.effort == "quick":
        pairs = [(a, b) for a, b in pairs if found.index(b) == (found.index(a) + 1) % len(found)]
    return alone + [((a, b), f"gpu{a}_gpu{b}") for a, b in pairs]


def _gpu_group(machine: Machine, settings: Settings) -> Values | str:
    """GPUs to run at once: all of them, and those that share a port above them."""
    found = gpus(machine, settings)
    if len(found) < 2:
        return rank_axes.RANKS["gpu_world_size"](machine, settings)
    everyone = tuple(g.index for g in found)
    shared = [(group, f"below_{_in_an_id(port)}") for port, group in sharing(machine, found) if group != everyone]
    return [(everyone, "all_gpus"), *shared]


def sharing(machine: Machine, found: Sequence[Gpu]) -> list[tuple[str, tuple[int, ...]]]:
    """(port's address, the GPUs below it) for every port with two or more of these GPUs below; of ports with the same
    GPUs the lowest one."""
    below: dict[str, list[int]] = {}
    for gpu in found:
        for port in list(machine.ancestors(gpu.address))[1:]:
            below.setdefault(port.address, []).append(gpu.index)
    groups: dict[tuple[int, ...], str] = {}
    for address, members in below.items():
        if len(members) > 1:
            groups.setdefault(tuple(members), address)
    return [(address, group) for group, address in groups.items()]


def _in_an_id(address: str) -> str:
    """A PCI address without the signs that mean something in a case's name."""
    return address.replace(":", ".")


_AXES: dict[str, Callable[[Machine, Settings], Values | str]] = {
    "gpu": _gpu,
    "gpu_group": _gpu_group,
    "sweep": _sweep,
    "pair": _pair,
    "couple": _couple,
    "direct": _direct,
    "gpu_pattern": _gpu_pattern,
    "route": _route,
    "node": _node,
    "target_node": _target_node,
    "cpu_node": _cpu_node,
    **rank_axes.RANKS,
    "memory": _memory,
    "chunk": _chunk,
    **rank_axes.MESSAGES,
    "large_size": _large_size,
    "one_size": _one_size,
    "pageable_size": _pageable_size,
    "sweep_size": _sweep_size,
    "size": _size,
}

# Slow to fast: worker pools live as long as the slow axes stay, so sizes come last.
NAMES: tuple[str, ...] = tuple(_AXES)
