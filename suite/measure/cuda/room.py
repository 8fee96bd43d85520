"""Is there room for a host buffer? Asked before touching it: past a cgroup's limit the kernel would kill the worker."""

from __future__ import annotations

from pathlib import Path

from suite.errors import Unavailable
from suite.units import format_bytes

# What other programs and the page tables need is left alone.
FREE_FRACTION = 0.7


def need_host(nbytes: int, root: Path = Path("/")) -> None:
    """Raises Unavailable, naming the limit, where nbytes would not leave room for others."""
    for free, what, advice in (
        (available(root), "available on this machine", "end other programs"),
        (cgroup_free(root), "left by the container's memory limit", "raise the container's limit"),
    ):
        if free is not None and nbytes > FREE_FRACTION * free:
            raise Unavailable(
                f"needs {format_bytes(nbytes)} more of host memory and leaves a third of it to others, but only "
                f"{free / 2**30:.1f} GiB are {what}: {advice}, or measure smaller sizes with --sizes"
            )


def available(root: Path) -> int | None:
    """Bytes that can be had without swapping (MemAvailable in /proc/meminfo); None where it does not say."""
    for line in _text(root / "proc/meminfo").splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * 1024
    return None


def cgroup_free(root: Path) -> int | None:
    """Bytes below the least limit of this process' control group and those above; None where none is set.

    Memory of files that could be dropped (inactive_file) counts as free.
    """
    found = []
    for folder in _groups(root):
        limit = _number(folder / "memory.max") or _number(folder / "memory.limit_in_bytes")
        used = _number(folder / "memory.current") or _number(folder / "memory.usage_in_bytes")
        # Version 1 writes "no limit" as the largest multiple of the page size.
        if limit is not None and used is not None and limit < 1 << 60:
            found.append(limit - used + _reclaimable(folder))
    return min(found) if found else None


def _groups(root: Path) -> list[Path]:
    """The control group's folder and those above it, version 2 and version 1."""
    folders = []
    for line in _text(root / "proc/self/cgroup").splitlines():
        number, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if number == "0" and not controllers:
            base = root / "sys/fs/cgroup"
        elif "memory" in controllers.split(","):
            base = root / "sys/fs/cgroup/memory"
        else:
            continue
        group = base / path.lstrip("/")
        folders += [f for f in (group, *group.parents) if f == base or base in f.parents]
    return folders


def _reclaimable(folder: Path) -> int:
    for line in _text(folder / "memory.stat").splitlines():
        name, _, value = line.partition(" ")
        if name in ("inactive_file", "total_inactive_file") and value.strip().isdigit():
            return int(value)
    return 0


def _number(path: Path) -> int | None:
    text = _text(path).strip()
    return int(text) if text.isdigit() else None


def _text(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""
