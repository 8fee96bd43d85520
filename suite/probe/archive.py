"""Packs and unpacks a recording. An archive may come from anyone: all is checked before it touches the disk.

Links of sysfs must survive: a link is kept where it is relative and resolves inside the tree; anything else is refused.
"""

from __future__ import annotations

import bz2
import gzip
import io
import os
import posixpath
import tarfile
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import IO, cast

from suite.errors import ProbeError
from suite.probe.snapshot import Content, Link

# A recording of ours holds some hundred small files; hwloc's hold about 7,000. Generous, and far from a disk's size.
MOST_MEMBERS = 100_000
MOST_BYTES = 256 << 20  # unpacked, headers and padding included
MOST_FILE_BYTES = 16 << 20
MOST_NAME = 1024  # characters of a path
MOST_DEPTH = 40  # folders below each other; a PCI path below several switches has about 15

_MAGIC = (b"\x1f\x8b", b"BZ")


class _Bounded(io.RawIOBase):
    """A decompressed stream that ends in a ProbeError before it has given more than MOST_BYTES."""

    def __init__(self, source: IO[bytes], name: str) -> None:
        self._source, self._name, self._left = source, name, MOST_BYTES

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        wanted = self._left + 1 if size < 0 else size
        if wanted > self._left + 1:
            raise ProbeError(f"{self._name} claims to hold more than {MOST_BYTES >> 20} MiB: it is no recording")
        data = self._source.read(wanted)
        self._left -= len(data)
        if self._left < 0:
            raise ProbeError(f"{self._name} unpacks to more than {MOST_BYTES >> 20} MiB: it is no recording")
        return data


def unpack(path: Path, folder: Path) -> None:
    """Unpacks a .tar.gz or .tar.bz2 into an empty folder. Raises ProbeError, one sentence, for what it refuses."""
    try:
        with path.open("rb") as raw, _decompressed(raw, path.name) as source:
            _unpack(cast("IO[bytes]", _Bounded(source, path.name)), folder, path.name)
    except ProbeError:
        raise
    except (OSError, EOFError, zlib.error, tarfile.TarError, ValueError, OverflowError, RecursionError) as error:
        raise ProbeError(f"{path.name} cannot be unpacked ({error}): record it again with lanecheck record") from error


def pack(content: Mapping[str, Content], path: Path) -> None:
    """Writes a new .tar.gz whose bytes depend on the content alone: no owner, no times. Raises ProbeError."""
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with unfinished.open("xb") as raw, gzip.GzipFile("", "wb", fileobj=raw, mtime=0) as packed:
            _pack(content, cast("IO[bytes]", packed))
        unfinished.replace(path)
    except OSError as error:
        unfinished.unlink(missing_ok=True)
        raise ProbeError(f"{path} cannot be written: {error.strerror}") from error


def is_archive(start: bytes) -> bool:
    """Whether a file that starts like this is a compressed archive."""
    return start[:2] in _MAGIC


def _decompressed(raw: IO[bytes], name: str) -> IO[bytes]:
    start = raw.read(2)
    raw.seek(0)
    if not is_archive(start):
        raise ProbeError(f"{name} is neither a .tar.gz nor a .tar.bz2 archive")
    return cast("IO[bytes]", gzip.open(raw) if start == _MAGIC[0] else bz2.open(raw))


def _pack(content: Mapping[str, Content], packed: IO[bytes]) -> None:
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for name, data in content.items():
            member = tarfile.TarInfo(name)
            if isinstance(data, Link):
                member.type, member.linkname = tarfile.SYMTYPE, data.to
                tar.addfile(member)
            else:
                member.size = len(data)
                tar.addfile(member, io.BytesIO(data))


def _unpack(source: IO[bytes], folder: Path, archive: str) -> None:
    links: list[tuple[Path, str]] = []
    with tarfile.open(fileobj=source, mode="r|", errorlevel=2) as tar:
        for member in _checked(tar, archive):
            target = folder / _name(member.name, archive)
            if member.isdir():
                target.mkdir(parents=True, exist_ok=True)
            elif member.issym():
                links.append((target, member.linkname))
            else:
                _write(tar, member, target, archive)
    # Links come last, so that no file is ever written through one.
    for target, to in links:
        _link(folder, target, to, archive)
    for target, to in links:
        _stays_inside(folder, target, to, archive)


def _checked(tar: tarfile.TarFile, archive: str) -> Iterator[tarfile.TarInfo]:
    for count, member in enumerate(tar):
        if count >= MOST_MEMBERS:
            raise ProbeError(f"{archive} holds more than {MOST_MEMBERS} entries: it is no recording")
        if not (member.isreg() or member.isdir() or member.issym()):
            raise ProbeError(
                f"{archive} holds {_shown(member.name)}, which is no file, folder or symbolic link: refused"
            )
        if member.size > MOST_FILE_BYTES or member.issparse():
            raise ProbeError(f"{archive} holds {_shown(member.name)}, which is larger than any file of sysfs: refused")
        yield member


def _name(name: str, archive: str) -> str:
    """A member's path below the folder; refuses whatever could lie elsewhere."""
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts or "\0" in name:
        raise ProbeError(f"{archive} holds the path {_shown(name)}, which leads out of it: refused")
    if len(name) > MOST_NAME or len(path.parts) > MOST_DEPTH or any(len(p.encode()) > 255 for p in path.parts):
        raise ProbeError(f"{archive} holds the path {_shown(name)}, which is longer than any of sysfs: refused")
    return str(path)


def _write(tar: tarfile.TarFile, member: tarfile.TarInfo, target: Path, archive: str) -> None:
    content = tar.extractfile(member)
    if content is None:
        raise ProbeError(f"{archive} holds {_shown(member.name)}, which cannot be read: refused")
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(content.read())


def _link(folder: Path, target: Path, to: str, archive: str) -> None:
    place = target.parent.relative_to(folder).as_posix()
    lexical = posixpath.normpath(posixpath.join(place, to))
    if not to or "\0" in to or len(to) > MOST_NAME or posixpath.isabs(to) or lexical.startswith(".."):
        raise _outside(target, to, archive)
    target.parent.mkdir(parents=True, exist_ok=True)
    if not target.is_symlink() and not target.exists():
        target.symlink_to(to)


def _stays_inside(folder: Path, target: Path, to: str, archive: str) -> None:
    """A path through other links may lead elsewhere than its letters say, so where it really leads is looked at."""
    if not Path(os.path.realpath(target)).is_relative_to(os.path.realpath(folder)):
        raise _outside(target, to, archive)


def _outside(target: Path, to: str, archive: str) -> ProbeError:
    return ProbeError(f"{archive} holds the link {_shown(target.name)} to {_shown(to)}, which leads out of it: refused")


def _shown(name: str) -> str:
    """A name that is safe to print and short."""
    return repr(name if len(name) <= 80 else name[:77] + "...")
