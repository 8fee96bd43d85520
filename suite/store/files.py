"""Files that are whole or not there: written beside their place, synced, then renamed into it."""

from __future__ import annotations

import errno
import os
from pathlib import Path

from suite.errors import StoreError

# What to do about the errors that a disk gives; other errors are told in the system's own words.
_NEXT_STEP = {
    errno.ENOSPC: "free some space, or choose another folder with --report-dir",
    errno.EDQUOT: "free some of your quota, or choose another folder with --report-dir",
    errno.EACCES: "choose a folder that you may write to with --report-dir",
    errno.EPERM: "choose a folder that you may write to with --report-dir",
    errno.EROFS: "choose a folder that you may write to with --report-dir",
}


def write_atomic(path: Path, data: bytes) -> None:
    """Replaces a file in one step: after a crash at any moment the old or the new content is there, whole.

    Raises StoreError. What a killed writer leaves behind is a hidden `.NAME.PID.tmp` beside it.
    """
    beside = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        try:
            _write_synced(beside, data)
            beside.replace(path)
        finally:
            beside.unlink(missing_ok=True)
        sync_folder(path.parent)
    except OSError as error:
        raise cannot_write(path, error) from error


def new_folder(base: Path, stamp: str) -> Path:
    """Makes and returns base/stamp, or base/stamp-2, base/stamp-3, … where that is taken. Raises StoreError."""
    number = 1
    while True:
        folder = base / (stamp if number == 1 else f"{stamp}-{number}")
        try:
            folder.mkdir(parents=True)
            return folder
        except FileExistsError as error:
            if not folder.is_dir():  # a file is in the way: of the folder, or of one above it
                raise cannot_write(folder, error) from error
            number += 1
        except OSError as error:
            raise cannot_write(folder, error) from error


def write_all(descriptor: int, data: bytes) -> None:
    """Writes all of the data, however little the system takes at once. Raises OSError."""
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


def sync_folder(folder: Path) -> None:
    """Puts a rename in this folder on the disk. A file system that cannot sync folders has nothing to do here."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):
            raise
    finally:
        os.close(descriptor)


def cannot_write(path: Path, error: OSError) -> StoreError:
    """The sentence for a failed write."""
    reason = (error.strerror or str(error)).lower()
    return StoreError(
        f"cannot write {path} ({reason}): {_NEXT_STEP.get(error.errno or 0, 'choose another folder with --report-dir')}"
    )


def _write_synced(path: Path, data: bytes) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o666)
    try:
        write_all(descriptor, data)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
