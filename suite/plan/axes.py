"""The axes of the cases: which GPUs, NUMA nodes, sizes and world sizes there are to measure on this machine."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from suite.records.case import COLLECTIVES
from suite.records.flows import PATTERNS
from suite.records.machine import Gpu, Machine, NumaNode
from suite.records.run import Settings
from suite.units import GIB, KIB, MIB, format_bytes

Value = int | str | tuple[int, ...] | None
Values = list[tuple[Value, str]]

# Messages of tensor-parallel decoding: tokens × hidden size × 2 bytes, 1 to 8 tokens of a hidden size of 5120.
DECODE_MESSAGES = (10 * KIB, 20 * KIB, 40 * KIB, 80 * KIB)
PAIR_BYTES = 16 * MIB
COMPARED_BYTES = 256 * MIB


def values(name: str, machine: Machine, settings: Settings) -> Values | str:
    """What an argument called `name` may be, each value with its id; a text is the reason why there is none."""
    return _AXES[name](machine, settings)


def gpus(machine: Machine, settings: Settings) -> tuple[Gpu, ...]:
    """The GPUs to measure, in NVML order."""
    return tuple(g for g in machine.gpus if settings.gpus is None or g.index in settings.gpus)


def nodes(machine: Machine, settings: Settings) -> tuple[NumaNode, ...]:
    """The NUMA nodes to measure: those asked for that this process may allocate from."""
    allowed = machine.environment.allowed_nodes
    return tuple(
        n
        for n in machine.nodes
        if (settings.nodes is None or n.index in settings.nodes) and (not allowed or n.index in allowed)
    )


def copy_sizes(settings: Settings) -> tuple[int, ...]:
    """Bytes of the copy cases, ascending."""
    return settings.sizes or _doubling(4 * KIB, GIB if settings.effort == "full" else 256 * MIB)


def messages(settings: Settings) -> tuple[int, ...]:
    """Bytes of the collective cases, ascending."""
    if settings.sizes:
        return settings.sizes
    return tuple(sorted({*_doubling(8, GIB if settings.effort == "full" else 64 * MIB), *DECODE_MESSAGES}))


def _doubling(first: int, last: int) -> tuple[int, ...]:
    sizes = []
    while first <= last:
        sizes.append(first)
        first *= 2
    return tuple(sizes)


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
    chunks = (MIB, 4 * MIB, 16 * MIB) if settings.effort == "quick" else _doubling(256 * KIB, 64 * MIB)
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
        return _gpu_world_size(machine, settings)
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


def _message(_machine: Machine, settings: Settings) -> Values:
    return [(size, format_bytes(size)) for size in messages(settings)]


def _world_size(machine: Machine, settings: Settings) -> Values:
    """Ranks on CPUs: those asked for, or 2 and, where there are CPUs for it, 4."""
    cpus = sum(len(n.cpus) for n in machine.nodes)
    sizes: Sequence[int] = settings.world_sizes or [n for n in (2, 4) if n <= max(2, cpus)]
    return [(n, f"{n}ranks") for n in sizes]


def _most_ranks(machine: Machine, settings: Settings) -> Values:
    """The largest number of ranks on CPUs: for what is not measured at every one."""
    return _world_size(machine, settings)[-1:]


def _gpu_world_size(machine: Machine, settings: Settings) -> Values | str:
    """Ranks on GPUs, one each: those asked for, or all of them (in full also every power of two below)."""
    if settings.several_hosts:
        return _elsewhere(settings)
    found = len(gpus(machine, settings))
    if found == 0:
        return machine.why_no_gpu or "no GPU"
    if found == 1:
        return "needs two GPUs and one is there"
    wanted = settings.world_sizes or _gpu_worlds(found, settings)
    fitting = [n for n in wanted if n <= found]
    return [(n, f"{n}ranks") for n in fitting] or f"needs {min(wanted)} GPUs and {found} are there"


def _most_gpu_ranks(machine: Machine, settings: Settings) -> Values | str:
    """The largest number of ranks on GPUs."""
    found = _gpu_world_size(machine, settings)
    return found if isinstance(found, str) else found[-1:]


def _elsewhere(settings: Settings) -> Values | str:
    """Ranks on other hosts: as many as asked for."""
    if not settings.world_sizes:
        return "several hosts need --world-size: the number of ranks on all of them"
    return [(n, f"{n}ranks") for n in settings.world_sizes]


def _shared_world_size(machine: Machine, settings: Settings) -> Values | str:
    """Ranks where several share a GPU: only where asked for, since it measures no link."""
    found = len(gpus(machine, settings))
    if found == 0:
        return machine.why_no_gpu or "no GPU"
    if settings.ranks_per_gpu < 2:
        return "several ranks share a GPU only where asked for: --ranks-per-gpu 2"
    ranks = found * settings.ranks_per_gpu
    return [(ranks, f"{ranks}ranks")]


def _gpu_worlds(found: int, settings: Settings) -> Sequence[int]:
    if settings.effort == "quick":
        return [found]
    return sorted({found, *(n for n in (2, 4, 8, 16) if n <= found)})


def _transport(machine: Machine, settings: Settings) -> Values:
    """NCCL's own choice and shared memory; in full also P2P forced, where the driver allows it, and the network."""
    names = ["default", "shm"] if settings.effort == "quick" else ["default", "p2p", "shm", "net"]
    return [(name, name) for name in names if name != "p2p" or _p2p_allowed(machine, settings)]


