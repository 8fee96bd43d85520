"""Recordings: what they hold, what they leave out, and what is refused when they are read."""

from __future__ import annotations

import bz2
import gzip
import io
import os
import tarfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from suite.errors import ProbeError
from suite.probe import archive, config_space, machine, recording, snapshot
from suite.probe.tree import Tree
from suite.records.machine import Gpu, Machine
from suite.records.scenario import Scenario
from tests.probe import trees
from tests.probe.test_machine import nvml, two_sockets


def test_a_recorded_machine_reads_back_the_same(tmp_path: Path) -> None:
    files = two_sockets() | {"nvml.json": nvml()}
    files |= trees.function(
        "pci0000:00/0000:00:01.0", now="16.0 GT/s PCIe x16", config=trees.config_space(port=4, acs=4, rebar=True)
    )
    files["sys/devices/pci0000:00/0000:00:01.0/driver@"] = "../../../bus/pci/drivers/pcieport"
    files["sys/devices/pci0000:00/0000:00:01.0/iommu_group@"] = "../../../kernel/iommu_groups/7"
    files["sys/class/dmi/id/board_name"] = "H13"
    root = trees.write(tmp_path / "machine", files)
    path = tmp_path / "a.tar.gz"
    recording.record(path, root=root)
    before, after = machine.read(root), recording.load(path).machine
    assert after == before
    function = after.function("0000:00:01.0")
    assert function is not None
    assert (function.driver, function.iommu_group, after.environment.board) == ("pcieport", "7", "H13")


def test_this_machine_records_and_reads_back(tmp_path: Path) -> None:
    path = tmp_path / "here.tar.gz"
    recording.record(path, nvml=False)
    here, back = machine.read(nvml=False), recording.load(path).machine
    same = ("cpu", "pci", "software", "environment", "gpus")
    assert [getattr(back, n) for n in same] == [getattr(here, n) for n in same]
    without = [replace(n, free_bytes=None) for n in here.nodes]
    assert [replace(n, free_bytes=None) for n in back.nodes] == without


def test_the_same_machine_gives_the_same_bytes(tmp_path: Path) -> None:
    root = trees.write(tmp_path / "machine", two_sockets() | {"nvml.json": nvml()})
    for name in ("a.tar.gz", "b.tar.gz"):
        recording.record(tmp_path / name, root=root)
    assert (tmp_path / "a.tar.gz").read_bytes() == (tmp_path / "b.tar.gz").read_bytes()


def test_serial_numbers_addresses_and_names_stay_behind(tmp_path: Path) -> None:
    secret = b"\xde\xad\xbe\xef\xde\xad\xbe\xef"
    files = two_sockets()
    place = "sys/devices/pci0000:00/0000:00:01.0/0000:01:00.0"
    files |= {f"{place}/config": trees.config_space(serial=secret, acs=4), f"{place}/vpd": "SECRET"}
    files |= {f"{place}/net/eth0/address": "SECRET", "proc/cmdline": "root=UUID=SECRET iommu=pt"}
    files |= {"proc/cpuinfo": "processor : 0\nmodel name : x\nSerial : SECRET\n", "proc/self/status": "Name: SECRET\n"}
    files |= {"sys/class/dmi/id/product_serial": "SECRET", "proc/sys/kernel/hostname": "SECRET"}
    root = trees.write(tmp_path / "machine", files)
    path = tmp_path / "a.tar.gz"
    recording.record(path, root=root)
    data = gzip.decompress(path.read_bytes())
    assert b"SECRET" not in data
    assert secret not in data
    assert b"iommu=pt" in data


def test_a_cleaned_configuration_space_says_the_same() -> None:
    whole = trees.config_space(serial=b"\x01" * 8, acs=0x1D, rebar=True, flit=True, status_bits=2)
    cleaned = snapshot.clean_config(whole)
    assert config_space.parse(cleaned) == config_space.parse(whole)
    assert cleaned != whole


def test_the_rates_of_adapters_are_recorded_without_the_names_of_their_ports(tmp_path: Path) -> None:
    place = "pci0000:00/0000:00:01.0"
    port = f"sys/devices/{place}/infiniband/mlx5_site/ports/1"
    files = trees.function(place, class_="0x020700") | {
        f"sys/devices/{place}/net/oob_site/speed": "1000\n",
        f"sys/devices/{place}/net/oob_site/address": "aa:bb:cc:dd:ee:ff\n",
        f"{port}/rate": "200 Gb/sec (4X HDR)\n",
        f"{port}/state": "4: ACTIVE\n",
    }
    recording.record(tmp_path / "m.tar.gz", root=trees.write(tmp_path / "root", files), nvml=False)
    with tarfile.open(tmp_path / "m.tar.gz") as tar:
        assert not [name for name in tar.getnames() if "site" in name or name.endswith("/net/port0/address")]
    (found,) = recording.load(tmp_path / "m.tar.gz").machine.pci
    assert found.network_rate == 25e9


