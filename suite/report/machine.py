"""`lanecheck probe` as text: GPUs, the PCIe tree link by link, NUMA nodes, software, and remarks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from suite.records.machine import Gpu, GpuPair, LinkState, Machine, NumaNode
from suite.records.path import path_to_root
from suite.report import gpu_facts
from suite.report.pci_tree import Line, coloured, lines
from suite.report.remarks import pair_names, ranges, remarks
from suite.report.style import clean, printable
from suite.units import GIB, format_bytes

# Columns in the order in which a narrow terminal loses them; the tree shows a GPU's address again.
_LEAST_OF_GPUS = ("BAR1", "power", "used by", "address", "state")
_LEAST_OF_NODES = ("free", "distances")


def render(machine: Machine, *, width: int = 100, colour: bool = False, source: str | None = None) -> str:
    """Many lines, none wider than `width` characters (colour codes not counted). source: where the machine comes from,
    if it is not this one."""
    blocks = [
        _wrapped("", source, width) if source else [],
        _heading(machine, width),
        _table(_fitting(_gpu_rows(machine), _LEAST_OF_GPUS, width)),
        _pairs(machine),
        [_tree_line(line, colour, width) for line in lines(machine)],
        [line for text in gpu_facts.lines(machine) for line in _wrapped("", text, width)],
        _table(_fitting(_node_rows(machine), _LEAST_OF_NODES, width)),
        [*_wrapped("Software: ", _software(machine), width), *_settings(machine, width)],
        [line for sentence in remarks(machine) for line in _wrapped("- ", sentence, width)],
    ]
    return "\n\n".join("\n".join(_cut(line, width) for line in block) for block in blocks if block)


def _heading(machine: Machine, width: int) -> list[str]:
    cpu, facts = machine.cpu, machine.environment
    counts = [
        _count(len(machine.gpus), "GPU"),
        _count(len(machine.nodes), "NUMA node"),
        " ".join(filter(None, (cpu.model or "CPU not named", _cpu_counts(machine)))),
    ]
    where = [
        facts.board,
        f"BIOS {facts.bios}" if facts.bios else None,
        f"virtual machine: {facts.virtual_machine}" if facts.virtual_machine else None,
        f"container: {facts.container}" if facts.container else None,
        f"IOMMU {facts.iommu}" if facts.iommu else None,
        f"governor {facts.governor}" if facts.governor else None,
        _modules(machine),
    ]
    return [*_wrapped("", ", ".join(counts), width), *_wrapped("", ", ".join(filter(None, where)), width)]


def _modules(machine: Machine) -> str | None:
    """'16 memory modules, 4800 MT/s'."""
    rates = sorted({module.rate for module in machine.memory_modules if module.rate})
    said = f", {' and '.join(f'{rate / 1e6:.0f}' for rate in rates)} MT/s" if rates else ""
    return f"{_count(len(machine.memory_modules), 'memory module')}{said}" if machine.memory_modules else None


def _cpu_counts(machine: Machine) -> str:
    cpu = machine.cpu
    named = ((cpu.packages, "package"), (cpu.cores, "core"), (cpu.threads, "thread"))
    said = ", ".join(_count(number, word) for number, word in named if number)
    return f"({said})" if said else ""


def _gpu_rows(machine: Machine) -> list[list[str]]:
    if not machine.gpus:
        return []
    heads = ["GPU", "name", "address", "node", "memory", "BAR1", "own link", "could be", "state", "power", "used by"]
    return [heads, *(_gpu_row(machine, gpu) for gpu in machine.gpus)]


def _gpu_row(machine: Machine, gpu: Gpu) -> list[str]:
    path = path_to_root(machine, gpu.address) if gpu.address else None
    hop = path.hops[0] if path and path.hops else None
    possible = hop.possible if hop and hop.possible.known else gpu.link_max
    return [
        str(gpu.index),
        gpu.name.removeprefix("NVIDIA "),
        gpu.address or "–",
        _or_dash(gpu.numa_node),
        _gibibytes(gpu.memory_bytes),
        format_bytes(gpu.bar1_bytes) if gpu.bar1_bytes else "–",
        str(hop.now if hop else gpu.link),
        str(possible),
        "–" if gpu.performance_state is None else f"P{gpu.performance_state}",
        _watts(gpu),
        "–" if gpu.processes is None else str(gpu.processes),
    ]


def _watts(gpu: Gpu) -> str:
    """Power drawn and, where it is known, allowed: '78 of 700 W'."""
    if gpu.power_w is None:
        return "–"
    limit = f" of {gpu.power_limit_w:.0f}" if gpu.power_limit_w else ""
    return f"{gpu.power_w:.0f}{limit} W"


def _pairs(machine: Machine) -> list[str]:
    """Pairs that are alike share a line: 'PIX, P2P OK: GPU pairs 0-1 and 2-3'."""
    groups: dict[str, list[GpuPair]] = {}
    for pair in machine.pairs:
        groups.setdefault(_pair_text(machine, pair), []).append(pair)
    return [printable(f"{text}: {pair_names(pairs, len(machine.pairs))}") for text, pairs in groups.items()]


def _pair_text(machine: Machine, pair: GpuPair) -> str:
    nvlink = _nvlink_text(machine, pair) if pair.nvlinks else None
    topology = pair.topology or pair.topology_nvml or "topology not known"
    statuses = (("read", pair.p2p_read), ("write", pair.p2p_write), ("atomics", pair.p2p_atomics))
    said = {status or "not known" for _, status in statuses}
    words = said.pop() if len(said) == 1 else ", ".join(f"{name} {status or 'not known'}" for name, status in statuses)
    return ", ".join(filter(None, (nvlink, topology, f"P2P {words}")))


def _nvlink_text(machine: Machine, pair: GpuPair) -> str:
    """'NV12 of 18 possible, version 4': possible are all links that either GPU has, active or not."""
    links = [gpu.nvlinks for index in (pair.first, pair.second) if (gpu := machine.gpu(index)) and gpu.nvlinks]
    versions = sorted({link.version for found in links for link in found if link.version is not None and link.active})
    most = min((len(found) for found in links), default=None)
    possible = f" of {most} possible" if most else ""
    return f"NV{pair.nvlinks}{possible}" + (f", version {'/'.join(map(str, versions))}" if versions else "")


def _node_rows(machine: Machine) -> list[list[str]]:
    heads = ["NUMA node", "CPUs", "cores", "memory", "free", "distances", "package", "GPUs"]
    return [heads, *(_node_row(machine, node) for node in machine.nodes)] if machine.nodes else []


def _node_row(machine: Machine, node: NumaNode) -> list[str]:
    near = [gpu.index for gpu in machine.gpus if gpu.numa_node == node.index]
    return [
        str(node.index),
        ranges(node.cpus) or "none",
        str(len(node.cores)),
        _gibibytes(node.memory_bytes),
        _gibibytes(node.free_bytes),
        " ".join(map(str, node.distances)) or "–",
        ", ".join(map(str, node.packages)) or "–",
        ranges(near) or "–",
    ]


def _software(machine: Machine) -> str:
    software = machine.software
    said = {
        "driver": software.driver,
        "CUDA of the driver": software.cuda_driver,
        "torch": software.torch,
        "CUDA of torch": software.torch_cuda,
        "cupy": software.cupy,
        "CUDA of cupy": software.cupy_cuda,
        "NCCL": software.nccl,
        "kernel": software.kernel,
        "Python": software.python,
    }
    return ", ".join(f"{name} {version}" for name, version in said.items() if version) or "nothing is known"


def _settings(machine: Machine, width: int) -> list[str]:
    """What was set for the kernel and for this process, where anything was."""
    facts = machine.environment
    variables = " ".join(f"{name}={value}" for name, value in facts.variables)
    said = {"Kernel options: ": facts.kernel_command_line, "Variables: ": variables}
    return [line for mark, text in said.items() if text for line in _wrapped(mark, text, width)]


def _tree_line(line: Line, colour: bool, width: int) -> str:
    """The tree's line with its link at the right of the text, coloured by state."""
    name = printable(line.text)
    if line.state is None:
        return _cut(name, width)
    label = _link_label(line.now, line.possible)
    room = max(20, min(64, width - len(label) - 2))
    text = _cut(name, room).ljust(room)
    return f"{text}  {coloured(label, line.state) if colour else label}"


