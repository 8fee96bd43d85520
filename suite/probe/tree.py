"""A machine's files below a root: `/` for this machine, a folder with `sys/` and `proc/` for a recorded one.

Nothing here raises for what a machine does not have: a file that is absent, unreadable or not a plain file is None.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator
from pathlib import Path

# Longest plausible file: /proc/cpuinfo of a machine with some thousand CPUs.
LONGEST = 8 << 20
# Linux's own bound on the number of CPUs is 8192 (CONFIG_NR_CPUS); a list that names more is damaged.
MOST_CPUS = 1 << 16

_RANGE = re.compile(r"(\d{1,9})(?:-(\d{1,9}))?")


class Tree:
    """Files below a root. A recorded tree is never left: a link that points out of it reads as absent."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._real = Path(os.path.realpath(root))
        self.live = self._real == Path("/")

    def path(self, name: str) -> Path | None:
        """Where a name such as 'sys/bus/pci' really lies, links followed; None where that is outside the root."""
        try:
            real = Path(os.path.realpath(self.root / name, strict=True))
        except (OSError, ValueError):  # absent, a loop of links, a NUL in the name
            return None
        return real if self.live or real.is_relative_to(self._real) else None

    def data(self, name: str, most: int = LONGEST) -> bytes | None:
        """A plain file's bytes, at most `most` of them; None where it cannot be read."""
        path = self.path(name)
        return None if path is None else read_plain(path, most)

    def text(self, name: str) -> str | None:
        """A file's text without surrounding white space; None where it cannot be read or is empty."""
        data = self.data(name)
        return None if data is None else data.decode("utf-8", "replace").replace("\0", " ").strip() or None

    def number(self, name: str) -> int | None:
        """A file's whole number ('0x10de', '-1'); None where there is none."""
        return whole_number(self.text(name))

    def cpus(self, name: str) -> tuple[int, ...] | None:
        """A file's list of CPUs or nodes ('0-3,8'); None where there is none or it is damaged."""
        data = self.data(name)
        return None if data is None else cpu_list(data.decode("utf-8", "replace"))

    def target(self, name: str) -> str | None:
        """The last part of where a link points, also where a recording does not hold that place."""
        try:
            return (self.root / name).readlink().name or None
        except (OSError, ValueError):
            return None

    def names(self, name: str) -> list[str]:
        """What a folder holds, sorted; nothing where it is absent."""
        path = self.path(name)
        try:
            return sorted(entry.name for entry in path.iterdir()) if path is not None else []
        except OSError:
            return []

    def numbered(self, name: str, prefix: str) -> Iterator[tuple[int, str]]:
        """The entries `prefix`N of a folder, by N: (N, name below the root)."""
        found = [(int(n[len(prefix) :]), n) for n in self.names(name) if re.fullmatch(prefix + r"\d{1,6}", n)]
        for index, entry in sorted(found):
            yield index, f"{name}/{entry}"

    def below(self, path: Path) -> str:
        """A real path as a name below the root."""
        return str(path.relative_to("/" if self.live else self._real))


def read_plain(path: Path, most: int = LONGEST) -> bytes | None:
    """A plain file's bytes; None where it is absent, refused or something else (a pipe would block for ever)."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (OSError, ValueError):
        return None
    try:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            return None
        return _read_all(handle, most)
    except OSError:  # sysfs answers EINVAL, EIO or ENODEV where a device does not say
        return None
    finally:
        os.close(handle)


def _read_all(handle: int, most: int) -> bytes:
    parts: list[bytes] = []
    while most > 0 and (part := os.read(handle, min(most, 1 << 16))):
        parts.append(part)
        most -= len(part)
    return b"".join(parts)


def whole_number(text: str | None) -> int | None:
    """'0x10de' or '-1' as a number; None for anything else."""
    if text is None or not re.fullmatch(r"-?(0[xX][0-9a-fA-F]{1,16}|[0-9]{1,18})", text, re.ASCII):
        return None
    return int(text, 16) if "x" in text.lower() else int(text)


def cpu_list(text: str | None) -> tuple[int, ...] | None:
    """'0-3,8' as (0, 1, 2, 3, 8), an empty text as (); None where it is no list of CPUs."""
    if text is None:
        return None
    found: set[int] = set()
    for part in filter(None, text.strip().split(",")):
        match = _RANGE.fullmatch(part.strip())
        if match is None:
            return None
        first, last = int(match[1]), int(match[2] or match[1])
        if last >= MOST_CPUS or last < first:
            return None
        found.update(range(first, last + 1))
    return tuple(sorted(found))