def test_a_recording_is_never_written_over(tmp_path: Path) -> None:
    path = trees.write(tmp_path, {"a.tar.gz": "kept"}) / "a.tar.gz"
    with pytest.raises(ProbeError, match="there already"):
        recording.record(path, root=tmp_path)
    with pytest.raises(ProbeError, match=r"\.tar\.gz"):
        recording.record(tmp_path / "a.zip", root=tmp_path)
    assert path.read_text() == "kept"


def test_a_place_that_cannot_be_written_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(ProbeError, match="cannot be written"):
        recording.record(tmp_path / "absent" / "a.tar.gz", root=trees.write(tmp_path / "m", two_sockets()))


Member = Callable[[tarfile.TarFile], None]


def add(name: str, data: bytes = b"", kind: bytes = tarfile.REGTYPE, to: str = "") -> Member:
    def to_tar(tar: tarfile.TarFile) -> None:
        member = tarfile.TarInfo(name)
        member.type, member.linkname, member.size = kind, to, len(data)
        tar.addfile(member, io.BytesIO(data))

    return to_tar


def packed(path: Path, *members: Member) -> Path:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for member in members:
            member(tar)
    path.write_bytes(gzip.compress(buffer.getvalue()))
    return path


@pytest.mark.parametrize(
    ("members", "words"),
    [
        ([add("/etc/passwd")], "leads out"),
        ([add("sys/../../x")], "leads out"),
        ([add("sys/x", kind=tarfile.SYMTYPE, to="/etc")], "leads out"),
        ([add("sys/x", kind=tarfile.SYMTYPE, to="../../x")], "leads out"),
        ([add("sys/x", kind=tarfile.SYMTYPE, to="")], "leads out"),
        (
            [
                add("d1/d2/a", kind=tarfile.SYMTYPE, to="../.."),
                add("sys/c", kind=tarfile.SYMTYPE, to="../d1/d2/a/../x"),
            ],
            "leads out",
        ),
        ([add("sys/hard", kind=tarfile.LNKTYPE, to="proc/x")], "no file, folder or symbolic link"),
        ([add("sys/null", kind=tarfile.CHRTYPE)], "no file, folder or symbolic link"),
        ([add("sys/pipe", kind=tarfile.FIFOTYPE)], "no file, folder or symbolic link"),
        ([add("sys/" + "x/" * 60 + "y")], "longer than any"),
        ([add("sys/" + "x" * 300)], "longer than any"),
        ([add("sys/big", b"\0" * (archive.MOST_FILE_BYTES + 1))], "larger than any"),
        ([add("proc/x")], "holds no machine"),
        ([add("sys", b"a file"), add("sys/x", b"")], "cannot be unpacked"),
    ],
)
def test_hostile_archives_are_refused_in_one_sentence(tmp_path: Path, members: list[Member], words: str) -> None:
    outside = set(tmp_path.parent.iterdir())
    with pytest.raises(ProbeError, match=words) as error:
        recording.load(packed(tmp_path / "hostile.tar.gz", *members))
    assert "\n" not in str(error.value)
    assert len(str(error.value)) < 300
    assert set(tmp_path.parent.iterdir()) == outside


def test_a_file_is_never_written_through_a_link(tmp_path: Path) -> None:
    victim = trees.write(tmp_path, {"victim/x": "kept"}) / "victim"
    path = packed(
        tmp_path / "a.tar.gz", add("sys/link", kind=tarfile.SYMTYPE, to=str(victim)), add("sys/link/x", b"overwritten")
    )
    with pytest.raises(ProbeError):
        recording.load(path)
    assert (victim / "x").read_text() == "kept"


def test_bombs_end_before_they_fill_memory_or_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive, "MOST_BYTES", 1 << 20)
    many = [add(f"sys/{i}", b"\0" * 65_536) for i in range(40)]
    with pytest.raises(ProbeError, match="more than"):
        recording.load(packed(tmp_path / "bytes.tar.gz", *many))
    monkeypatch.setattr(archive, "MOST_MEMBERS", 10)
    with pytest.raises(ProbeError, match="more than 10 entries"):
        recording.load(packed(tmp_path / "count.tar.gz", *[add(f"sys/{i}") for i in range(11)]))