def _p2p_allowed(machine: Machine, settings: Settings) -> bool:
    """The driver denies no two of the GPUs each other's memory: where it does, forcing P2P changes nothing."""
    wanted = {gpu.index for gpu in gpus(machine, settings)}
    pairs = [pair for pair in machine.pairs if {pair.first, pair.second} <= wanted]
    return all(status in (None, "OK") for pair in pairs for status in (pair.p2p_read, pair.p2p_write))


def _few(settings: Settings, quick: Sequence[int]) -> Values:
    """In quick a few of the messages; in full, and of sizes that were asked for, all of them."""
    every = messages(settings)
    chosen = every if settings.sizes or settings.effort == "full" else [n for n in every if n in quick]
    return [(size, format_bytes(size)) for size in chosen]


def _few_message(_machine: Machine, settings: Settings) -> Values:
    """One message of decoding, whose time is latency, and a large one."""
    return _few(settings, (40 * KIB, 16 * MIB))


def _graph_message(_machine: Machine, settings: Settings) -> Values:
    """Where launch cost tells (decoding), and where it does not."""
    return _few(settings, (8, *DECODE_MESSAGES, MIB, 64 * MIB))


def _collective(_machine: Machine, _settings: Settings) -> Values:
    """Collectives beside allreduce."""
    return [(name, name) for name in COLLECTIVES if name != "allreduce"]


def _dtype(_machine: Machine, _settings: Settings) -> Values:
    """Types of elements beside float32."""
    return [(name, name) for name in ("float16", "bfloat16")]


def _ranks_placed(machine: Machine, settings: Settings) -> Values | str:
    """How the ranks' CPUs lie to their GPUs, beside unpinned, which all other cases are."""
    if settings.several_hosts:
        return "ranks on several hosts are placed by what starts them"
    if sum(bool(n.cpus) for n in machine.nodes) < 2:
        return "one NUMA node has CPUs: near and far are the same"
    return [(name, f"ranks_{name}") for name in ("near", "far")]


def _placed_transport(_machine: Machine, settings: Settings) -> Values:
    """Where placement tells most: shared memory; in full the network and NCCL's own choice too."""
    names = ["shm"] if settings.effort == "quick" else ["default", "shm", "net"]
    return [(name, name) for name in names]


def _tuning(machine: Machine, settings: Settings) -> Values | str:
    """Variables that are set to tell tuning from hardware."""
    if settings.effort == "quick":
        return "tuned rows are measured with --effort full"
    names = ["min_channels_8", "p2p_level_sys", "buffers_8MiB"]
    return [(name, name) for name in names if name != "p2p_level_sys" or _p2p_allowed(machine, settings)]


def _graph_tuning(_machine: Machine, settings: Settings) -> Values | str:
    """Graphs without registered buffers: only against these is the difference to eager calls launch cost."""
    if settings.effort == "quick":
        return "tuned rows are measured with --effort full"
    return [("graph_unregistered", "graph_unregistered")]


def _host_buffers(_machine: Machine, settings: Settings) -> Values | str:
    """NCCL's host buffers where the rank is, in place of on the GPU's node."""
    if settings.effort == "quick":
        return "tuned rows are measured with --effort full"
    return [("host_buffers_follow_rank", "host_buffers_follow_rank")]


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
    "world_size": _world_size,
    "most_ranks": _most_ranks,
    "gpu_world_size": _gpu_world_size,
    "most_gpu_ranks": _most_gpu_ranks,
    "shared_world_size": _shared_world_size,
    "transport": _transport,
    "placed_transport": _placed_transport,
    "tuning": _tuning,
    "graph_tuning": _graph_tuning,
    "host_buffers": _host_buffers,
    "ranks_placed": _ranks_placed,
    "collective": _collective,
    "dtype": _dtype,
    "memory": _memory,
    "chunk": _chunk,
    "message": _message,
    "few_message": _few_message,
    "graph_message": _graph_message,
    "large_size": _large_size,
    "one_size": _one_size,
    "pageable_size": _pageable_size,
    "sweep_size": _sweep_size,
    "size": _size,
}

# Slow to fast: worker pools live as long as the slow axes stay, so sizes come last.
NAMES: tuple[str, ...] = tuple(_AXES)
