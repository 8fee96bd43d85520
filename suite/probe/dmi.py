"""Memory modules from the board's firmware tables, which root may read. Layout: DMTF's SMBIOS specification (DSP0134),
§6 (structures) and §7.18 (Memory Device, type 17). Strings are skipped: they hold serial numbers."""

from __future__ import annotations

from collections.abc import Iterator

from suite.probe.tree import Tree
from suite.records.machine import MemoryModule

TABLE = "sys/firmware/dmi/tables/DMI"
_MEMORY_DEVICE, _END = 17, 127
_MIB, _KIB = 1 << 20, 1 << 10


def memory_modules(tree: Tree) -> tuple[MemoryModule, ...]:
    """The modules that are fitted; () where the tables cannot be read or name none."""
    table = tree.data(TABLE, most=1 << 20) or b""
    found = (_module(body) for kind, body in structures(table) if kind == _MEMORY_DEVICE)
    return tuple(module for module in found if module is not None)


def structures(table: bytes) -> Iterator[tuple[int, bytes]]:
    """(type, formatted part) of every structure. Ends at what is damaged."""
    place = 0
    while place + 4 <= len(table):
        kind, length = table[place], table[place + 1]
        if length < 4 or place + length > len(table) or kind == _END:
            return
        yield kind, table[place : place + length]
        after = table.find(b"\0\0", place + length)  # the strings end with an empty one
        if after < 0:
            return
        place = after + 2


def _module(body: bytes) -> MemoryModule | None:
    size = _size(body)
    if size == 0:  # an empty slot
        return None
    speed = _speed(body, 0x20, 0x58) or _speed(body, 0x15, 0x54)
    width = _number(body, 0x0A, 2)
    return MemoryModule(size, speed * 1e6 if speed else None, width if width and width < 0xFFFF else None)


def _size(body: bytes) -> int | None:
    """Bytes; 0 for an empty slot, None where it is not known."""
    size = _number(body, 0x0C, 2)
    if size is None or size == 0xFFFF:
        return None
    if size == 0x7FFF:  # too large for 15 bits: in MiB further on
        extended = _number(body, 0x1C, 4)
        return (extended & 0x7FFFFFFF) * _MIB if extended else None
    return (size & 0x7FFF) * (_KIB if size & 0x8000 else _MIB)


def _speed(body: bytes, place: int, extended: int) -> int | None:
    """Million transfers a second; 0xFFFF sends to a wider field, 0 is unknown."""
    speed = _number(body, place, 2)
    return _number(body, extended, 4) if speed == 0xFFFF else speed or None


def _number(body: bytes, place: int, size: int) -> int | None:
    """A little-endian number; None where an older table ends before it."""
    return int.from_bytes(body[place : place + size], "little") if place + size <= len(body) else None