def test_a_header_that_claims_gigabytes_is_refused_unread(tmp_path: Path) -> None:
    header = tarfile.TarInfo("sys/pax")
    header.type, header.size = tarfile.XHDTYPE, 8 << 30
    path = tmp_path / "pax.tar.gz"
    path.write_bytes(gzip.compress(header.tobuf() + b"\0" * 1024))
    with pytest.raises(ProbeError):
        recording.load(path)


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress])
def test_torn_archives_are_one_sentence(tmp_path: Path, pack: Callable[[bytes], bytes]) -> None:
    whole = gzip.decompress(packed(tmp_path / "a.tar.gz", add("sys/bus/x", os.urandom(20_000))).read_bytes())
    for size in (3, 20, 200, 4000):
        path = tmp_path / f"torn{size}"
        path.write_bytes(pack(whole)[:size])
        with pytest.raises(ProbeError):
            recording.load(path)


def test_links_of_sysfs_survive_also_when_they_point_to_what_was_not_recorded(tmp_path: Path) -> None:
    path = packed(
        tmp_path / "a.tar.gz",
        add("m/sys/devices/pci0000:00/0000:00:01.0/vendor", b"0x10de"),
        add("m/sys/devices/pci0000:00/0000:00:01.0/driver", kind=tarfile.SYMTYPE, to="../../../bus/pci/drivers/nvidia"),
        add("m/sys/bus/pci/devices/0000:00:01.0", kind=tarfile.SYMTYPE, to="../../../devices/pci0000:00/0000:00:01.0"),
    )
    (function,) = recording.load(path).machine.pci
    assert (function.vendor_id, function.driver, function.root_bus) == (0x10DE, "nvidia", "pci0000:00")


def test_a_machine_and_a_scenario_load_from_json(tmp_path: Path) -> None:
    scenario = Scenario(Machine(gpus=(Gpu(0, "x"),)), noise=0.02, title="t")
    for name, record in (("s.json", scenario), ("m.json", scenario.machine)):
        (tmp_path / name).write_bytes(msgspec.json.encode(record))
    assert recording.load(tmp_path / "s.json") == scenario
    assert recording.load(tmp_path / "m.json") == Scenario(scenario.machine)


def test_a_scenario_without_a_title_gets_its_file_s_name_and_a_recording_none(tmp_path: Path) -> None:
    (tmp_path / "rack.json").write_bytes(msgspec.json.encode(Scenario(Machine())))
    (tmp_path / "m.json").write_bytes(msgspec.json.encode(Machine()))
    assert recording.load(tmp_path / "rack.json").title == "rack"
    assert recording.load(tmp_path / "m.json").title is None


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("nonsense", "neither a recording nor JSON"),
        ("[1]", "describes no machine"),
        ("{}", "describes no machine"),
        ('{"gpus": [{"index": 0, "name": "x", "adress": "y"}]}', r"not known: gpus\[0\]\.adress"),
        ('{"machine": {"nodes": []}, "fault": []}', "not known: fault"),
        ('{"machine": {"nodes": [{"index": "a"}]}}', "nodes"),
        ("[" * 100_000, "neither"),
    ],
)
def test_json_that_describes_no_machine_is_refused_with_the_place(tmp_path: Path, text: str, words: str) -> None:
    path = trees.write(tmp_path, {"m.json": text}) / "m.json"
    with pytest.raises(ProbeError, match=words):
        recording.load(path)


def test_what_is_not_there_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(ProbeError, match=r"there is no .*absent: name a folder"):
        recording.load(tmp_path / "absent")
    with pytest.raises(ProbeError, match="is no folder"):
        recording.load_tree(tmp_path / "absent")
    with pytest.raises(ProbeError, match="holds no machine"):
        recording.load(tmp_path)


def test_a_snapshot_of_a_tree_stays_inside_it(tmp_path: Path) -> None:
    secret = trees.write(tmp_path / "outside", {"x": "SECRET"})
    tree = trees.write(tmp_path / "tree", {"proc/meminfo@": str(secret / "x"), "sys/x": ""})
    assert b"SECRET" not in repr(snapshot.take(Tree(tree))).encode()


def test_a_file_that_is_not_there_is_told_with_those_beside_it(tmp_path: Path) -> None:
    (tmp_path / "mine.json").touch()
    (tmp_path / "notes.txt").touch()
    with pytest.raises(ProbeError, match=r"there is no .*/mime\.json: .*there is mine\.json\)"):
        recording.load(tmp_path / "mime.json")
    with pytest.raises(ProbeError, match=r"there is no .*: name .* or a JSON file$"):
        recording.load(tmp_path / "no" / "mime.json")
