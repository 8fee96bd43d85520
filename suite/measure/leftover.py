"""Temporary folders that a killed run leaves behind: named after their process, swept by a later run."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from pathlib import Path

_NAME = re.compile(r"lanecheck-pool-([0-9]{1,10})-([0-9]{1,20})-.+")


def new_folder() -> Path:
    """A fresh temporary folder of this process, after those of processes that are gone were removed."""
    base = Path(tempfile.gettempdir())
    sweep(base)
    return Path(tempfile.mkdtemp(prefix=f"lanecheck-pool-{os.getpid()}-{_pid_namespace()}-", dir=base))


def sweep(base: Path) -> None:
    """Removes this user's folders whose process is gone. A container that shares the temporary folder counts its
    processes on its own: folders of another PID namespace are left alone."""
    here = _pid_namespace()
    if not here:
        return
    for folder in base.glob("lanecheck-pool-*"):
        named = _NAME.fullmatch(folder.name)
        if named and int(named[2]) == here and _is_gone(int(named[1])) and _is_ours(folder):
            shutil.rmtree(folder, ignore_errors=True)  # a leftover that stays does no harm


def _is_gone(pid: int) -> bool:
    """Asked of the kernel: /proc may hide other users' processes."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except (PermissionError, OverflowError):
        return False
    return False


def _is_ours(folder: Path) -> bool:
    try:
        return folder.lstat().st_uid == os.getuid() and folder.is_dir() and not folder.is_symlink()
    except OSError:
        return False


def _pid_namespace() -> int:
    """Its inode; 0 where it cannot be read: then nothing is swept."""
    try:
        return Path("/proc/self/ns/pid").stat().st_ino
    except OSError:
        return 0