def _link_label(now: LinkState, possible: LinkState) -> str:
    return f"{now} of {possible}" if possible.known and now != possible else str(now)


def _table(rows: Sequence[Sequence[str]]) -> list[str]:
    rows = [[printable(cell) for cell in row] for row in rows]
    widths = [max(len(cell) for cell in column) for column in zip(*rows, strict=True)] if rows else []
    return ["  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)).rstrip() for row in rows]


def _fitting(rows: list[list[str]], least: Sequence[str], width: int) -> list[list[str]]:
    """Without the columns that matter least, until the rest fits."""
    for name in least:
        lines = _table(rows)
        if not lines or max(map(len, lines)) <= width:
            break
        place = rows[0].index(name)
        rows = [row[:place] + row[place + 1 :] for row in rows]
    return rows


def _wrapped(mark: str, text: str, width: int) -> list[str]:
    return list(_fill(mark, clean(text).split(), width))


def _fill(mark: str, words: list[str], width: int) -> Iterator[str]:
    line, indent = mark, " " * len(mark)
    for word in words:
        if len(line) + len(word) > width and line.strip() != mark.strip():
            yield line.rstrip()
            line = indent
        line += word + " "
    if line.strip():
        yield line.rstrip()


def _cut(line: str, width: int) -> str:
    visible = line if "\033" not in line else ""
    return line if len(visible) <= width else line[: width - 1] + "…"


def _gibibytes(size: int | None) -> str:
    return "–" if size is None else f"{size / GIB:.1f} GiB"


def _or_dash(value: int | None) -> str:
    return "–" if value is None else str(value)


def _count(number: int, word: str) -> str:
    return f"{number} {word}{'' if number == 1 else 's'}"
