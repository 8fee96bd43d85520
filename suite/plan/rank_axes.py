"""The axes of the collectives: ranks, transports, placement, tuning, and sizes of messages."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from suite.plan.chosen import DECODE_MESSAGES, Values, gpus, messages
from suite.records.case import COLLECTIVES
from suite.records.machine import Machine
from suite.records.run import Settings
from suite.units import KIB, MIB, format_bytes


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


def _few(settings: Settings, quick: Sequence[int], most: int | None = None) -> Values:
    """In quick a few of the messages; in full all of them up to `most`; of sizes that were asked for, all of them."""
    every = messages(settings)
    if not settings.sizes:
        wanted = every if settings.effort == "full" else quick
        every = tuple(n for n in every if n in wanted and (most is None or n <= most))
    return [(size, format_bytes(size)) for size in every]


def _few_message(_machine: Machine, settings: Settings) -> Values:
    """One message of decoding, whose time is latency, and a large one."""
    return _few(settings, (40 * KIB, 16 * MIB))


def _few_host_message(_machine: Machine, settings: Settings) -> Values:
    """On CPUs beside the main sweep: what is looked at is whether values are right, and larger messages would add
    minutes and no other way through the code."""
    return _few(settings, (40 * KIB, 16 * MIB), most=16 * MIB)


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


# What pools of ranks are started for; then what they do; sizes last.
RANKS: dict[str, Callable[[Machine, Settings], Values | str]] = {
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
}
MESSAGES: dict[str, Callable[[Machine, Settings], Values | str]] = {
    "message": _message,
    "few_message": _few_message,
    "few_host_message": _few_host_message,
    "graph_message": _graph_message,
}
