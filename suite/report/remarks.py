"""What a person should know about a machine before measuring it: one sentence a remark, worst first.

Nothing here is a verdict: links are judged under load, and an idle link may run slow to save power.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from suite.records import p2p
from suite.records.machine import Gpu, GpuPair, Hop, LinkState, Machine, NumaNode, PciFunction
from suite.records.path import path_to_root, slowest_hop
from suite.units import GIB, MIB, format_bytes

# Reasons for lower clocks that hold back nothing: the GPU idles or drives a display.
_HARMLESS = ("idle", "display clocks")


def remarks(machine: Machine) -> list[str]:
    """All remarks, without repetition."""
    found = [
        *([machine.why_no_gpu] if machine.why_no_gpu and not machine.gpus else []),
        *machine.notes,
        *_links(machine),
        *_errors(machine),
        *_gpus(machine),
        *_pairs(machine),
        *_numa(machine),
        *_host(machine),
        *_needs_root(machine),
    ]
    return list(dict.fromkeys(found))


def devices(machine: Machine) -> list[PciFunction]:
    """The functions whose path matters: GPUs, accelerators and network adapters; without GPUs whatever has a link."""
    gpus = {gpu.address for gpu in machine.gpus}
    return [
        f for f in machine.pci if not f.is_bridge and (f.address in gpus or (has_link(f) and _matters(f, bool(gpus))))
    ]


def _matters(function: PciFunction, beside_gpus: bool) -> bool:
    """PCI classes: network 0x02, display 0x03, processors 0x0b, accelerators 0x12."""
    code = function.class_code
    return not beside_gpus or code is None or code >> 16 in (0x02, 0x03, 0x0B, 0x12)


def has_link(function: PciFunction) -> bool:
    """Anything at all is known of its link."""
    states = (function.link, function.link_max)
    return any(s.speed_gts is not None or s.width is not None for s in states)


def title(machine: Machine, address: str) -> str:
    """'GPU 0' for a GPU, else the address."""
    return next((f"GPU {g.index}" for g in machine.gpus if g.address == address), address)


def titles(machine: Machine, addresses: Sequence[str]) -> str:
    """'GPU 0-3, 0000:11:00.0 and 0000:41:00.0'."""
    gpus = {g.address: g.index for g in machine.gpus}
    indices = [gpus[address] for address in addresses if address in gpus]
    named = [f"GPU {ranges(indices)}"] if indices else []
    return listed([*named, *(address for address in addresses if address not in gpus)])


def listed(names: Iterable[object]) -> str:
    """'a, b and c'."""
    words = [str(name) for name in names]
    return " and ".join(filter(None, (", ".join(words[:-1]), words[-1]))) if words else ""


def pair_names(pairs: Sequence[GpuPair], everyone: int) -> str:
    """'every GPU pair', '0-1 and 2-3', or for many '16 pairs between GPUs 0-3 and 4-7'."""
    if len(pairs) == everyone > 1:
        return "every GPU pair"
    if len(pairs) <= 4:
        return f"GPU pair{'s' if len(pairs) > 1 else ''} {listed(f'{p.first}-{p.second}' for p in pairs)}"
    firsts, seconds = {p.first for p in pairs}, {p.second for p in pairs}
    between = f"{ranges(firsts)} and {ranges(seconds)}" if not firsts & seconds else ranges(firsts | seconds)
    return f"{len(pairs)} pairs {'between' if not firsts & seconds else 'among'} GPUs {between}"


def ranges(numbers: Iterable[int]) -> str:
    """(0, 1, 2, 5) as '0-2,5'."""
    parts: list[list[int]] = []
    for number in sorted(set(numbers)):
        if parts and parts[-1][1] == number - 1:
            parts[-1][1] = number
        else:
            parts.append([number, number])
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in parts)


def _links(machine: Machine) -> Iterator[str]:
    paths = [path_to_root(machine, f.address) for f in devices(machine)]
    alike: dict[str, list[str]] = {}
    for hop in {hop.lower: hop for path in paths for hop in path.hops}.values():
        for sentence in _hop_remarks(hop):
            alike.setdefault(sentence, []).append(hop.lower)
    for sentence, who in alike.items():
        yield f"{titles(machine, who)}: {sentence}"
    yield from _targets(machine)
    for gpu in machine.gpus:
        yield from _path_remarks(machine, gpu)


def _hop_remarks(hop: Hop) -> Iterator[str]:
    """What is odd about one link: below what both ends can do, or ends that differ."""
    now, possible, upper = hop.now, hop.possible, hop.upper_max
    if now.width is not None and possible.width is not None and now.width < possible.width:
        yield f"the link runs x{now.width} of x{possible.width}: slot wiring, bifurcation, or a fault."
    if now.speed_gts is not None and possible.speed_gts is not None and now.speed_gts < possible.speed_gts:
        yield f"the link runs Gen{now.gen} of Gen{possible.gen} as found; only a reading under load tells more."
    if hop.lower_max.known and upper.known and hop.lower_max != upper:
        wider = "reduced to what the device can do" if possible == hop.lower_max else "reduced to what both can do"
        what = "reduced to what the port can do" if possible == upper else wider
        yield f"device {hop.lower_max}, port {upper}: the link is {what}, {possible}."


def _targets(machine: Machine) -> Iterator[str]:
    """Ports whose target speed is set below what their link could do. The end that faces down decides (LnkCtl2)."""
    paths = [path_to_root(machine, f.address) for f in devices(machine)]
    for hop in {hop.lower: hop for path in paths for hop in path.hops}.values():
        config = port.config if (port := machine.function(hop.upper)) else None
        target, possible = config.target_speed_gts if config else None, hop.possible.speed_gts
        if target is not None and possible is not None and target < possible:
            yield (
                f"{title(machine, hop.lower)}: the port above, {hop.upper}, is set to train at Gen"
                f"{LinkState(target).gen} at most (LnkCtl2), Gen{hop.possible.gen} is possible."
            )


def _path_remarks(machine: Machine, gpu: Gpu) -> Iterator[str]:
    if gpu.address is None or machine.function(gpu.address) is None:
        return
    hop = slowest_hop(path_to_root(machine, gpu.address))
    if hop is None:
        yield f"GPU {gpu.index}: the link is not shown (virtual machines often hide it); its limit is not known."
    elif hop.lower != gpu.address:
        most = hop.possible if hop.possible.known else hop.now
        yield f"GPU {gpu.index}: the narrowest hop of its path is {hop.lower} below {hop.upper}, {most}."


def _errors(machine: Machine) -> Iterator[str]:
    for function in machine.pci:
        aer = function.aer
        counts = (aer.correctable, aer.nonfatal, aer.fatal) if aer else ()
        said = [f"{n} {word}" for n, word in zip(counts, ("correctable", "nonfatal", "fatal"), strict=False) if n]
        if aer and said:
            replays = f", {aer.replays} of them replays" if aer.replays else ""
            yield f"{title(machine, function.address)}: {listed(said)} PCIe errors counted since boot{replays}."


def _gpus(machine: Machine) -> Iterator[str]:
    alike: dict[str, list[int]] = {}
    for gpu in machine.gpus:
        for sentence in (*gpu.notes, *_gpu_remarks(gpu)):
            alike.setdefault(sentence, []).append(gpu.index)
    for sentence, who in alike.items():
        yield f"GPU {ranges(who)}: {sentence}"


def _gpu_remarks(gpu: Gpu) -> Iterator[str]:
    if gpu.bar1_bytes and gpu.memory_bytes and gpu.bar1_bytes <= 256 * MIB and gpu.memory_bytes > GIB:
        mapped, memory = format_bytes(gpu.bar1_bytes), f"{gpu.memory_bytes / GIB:.0f} GiB"
        yield (
            f"only {mapped} of {memory} are mapped (BAR1), which limits P2P and mappings: resizable BAR is a setting "
            "of the BIOS or VBIOS."
        )
    if gpu.nvlinks and not any(link.active for link in gpu.nvlinks):
        yield (
            f"{len(gpu.nvlinks)} NVLinks and none is active: no bridge is fitted (or, on SXM boards, the fabric "
            "manager does not run)."
        )
    if gpu.processes:
        yield f"used by {gpu.processes} process{'' if gpu.processes == 1 else 'es'}: measurements compete with that."
    if gpu.compute_mode == "prohibited":
        yield "compute mode is 'prohibited': nothing can run on it (nvidia-smi -c 0)."
    if gpu.mig:
        yield "MIG is on: fewer copy engines, no P2P."
    if gpu.c2c:
        yield "joined to its CPU by C2C: the PCIe model does not apply to host copies."
    yield from _held_back(gpu)


def _held_back(gpu: Gpu) -> Iterator[str]:
    """Limits that someone has set, and guests that share the GPU."""
    if gpu.power_limit_w and gpu.power_default_w and gpu.power_limit_w < gpu.power_default_w:
        yield f"its power limit is {gpu.power_limit_w:.0f} W, its default {gpu.power_default_w:.0f} W."
    held = [reason for reason in gpu.throttle or () if reason not in _HARMLESS]
    if held:
        yield f"its clocks are held down now: {listed(held)}."
    if gpu.virtualization in ("host_vgpu", "host_vsga"):
        yield "it serves virtual GPUs: what they do competes with measurements."
    if gpu.virtualization == "vgpu":
        yield "a virtual GPU: its link belongs to the host."


def _pairs(machine: Machine) -> Iterator[str]:
    groups: dict[str, list[GpuPair]] = {}
    for pair in machine.pairs:
        for sentence in _pair_remarks(machine, pair):
            groups.setdefault(sentence, []).append(pair)
    for sentence, pairs in groups.items():
        who = pair_names(pairs, len(machine.pairs))
        yield f"{who[0].upper()}{who[1:]}: {sentence}"


def _pair_remarks(machine: Machine, pair: GpuPair) -> Iterator[str]:
    if pair.topology and pair.topology_nvml and pair.topology != pair.topology_nvml:
        yield f"{pair.topology} by the PCI tree, {pair.topology_nvml} by NVML."
    if (pair.topology or pair.topology_nvml) == "SYS" and not pair.nvlinks:
        yield f"the path crosses {_crossing(machine, pair)}."
    statuses = {"read": pair.p2p_read, "write": pair.p2p_write}
    for status in dict.fromkeys(s for s in statuses.values() if s not in (None, "OK")):
        what = listed(name for name, found in statuses.items() if found == status)
        yield f"no P2P {what} ({status}): {p2p.meaning(status)}; copies are staged through host memory."
    if pair.p2p_atomics not in (None, "OK", *statuses.values()):
        yield f"no P2P atomics ({pair.p2p_atomics}): {p2p.meaning(pair.p2p_atomics)}."


def _crossing(machine: Machine, pair: GpuPair) -> str:
    """Different NUMA nodes are different sockets only where the package numbers differ."""
    nodes = [
        machine.node(gpu.numa_node) if gpu else None for gpu in (machine.gpu(pair.first), machine.gpu(pair.second))
    ]
    packages = [node.packages for node in nodes if node and node.packages]
    if len(packages) == 2 and not set(packages[0]) & set(packages[1]):
        return "sockets"
    return "NUMA nodes of one socket" if len(packages) == 2 else "NUMA nodes"


def _numa(machine: Machine) -> Iterator[str]:
    for function in devices(machine):
        if function.numa_basis == "local_cpulist" and len(machine.nodes) > 1:
            who = title(machine, function.address)
            yield f"{who}: firmware names no NUMA node; node {function.numa_node} follows from its local CPUs."
        elif function.numa_node is None and len(machine.nodes) > 1:
            yield f"{title(machine, function.address)}: neither firmware nor its local CPUs tell its NUMA node."
    yield from filter(None, map(_node_remark, machine.nodes))
    yield from _shared_packages(machine)


def _node_remark(node: NumaNode) -> str | None:
    if node.gpu:
        return f"NUMA node {node.index} is the memory of the GPU at {node.gpu}."
    if not node.cpus and not node.memory_bytes:
        return f"NUMA node {node.index} has neither CPUs nor memory."
    if not node.cpus:
        return f"NUMA node {node.index} has memory and no CPUs."
    return (
        f"NUMA node {node.index} has no memory: what runs there uses another node's."
        if node.memory_bytes == 0
        else None
    )


def _shared_packages(machine: Machine) -> Iterator[str]:
    by_package: dict[int, list[int]] = {}
    for node in machine.nodes:
        for package in node.packages:
            by_package.setdefault(package, []).append(node.index)
    for package, nodes in by_package.items():
        if len(nodes) > 1:
            yield f"Package {package} is split into NUMA nodes {listed(nodes)} (sub-NUMA clustering, NPS)."


def _host(machine: Machine) -> Iterator[str]:
    facts, cpu = machine.environment, machine.cpu
    if cpu.offline:
        yield f"{len(cpu.offline)} CPU(s) are offline."
    if facts.allowed_cpus and cpu.threads and len(facts.allowed_cpus) < cpu.threads:
        yield f"This process may use {len(facts.allowed_cpus)} of {cpu.threads} CPUs (cpuset or affinity)."
    hidden = [node.index for node in machine.nodes if facts.allowed_nodes and node.index not in facts.allowed_nodes]
    if hidden:
        yield f"This process may not use the memory of NUMA node {listed(hidden)} (cpuset)."
    if machine.gpus and facts.iommu and "DMA" in facts.iommu.split("-")[0]:
        yield f"The IOMMU translates (default domain {facts.iommu}): P2P may be slow or broken; iommu=pt avoids it."
    redirect = [f.address for f in machine.pci if f.config and f.config.acs_redirect]
    if len(machine.gpus) > 1 and redirect:
        yield f"ACS sends peer traffic up to the root complex at {listed(redirect)}: P2P below a switch is slow."


def _needs_root(machine: Machine) -> Iterator[str]:
    """What one run as root would settle."""
    paths = {f.address: f for device in devices(machine) for f in machine.ancestors(device.address)}
    hidden = [f for f in paths.values() if "needs root" in (f.config_note or "")]
    settle = "One `sudo lanecheck probe` settles them."
    if machine.environment.root:
        settle = "This root may not either (a container without CAP_SYS_ADMIN): run once on the host."
    if hidden:
        what = "MPS, MRRS, ACS, target speed, flit mode"
        yield f"Not readable without full rights for {len(hidden)} PCI function(s), needs root: {what}. {settle}"
    if machine.environment.root is False and not machine.memory_modules:
        yield f"Not readable without root: the number and rate of the memory modules. {settle}"
