"""The whole machine from a recorded tree."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from suite.errors import ProbeError
from suite.probe import machine
from suite.probe.nvml import Answers
from suite.records.machine import Gpu, GpuPair, LinkState
from suite.records.path import path_to_root, slowest_hop
from tests.probe import trees

FIELD = Path(__file__).resolve().parents[3] / "shared" / "field-data"


def two_sockets() -> trees.Files:
    """A GPU on each of two NUMA nodes; the second one's root port is on a bus that firmware gives no node."""
    files = trees.node(0, "0-1", distance="10 21") | trees.node(1, "2-3", distance="21 10")
    for index in range(4):
        files |= trees.cpu(index, package=index // 2)
    files |= trees.gpu("pci0000:00/0000:00:01.0/0000:01:00.0", numa_node="0", local_cpulist="0-1")
    files |= trees.gpu("pci0000:80/0000:80:01.0/0000:81:00.0", numa_node="-1", local_cpulist="2-3")
    return files


def nvml(**more: object) -> str:
    cards = (Gpu(0, "card", "0000:01:00.0"), Gpu(1, "card", "0000:81:00.0"))
    pairs = (GpuPair(0, 1, topology_nvml="SYS", p2p_read="OK", p2p_write="OK"),)
    return msgspec.json.encode(Answers(driver="580.1", gpus=cards, pairs=pairs, complete=True, **more)).decode()  # type: ignore[arg-type]


def test_gpus_pairs_and_nodes_are_joined(tmp_path: Path) -> None:
    found = machine.read(trees.write(tmp_path, two_sockets() | {"nvml.json": nvml()}))
    assert [g.numa_node for g in found.gpus] == [0, 1]
    assert found.pairs == (GpuPair(0, 1, "SYS", "SYS", "OK", "OK", None, 0),)
    assert (found.software.driver, found.why_no_gpu, found.notes) == ("580.1", None, ())
    function = found.function("0000:01:00.0")
    assert function is not None
    assert function.name == "card"


def test_a_recorded_tree_never_asks_the_live_nvml(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def forbidden(_: float) -> Answers:
        raise AssertionError("NVML was asked")

    monkeypatch.setattr(machine.gpus, "ask", forbidden)
    found = machine.read(trees.write(tmp_path, two_sockets()))
    assert found.gpus == ()
    assert "only sysfs" in (found.why_no_gpu or "")


def test_incomplete_answers_and_gpus_that_one_side_misses_are_noted(tmp_path: Path) -> None:
    answers = Answers(
        gpus=(Gpu(0, "card", "0000:99:00.0"),), problem="timeout", problem_text="within 10 s", complete=True
    )
    tree = trees.write(tmp_path, two_sockets() | {"nvml.json": msgspec.json.encode(answers)})
    notes = " ".join(machine.read(tree).notes)
    assert "not complete (within 10 s)" in notes
    assert "0000:99:00.0) is not in sysfs" in notes
    assert "0000:01:00.0 is in sysfs, but the driver does not show it" in notes


def test_gpu_memory_that_nvml_names_marks_its_node(tmp_path: Path) -> None:
    files = two_sockets() | trees.node(2, "") | {"nvml.json": nvml(numa_nodes=((1, 2),))}
    assert [n.gpu for n in machine.read(trees.write(tmp_path, files)).nodes] == [None, None, "0000:81:00.0"]


@pytest.mark.parametrize("text", ["", "{", "[]", '{"gpus": 3}', '{"gpus": [{"index": 0}]}', "[" * 100_000, "\udcff"])
def test_damaged_answers_are_one_sentence(tmp_path: Path, text: str) -> None:
    data = text.encode("utf-8", "surrogateescape")
    tree = trees.write(tmp_path, two_sockets() | {"nvml.json": data})
    with pytest.raises(ProbeError, match=r"nvml\.json cannot be read"):
        machine.read(tree)


def test_a_recording_of_a_later_schema_is_refused(tmp_path: Path) -> None:
    tree = trees.write(tmp_path, two_sockets() | {"process.json": '{"schema": 2}'})
    with pytest.raises(ProbeError, match="schema 2"):
        machine.read(tree)


def test_a_folder_without_sys_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ProbeError, match="sys/"):
        machine.read(tmp_path)


def test_this_machine_reads_and_imports_nothing_heavy() -> None:
    code = (
        "import sys; from suite.probe import machine; m = machine.read(nvml=False); assert m.nodes and m.cpu.threads;"
        "print([n for n in ('torch', 'cupy', 'numpy', 'pynvml') if n in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.strip() == "[]"


@pytest.mark.skipif(not FIELD.is_dir(), reason="the field data are not beside this checkout")
class TestRecordedMachines:
    """Real trees: hwloc's, and an emulated machine's."""

    def test_two_switches_with_eight_accelerators_hang_on_node_0(self) -> None:
        from suite.probe import recording

        found = recording.load(FIELD / "hwloc" / "32intel64-2p8co2t+8ve.tar.bz2").machine
        cards = [f for f in found.pci if f.class_code == 0x0B4000]
        assert len(cards) == 8
        assert {f.numa_node for f in cards} == {0}
        assert len({tuple(f.address for f in found.ancestors(c.address))[2] for c in cards}) == 2
        (hop, *_) = path_to_root(found, "0000:60:00.0").hops
        assert (hop.now, hop.lower_max, hop.upper_max) == (LinkState(2.5, 1), LinkState(8.0, 1), LinkState(2.5, 1))

    def test_a_domain_of_32_bits_is_read(self) -> None:
        from suite.probe import recording

        found = recording.load(FIELD / "hwloc" / "2pa-pcidomain32bits.tar.bz2").machine
        assert any(f.address.startswith("10000:") and f.root_bus == "pci10000:00" for f in found.pci)

    def test_the_emulated_machine_has_right_nodes_and_links_below_their_ports(self) -> None:
        from suite.probe import recording

        found = recording.load(FIELD / "qemu" / "sysfs-2-nodes.tgz").machine
        assert [n.cpus for n in found.nodes] == [(0, 1), (2, 3)]
        path = path_to_root(found, "0000:83:00.0")
        assert [(h.lower, h.upper) for h in path.hops] == [
            ("0000:83:00.0", "0000:82:00.0"),
            ("0000:81:00.0", "0000:80:00.0"),
        ]
        (hop,) = path_to_root(found, "0000:21:00.0").hops
        assert (hop.now, hop.upper_max) == (LinkState(2.5, 1), LinkState(16.0, 16))
        slow = slowest_hop(path)
        assert slow is not None
        assert slow.now == LinkState(2.5, 1)
