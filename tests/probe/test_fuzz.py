"""No input makes a traceback: readers answer, or raise ProbeError with one sentence."""

from __future__ import annotations

import gzip
import io
import tarfile
import tempfile
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from suite.errors import ProbeError
from suite.probe import config_space, environment, gpus, machine, nvml, pci, recording, snapshot
from suite.probe.nvml import Answers
from suite.probe.tree import Tree, cpu_list, whole_number
from suite.records.machine import Machine
from suite.report.machine import render
from tests.probe import trees
from tests.probe.fake_nvml import FakeNvml, two_gpus
from tests.probe.test_machine import two_sockets

# Texts like sysfs', damaged: numbers, units, lists and arbitrary bytes.
SYSFS = st.one_of(
    st.binary(max_size=40),
    st.from_regex(r"-?[0-9]{0,25}(,|-|0x|\.)?[0-9a-f]{0,20}\n?", fullmatch=True).map(str.encode),
    st.from_regex(r"[0-9.]{0,6} ?GT/s( PCIe)?(/s)?", fullmatch=True).map(str.encode),
    st.sampled_from([b"", b"\n", b"\xff", b"-1", b"255", b"Unknown", b"0-\n", "٣".encode(), "²".encode()]),
)
SLOW = settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)


def refusal(read: Callable[[], object]) -> str:
    """What a reader says against its input; empty where it takes it."""
    try:
        read()
    except ProbeError as error:
        return str(error)
    return ""


@given(st.binary(max_size=4200))
def test_configuration_space_never_fails(data: bytes) -> None:
    config_space.parse(data)
    config_space.status_bits(data)
    assert len(snapshot.clean_config(data)) == len(data)


@given(st.lists(st.tuples(st.integers(0, 4095), st.integers(0, 255)), max_size=30))
def test_damaged_configuration_space_never_fails_and_stays_damaged_alike_when_cleaned(
    changes: list[tuple[int, int]],
) -> None:
    data = bytearray(trees.config_space(acs=4, rebar=True, serial=b"12345678"))
    for place, value in changes:
        data[place] = value
    found = config_space.parse(bytes(data))
    assert config_space.parse(snapshot.clean_config(bytes(data))).pcie == found.pcie


@given(st.text(max_size=60))
def test_texts_parse_or_are_unknown(text: str) -> None:
    for parser in (
        pci.link_speed,
        pci.link_width,
        pci.normal_address,
        pci.aer_total,
        pci.aer_replays,
        cpu_list,
        whole_number,
    ):
        parser(text)
    environment.options(text)
    environment.variables({"NCCL_X": text})


CARD = "sys/devices/pci0000:00/0000:00:01.0/0000:01:00.0"
FILES = sorted(
    (
        two_sockets()
        | {f"proc/{n}": "" for n in ("cpuinfo", "meminfo", "cmdline", "self/status", "driver/nvidia/version")}
        | {f"sys/devices/system/cpu/{n}": "" for n in ("online", "offline", "present")}
        | {f"{CARD}/{n}": "" for n in ("config", "aer_dev_fatal", "aer_dev_correctable", "class", "net/x/speed")}
        | {f"{CARD}/infiniband/y/ports/1/{n}": "" for n in ("rate", "state")}
        | {"sys/firmware/dmi/tables/DMI": "", "sys/firmware/acpi/tables/FACP": ""}
        | {"sys/devices/system/clocksource/clocksource0/available_clocksource": "", "sys/hypervisor/type": ""}
        | {"sys/devices/system/node/online": "", "sys/devices/system/cpu/cpu0/cache/index3/size": ""}
    ).items()
)


@SLOW
@given(st.dictionaries(st.sampled_from([n for n, _ in FILES if not n.endswith("@")]), SYSFS, max_size=12))
def test_damaged_trees_are_read_and_shown(changes: dict[str, bytes]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        found = machine.read(trees.write(Path(folder), dict(FILES) | changes))
    assert render(found, width=80)
    assert msgspec.json.decode(msgspec.json.encode(found), type=Machine) == found


@SLOW
@given(st.dictionaries(st.sampled_from(["nvml.json", "process.json"]), st.binary(max_size=60), min_size=1))
def test_damaged_answers_are_one_sentence(changes: dict[str, bytes]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        tree = trees.write(Path(folder), two_sockets() | changes)
        with pytest.raises(ProbeError, match="cannot be read"):
            machine.read(tree)


@given(st.binary(max_size=200))
def test_what_the_child_says_never_fails(output: bytes) -> None:
    assert isinstance(gpus.last_answers(output), Answers)


def json_values() -> st.SearchStrategy[object]:
    leaves = st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats(allow_nan=False) | st.text(max_size=8)
    names = st.sampled_from(["machine", "gpus", "nodes", "pci", "index", "name", "link", "cpus", "faults", "kind"])
    return st.recursive(
        leaves, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=4), max_leaves=12
    )


@given(json_values())
def test_any_json_is_a_machine_or_one_sentence(value: object) -> None:
    assert "\n" not in refusal(lambda: recording.described(msgspec.json.encode(value), "m.json"))


@given(st.binary(max_size=300))
def test_any_file_is_a_machine_or_one_sentence(data: bytes) -> None:
    with tempfile.NamedTemporaryFile() as file:
        for start in (b"", b"\x1f\x8b\x08", b"BZh9"):
            Path(file.name).write_bytes(start + data)
            with pytest.raises(ProbeError):
                recording.load(Path(file.name))


@SLOW
@given(
    st.lists(
        st.tuples(
            st.text(max_size=12), st.sampled_from(b"0123456LKgxS7"), st.text(max_size=12), st.binary(max_size=30)
        ),
        max_size=6,
    )
)
def test_any_archive_is_a_machine_or_one_sentence_and_leaves_nothing(
    members: list[tuple[str, int, str, bytes]],
) -> None:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", errors="surrogateescape") as tar:
        for name, kind, to, data in [("sys/x", ord("0"), "", b""), *members]:
            member = tarfile.TarInfo(f"sys/{name}")
            member.type, member.linkname, member.size = bytes([kind]), to, len(data)
            try:
                tar.addfile(member, io.BytesIO(data))
            except (ValueError, UnicodeError):
                continue
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.tar.gz"
        path.write_bytes(gzip.compress(buffer.getvalue(), 1))
        assert "\n" not in refusal(lambda: recording.load(path))
        assert [p.name for p in Path(folder).iterdir()] == ["a.tar.gz"]


@given(st.dictionaries(st.sampled_from(sorted(two_gpus().calls)), st.none() | st.integers() | st.text() | st.binary()))
def test_any_answer_of_nvml_is_taken_or_unknown(changes: dict[str, object]) -> None:
    calls = two_gpus().calls | changes | {"DeviceGetCount": 2}
    for answers in nvml.read_with(FakeNvml(calls)):
        assert msgspec.json.decode(msgspec.json.encode(answers), type=Answers) == answers


def test_a_tree_of_nothing_but_folders_is_read(tmp_path: Path) -> None:
    for name, _ in FILES:
        (tmp_path / name.removesuffix("@")).mkdir(parents=True, exist_ok=True)
    assert render(machine.read(tmp_path))
    assert Tree(tmp_path).text("sys") is None
