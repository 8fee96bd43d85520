"""Temporary folders of killed runs are swept, and nobody else's."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from suite.measure import leftover


@pytest.fixture
def base(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    return tmp_path


def of_another(base: Path, then: str) -> subprocess.Popen[str]:
    """A process that makes a folder, with a file in it, and then lives or dies."""
    code = (
        "import os, signal, sys, tempfile; tempfile.tempdir = sys.argv[1]; from suite.measure import leftover; "
        f"f = leftover.new_folder(); (f / 'store').touch(); print(f, flush=True); {then}"
    )
    return subprocess.Popen(
        [sys.executable, "-c", code, str(base)], stdout=subprocess.PIPE, stdin=subprocess.PIPE, text=True
    )


def test_a_killed_run_s_folder_is_removed_by_the_next_one(base: Path) -> None:
    killed = of_another(base, "os.kill(os.getpid(), signal.SIGKILL)")
    said, _ = killed.communicate(timeout=60)
    assert Path(said.strip()).is_dir()
    assert list(base.iterdir()) == [Path(said.strip())]
    ours = leftover.new_folder()
    assert list(base.iterdir()) == [ours]


def test_a_running_one_s_folder_stays(base: Path) -> None:
    running = of_another(base, "sys.stdin.read()")
    assert running.stdout is not None
    theirs = Path(running.stdout.readline().strip())
    leftover.sweep(base)
    assert (theirs / "store").exists()
    running.communicate(timeout=60)
    leftover.sweep(base)
    assert not theirs.exists()


def test_what_is_not_known_to_be_left_over_stays(base: Path) -> None:
    namespace = Path("/proc/self/ns/pid").stat().st_ino
    killed = of_another(base, "pass")
    killed.communicate(timeout=60)
    leftover.sweep(base)
    names = (f"lanecheck-pool-{killed.pid}-{namespace + 1}-x", "lanecheck-pool-x", "lanecheck-abc", "other")
    for name in names:
        (base / name).mkdir()
    (base / f"lanecheck-pool-{killed.pid}-{namespace}-link").symlink_to(base / "other")
    leftover.sweep(base)
    assert {p.name for p in base.iterdir()} == {*names, f"lanecheck-pool-{killed.pid}-{namespace}-link"}
