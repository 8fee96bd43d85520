"""Bytes, seconds and bytes per second as text. Nothing else in the project knows prefixes.

Inside the project every quantity is in base units: bytes, seconds, bytes per second, GT/s per lane.
Sizes use binary prefixes (MiB = 2**20 bytes), rates decimal ones (GB/s = 1e9 bytes per second).
"""

from __future__ import annotations

import re

KIB = 1 << 10
MIB = 1 << 20
GIB = 1 << 30
GB = 1e9

_SIZE_UNITS = {"": 1, "B": 1, "KIB": KIB, "MIB": MIB, "GIB": GIB}
_SIZE = re.compile(r"(\d+)\s*([A-Za-z]*)")


def parse_bytes(text: str) -> int:
    """'8', '4KiB', '64MiB' or '1GiB' in bytes. Raises ValueError with the allowed forms."""
    match = _SIZE.fullmatch(text.strip())
    unit = match[2].upper() if match else "?"
    if match is None or unit not in _SIZE_UNITS:
        raise ValueError(f"{text!r} is not a size: write 8, 4KiB, 64MiB or 1GiB")
    size = int(match[1]) * _SIZE_UNITS[unit]
    if size <= 0:
        raise ValueError(f"{text!r} is not a size: it must be at least 1 byte")
    return size


def parse_sizes(text: str) -> tuple[int, ...]:
    """'8..64MiB' (every power-of-two multiple of 8 up to 64 MiB) and '10KiB,1MiB' lists, ascending, in bytes.

    Raises ValueError with one sentence that says what is allowed.
    """
    sizes: set[int] = set()
    for part in text.split(","):
        low, dots, high = part.partition("..")
        first = parse_bytes(low)
        last = parse_bytes(high) if dots else first
        if last < first:
            raise ValueError(f"{part!r} is empty: the first size must not be above the last one")
        while first <= last:
            sizes.add(first)
            first *= 2
    return tuple(sorted(sizes))


def format_bytes(size: int) -> str:
    """Bytes in the largest binary unit that divides them: '64MiB', '10KiB', '8B'. Reads back with parse_bytes."""
    for unit, scale in (("GiB", GIB), ("MiB", MIB), ("KiB", KIB)):
        if size >= scale and size % scale == 0:
            return f"{size // scale}{unit}"
    return f"{size}B"


def format_bandwidth(bytes_per_second: float | None) -> str:
    """Bytes per second as '55.3 GB/s' or '812 MB/s'; '–' where it is not known."""
    if bytes_per_second is None:
        return "–"
    for unit, scale in (("GB/s", 1e9), ("MB/s", 1e6), ("kB/s", 1e3)):
        if bytes_per_second >= scale:
            return f"{_three_digits(bytes_per_second / scale)} {unit}"
    return f"{bytes_per_second:.3g} B/s"


def format_gigabytes(bytes_per_second: float | None) -> str:
    """The number alone, for a column headed GB/s: '55.3', '0.812', '0.0004', '<0.0001'; '–' where it is not known."""
    if bytes_per_second is None:
        return "–"
    value = bytes_per_second / GB
    if value >= 1:
        return _three_digits(value)
    if value < 0.0001:
        return "<0.0001"
    return f"{value:.3f}" if value >= 0.01 else f"{value:.4f}"


def format_seconds(seconds: float | None) -> str:
    """Seconds as '1.18 µs', '4.50 ms' or '2.00 s'; '–' where it is not known."""
    if seconds is None:
        return "–"
    for unit, scale in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= scale:
            return f"{_three_digits(seconds / scale)} {unit}"
    return f"{seconds * 1e9:.0f} ns"


def format_percent(fraction: float | None) -> str:
    """0.953 as '95 %'; '–' where it is not known."""
    return "–" if fraction is None else f"{fraction * 100:.0f} %"


def _three_digits(value: float) -> str:
    if value >= 99.95:
        return f"{value:.0f}"
    return f"{value:.1f}" if value >= 9.995 else f"{value:.2f}"
