"""NUMA nodes and processors, with the oddities of real machines."""

from __future__ import annotations

from pathlib import Path

from suite.probe import numa
from suite.probe.tree import Tree, cpu_list
from suite.records.machine import NumaNode, PciFunction
from tests.probe import trees

GIB = 1 << 30


def nodes(root: Path, files: trees.Files) -> tuple[NumaNode, ...]:
    return numa.nodes(Tree(trees.write(root, files)), (), ())


def test_nodes_have_cpus_cores_memory_distances_and_packages(tmp_path: Path) -> None:
    files = trees.node(0, "0-1,4-5", distance="10 21") | trees.node(1, "2-3,6-7", distance="21 10")
    for index in range(8):
        core = index % 4
        files |= trees.cpu(index, package=core // 2, siblings=f"{core},{core + 4}")
    first, second = nodes(tmp_path, files)
    assert first.cpus == (0, 1, 4, 5)
    assert first.cores == ((0, 4), (1, 5))
    assert (first.memory_bytes, first.free_bytes) == (GIB, 1 << 20)
    assert (second.distances, second.packages) == ((21, 10), (1,))


def test_a_node_without_cpus_and_a_node_without_memory_are_kept(tmp_path: Path) -> None:
    found = nodes(tmp_path, trees.node(0, "0-1", kilobytes=0) | trees.node(1, ""))
    assert [(n.cpus, n.memory_bytes) for n in found] == [((0, 1), 0), ((), GIB)]


def test_gpu_memory_as_a_node_is_named_by_the_driver(tmp_path: Path) -> None:
    files = trees.node(0, "0-1") | trees.node(252, "")
    files["proc/driver/nvidia/gpus/0004:04:00.0/numa_status"] = "Node:\t\t252\nStatus:\tonline\n"
    assert [n.gpu for n in nodes(tmp_path, files)] == [None, "0004:04:00.0"]


def test_offline_nodes_are_left_out(tmp_path: Path) -> None:
    files = trees.node(0, "0") | trees.node(1, "1") | {"sys/devices/system/node/online": "0\n"}
    assert [n.index for n in nodes(tmp_path, files)] == [0]


def test_a_machine_without_a_node_folder_has_one_node_with_the_cpus_it_may_use(tmp_path: Path) -> None:
    tree = Tree(trees.write(tmp_path, {"proc/meminfo": "MemTotal: 2048 kB\n", "sys/devices/system/cpu/online": "0-3"}))
    (only,) = numa.nodes(tree, (), (1, 2))
    assert (only.index, only.cpus, only.memory_bytes) == (0, (1, 2), 2 << 20)
    assert numa.nodes(tree, (), ())[0].cpus == (0, 1, 2, 3)


def test_without_a_node_folder_the_nodes_that_pci_names_are_taken(tmp_path: Path) -> None:
    functions = [
        PciFunction("0000:20:00.0", numa_node=0, local_cpus=(0, 1)),
        PciFunction("0000:80:00.0", numa_node=1, local_cpus=(2, 3)),
    ]
    found = numa.nodes(Tree(trees.write(tmp_path, {"sys/x": ""})), functions, ())
    assert [(n.index, n.cpus, n.memory_bytes) for n in found] == [(0, (0, 1), None), (1, (2, 3), None)]


def test_last_level_caches_are_counted_once_each(tmp_path: Path) -> None:
    files: trees.Files = {"sys/devices/system/cpu/online": "0-3", "sys/devices/system/cpu/present": "0-4"}
    files |= {"sys/devices/system/cpu/offline": "4-1023"}
    for index in range(4):
        shared = "0-1" if index < 2 else "2-3"
        files |= trees.cpu(index, package=index // 2, cache="32768K", shared=shared)
    cpu = numa.cpu(Tree(trees.write(tmp_path, files)))
    assert (cpu.last_level_cache_bytes, cpu.cache_bytes) == (32 << 20, 64 << 20)
    assert (cpu.packages, cpu.cores, cpu.threads, cpu.offline) == (2, 4, 4, (4,))


def test_the_model_is_read_on_x86_and_derived_on_arm(tmp_path: Path) -> None:
    intel = {"proc/cpuinfo": "processor : 0\nvendor_id : GenuineIntel\nmodel name : Xeon  6 \n\nprocessor : 1\n"}
    arm = {"proc/cpuinfo": "processor\t: 0\nCPU implementer\t: 0x41\nCPU part\t: 0xd4f\n"}
    strange = {"proc/cpuinfo": "processor : 0\nCPU implementer : ?\nCPU part : 1\n"}
    models = [numa.cpu(Tree(trees.write(tmp_path / str(i), f))).model for i, f in enumerate((intel, arm, strange))]
    assert models == ["Xeon 6", "Arm Neoverse V2", None]


def test_lists_of_cpus_parse_or_are_unknown() -> None:
    assert cpu_list("0-3,8\n") == (0, 1, 2, 3, 8)
    assert cpu_list("") == ()
    assert [cpu_list(t) for t in ("3-1", "a", "0-99999999", "-1", None)] == [None] * 5
