"""NUMA nodes and processors as sysfs shows them, with the oddities of real machines: nodes without CPUs or memory,
GPU memory as nodes, offline CPUs, machines without a node folder."""

from __future__ import annotations

import re
from collections.abc import Iterable

from suite.probe.pci import normal_address
from suite.probe.tree import Tree
from suite.records.machine import Cpu, NumaNode, PciFunction

NODES = "sys/devices/system/node"
CPUS = "sys/devices/system/cpu"
_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
# /proc/cpuinfo's implementer and part of Arm server cores: Linux' arch/arm64/include/asm/cputype.h.
_ARM_CORES = {(0x41, 0xD0C): "Arm Neoverse N1", (0x41, 0xD40): "Arm Neoverse V1", (0x41, 0xD49): "Arm Neoverse N2"}
_ARM_CORES |= {(0x41, 0xD4F): "Arm Neoverse V2", (0xC0, 0xAC3): "Ampere-1"}


def nodes(tree: Tree, functions: Iterable[PciFunction], allowed: tuple[int, ...]) -> tuple[NumaNode, ...]:
    """Every online node, by index. Without a node folder: the nodes that PCI functions name, else one node 0 with the
    CPUs that this process may use."""
    online = tree.cpus(f"{NODES}/online")
    gpu_memory = _gpu_memory(tree)
    cores: dict[int, tuple[int, ...]] = {}
    found = [
        _node(tree, folder, index, cores, gpu_memory.get(index))
        for index, folder in tree.numbered(NODES, "node")
        if online is None or index in online
    ]
    return tuple(found) or _without_folder(tree, functions, allowed)


def cpu(tree: Tree) -> Cpu:
    """The processors: model, counts of what is online, and the last-level cache."""
    threads = online_cpus(tree)
    info = _first_processor(tree.text("proc/cpuinfo"))
    cores = {_siblings(tree, index) for index in threads}
    packages = {p for index in threads if (p := _package(tree, index)) is not None}
    caches = _last_level_caches(tree, threads)
    return Cpu(
        model=_model(info),
        vendor=info.get("vendor_id") or ("Arm" if info.get("CPU implementer") == "0x41" else None),
        packages=len(packages) or None,
        cores=len(cores) or None,
        threads=len(threads) or None,
        offline=_offline(tree),
        last_level_cache_bytes=max(caches) if caches else None,
        cache_bytes=sum(caches) if caches else None,
    )


def online_cpus(tree: Tree) -> tuple[int, ...]:
    """CPUs that are online: sysfs' list, else /proc/cpuinfo's processors."""
    listed = tree.cpus(f"{CPUS}/online")
    if listed:
        return listed
    numbers = re.findall(r"^processor\s*:\s*(\d{1,6})$", tree.text("proc/cpuinfo") or "", re.MULTILINE | re.ASCII)
    return tuple(sorted({int(n) for n in numbers}))


def memory(text: str | None, what: str) -> int | None:
    """Bytes of 'MemTotal' or 'MemFree' from a node's or the machine's meminfo; None where it is not there."""
    match = re.search(rf"\b{what}:\s*(\d{{1,18}}) kB", text or "", re.ASCII)
    return int(match[1]) << 10 if match else None


def _node(tree: Tree, folder: str, index: int, cores: dict[int, tuple[int, ...]], gpu: str | None) -> NumaNode:
    cpus = tree.cpus(f"{folder}/cpulist") or ()
    info = tree.text(f"{folder}/meminfo")
    distances = (tree.text(f"{folder}/distance") or "").split()
    return NumaNode(
        index=index,
        cpus=cpus,
        cores=_cores(tree, cpus, cores),
        memory_bytes=memory(info, "MemTotal"),
        free_bytes=memory(info, "MemFree"),
        distances=tuple(int(d) for d in distances) if all(re.fullmatch(r"[0-9]{1,9}", d) for d in distances) else (),
        packages=_packages(tree, cpus),
        gpu=gpu,
    )


def _without_folder(tree: Tree, functions: Iterable[PciFunction], allowed: tuple[int, ...]) -> tuple[NumaNode, ...]:
    local: dict[int, set[int]] = {}
    for function in functions:
        if function.numa_node is not None:
            local.setdefault(function.numa_node, set()).update(function.local_cpus)
    if len(local) > 1:
        return tuple(_bare(tree, index, tuple(sorted(cpus)), None) for index, cpus in sorted(local.items()))
    return (_bare(tree, 0, allowed or online_cpus(tree), tree.text("proc/meminfo")),)


