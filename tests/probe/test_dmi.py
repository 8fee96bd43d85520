"""Memory modules from firmware tables made for the test."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from suite.probe import dmi, machine, recording
from suite.probe.tree import Tree
from suite.records.machine import MemoryModule
from tests.probe import trees

GIB = 1 << 30


def structure(kind: int, body: bytes, *strings: str) -> bytes:
    """One SMBIOS structure; body: what follows its header of 4 bytes."""
    texts = b"".join(text.encode() + b"\0" for text in strings) or b"\0"
    return struct.pack("<BBH", kind, len(body) + 4, 0) + body + texts + b"\0"


def module(
    size: int = 0x7FFF, extended: int = 32768, speed: int = 4800, configured: int = 4400, width: int = 64
) -> bytes:
    """A memory device of version 3.3: sizes in MiB, rates in million transfers a second."""
    body = bytearray(0x5C - 4)
    struct.pack_into("<HHH", body, 0x08 - 4, width + 8, width, size)
    struct.pack_into("<H", body, 0x15 - 4, speed)
    struct.pack_into("<I", body, 0x1C - 4, extended)
    struct.pack_into("<H", body, 0x20 - 4, configured)
    struct.pack_into("<II", body, 0x54 - 4, 70000, 66000)
    return structure(17, bytes(body), "DIMM_A1", "SERIAL123")


def read(tmp_path: Path, *structures: bytes) -> tuple[MemoryModule, ...]:
    return dmi.memory_modules(Tree(trees.write(tmp_path, {"sys/x": "", dmi.TABLE: b"".join(structures)})))


def test_modules_have_a_size_the_configured_rate_and_a_width(tmp_path: Path) -> None:
    board = structure(2, b"\1\2", "a vendor", "a board")
    assert read(tmp_path, board, module(), structure(127, b"")) == (MemoryModule(32 * GIB, 4400e6, 64),)


@pytest.mark.parametrize(
    ("made", "found"),
    [
        (module(size=16384), MemoryModule(16 * GIB, 4400e6, 64)),
        (module(size=0x8000 | 512), MemoryModule(512 << 10, 4400e6, 64)),
        (module(size=0xFFFF), MemoryModule(None, 4400e6, 64)),
        (module(configured=0), MemoryModule(32 * GIB, 4800e6, 64)),
        (module(configured=0, speed=0), MemoryModule(32 * GIB, None, 64)),
        (module(configured=0xFFFF), MemoryModule(32 * GIB, 66000e6, 64)),
    ],
)
def test_every_form_of_size_and_rate_is_read_or_unknown(tmp_path: Path, made: bytes, found: MemoryModule) -> None:
    assert read(tmp_path, made) == (found,)


def test_an_old_table_that_ends_after_the_size_has_no_rate(tmp_path: Path) -> None:
    old = structure(17, struct.pack("<HHHHH", 0, 0, 72, 64, 16384))
    assert read(tmp_path, old) == (MemoryModule(16 * GIB, None, 64),)


def test_an_empty_slot_is_no_module(tmp_path: Path) -> None:
    assert read(tmp_path, module(size=0), module()) == (MemoryModule(32 * GIB, 4400e6, 64),)


def test_a_table_that_may_not_be_read_tells_nothing(tmp_path: Path) -> None:
    assert dmi.memory_modules(Tree(trees.write(tmp_path, {"sys/x": ""}))) == ()


@given(st.binary(max_size=400))
def test_a_damaged_table_never_fails(data: bytes) -> None:
    for _, body in dmi.structures(data):
        assert dmi._module(body) is None or dmi._module(body)


def test_modules_are_recorded_without_the_table_and_its_serial_numbers(tmp_path: Path) -> None:
    root = trees.write(tmp_path / "root", {"sys/x": "", dmi.TABLE: module(), **trees.node(0, "0")})
    recording.record(tmp_path / "m.tar.gz", root=root, nvml=False)
    assert b"SERIAL" not in Path(tmp_path / "m.tar.gz").read_bytes()
    found = recording.load(tmp_path / "m.tar.gz").machine
    assert found.memory_modules == machine.read(root).memory_modules == (MemoryModule(32 * GIB, 4400e6, 64),)