def _bare(tree: Tree, index: int, cpus: tuple[int, ...], info: str | None) -> NumaNode:
    return NumaNode(
        index=index,
        cpus=cpus,
        cores=_cores(tree, cpus, {}),
        memory_bytes=memory(info, "MemTotal"),
        free_bytes=memory(info, "MemFree"),
        packages=_packages(tree, cpus),
    )


def _cores(tree: Tree, cpus: tuple[int, ...], known: dict[int, tuple[int, ...]]) -> tuple[tuple[int, ...], ...]:
    """The CPUs grouped by physical core, in the order of their first CPU."""
    for index in cpus:
        if index not in known:
            known |= dict.fromkeys(siblings := _siblings(tree, index), siblings)
    groups = dict.fromkeys(tuple(c for c in known.get(index, (index,)) if c in cpus) for index in cpus)
    return tuple(groups)


def _siblings(tree: Tree, index: int) -> tuple[int, ...]:
    """The CPUs of one physical core, this one among them."""
    folder = f"{CPUS}/cpu{index}/topology"
    listed = tree.cpus(f"{folder}/thread_siblings_list") or tree.cpus(f"{folder}/core_cpus_list")
    return listed if listed and index in listed else (index,)


def _packages(tree: Tree, cpus: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(sorted({p for index in cpus if (p := _package(tree, index)) is not None}))


def _package(tree: Tree, index: int) -> int | None:
    """The physical package; some Arm firmware says −1 for 'not known'."""
    package = tree.number(f"{CPUS}/cpu{index}/topology/physical_package_id")
    return package if package is not None and package >= 0 else None


def _offline(tree: Tree) -> tuple[int, ...]:
    """CPUs that are there but switched off. sysfs' `offline` also lists numbers that no CPU has."""
    present = tree.cpus(f"{CPUS}/present")
    return tuple(c for c in tree.cpus(f"{CPUS}/offline") or () if present is None or c in present)


def _last_level_caches(tree: Tree, cpus: tuple[int, ...]) -> list[int]:
    """Bytes of each last-level cache."""
    sizes: list[int] = []
    covered: set[int] = set()
    for index in cpus:
        if index in covered:
            continue
        covered.add(index)
        size, shared = _last_level(tree, f"{CPUS}/cpu{index}/cache")
        covered.update(shared)
        if size is not None:
            sizes.append(size)
    return sizes


def _last_level(tree: Tree, folder: str) -> tuple[int | None, tuple[int, ...]]:
    """(bytes, CPUs that share it) of the highest cache level."""
    levels = [(tree.number(f"{entry}/level") or 0, entry) for _, entry in tree.numbered(folder, "index")]
    if not levels:
        return None, ()
    entry = max(levels)[1]
    match = re.fullmatch(r"(\d{1,12})([KMG]?)", tree.text(f"{entry}/size") or "", re.ASCII)
    shared = tree.cpus(f"{entry}/shared_cpu_list") or ()
    return (int(match[1]) * _UNITS[match[2]] if match else None), shared


def _first_processor(text: str | None) -> dict[str, str]:
    """The fields of /proc/cpuinfo's first processor."""
    fields: dict[str, str] = {}
    for line in (text or "").splitlines():
        name, _, value = (part.strip() for part in line.partition(":"))
        if name:
            fields.setdefault(name, value)
    return fields


def _model(info: dict[str, str]) -> str | None:
    named = info.get("model name") or info.get("cpu")
    if named:
        return " ".join(named.split())
    try:
        return _ARM_CORES.get((int(info["CPU implementer"], 16), int(info["CPU part"], 16)))
    except (KeyError, ValueError):
        return None


def _gpu_memory(tree: Tree) -> dict[int, str]:
    """NUMA node → GPU whose memory it is, as NVIDIA's driver says it on coherent machines (Grace, POWER9)."""
    found: dict[int, str] = {}
    for name in tree.names("proc/driver/nvidia/gpus"):
        status = tree.text(f"proc/driver/nvidia/gpus/{name}/numa_status") or ""
        match = re.search(r"^Node:\s*(\d{1,6})$", status, re.MULTILINE | re.ASCII)
        address = normal_address(name)
        if match and address:
            found[int(match[1])] = address
    return found
