"""Xid events from the kernel's log: a file stands for /dev/kmsg."""

from __future__ import annotations

from pathlib import Path

import pytest

from suite.probe import watch
from suite.probe.kernel_log import XidLog
from suite.probe.tree import Tree
from tests.probe import trees

ADDRESS = "0000:65:00.0"
OLD = b"4,101,5,-;NVRM: Xid (PCI:0000:65:00): 13, Graphics Exception\n"


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "kmsg"
    path.write_bytes(OLD)
    return path


def append(path: Path, text: bytes) -> None:
    with path.open("ab") as file:
        file.write(text)


def test_only_events_since_the_start_count_and_only_those_of_the_gpu(log: Path) -> None:
    xids = XidLog(log)
    assert xids.since_start(ADDRESS) == ()
    append(log, b"4,102,9,-;NVRM: Xid (PCI:0000:65:00): 79, pid=1, GPU has fallen off the bus.\n")
    append(log, b"4,103,9,-;NVRM: Xid (PCI:0000:17:00): 48, pid=2\n6,104,9,-;NVRM: loading\n")
    append(log, b"4,105,9,-;NVRM: Xid (PCI:00000000:65:00): 119, pid=1\n")
    assert xids.since_start(ADDRESS) == (79, 119)
    assert xids.since_start(ADDRESS) == (79, 119)
    assert xids.since_start("0000:17:00.0") == (48,)


def test_a_log_that_may_not_be_read_is_unknown_not_quiet(tmp_path: Path) -> None:
    assert XidLog(tmp_path / "nowhere").since_start(ADDRESS) is None


@pytest.mark.parametrize(
    "text", [b"NVRM: Xid (PCI:65): 79", b"NVRM: Xid (PCI:zz:yy): 1", b"NVRM: Xid (PCI:0000:65:00): x"]
)
def test_a_damaged_line_is_no_event(log: Path, text: bytes) -> None:
    xids = XidLog(log)
    append(log, text + b"\n")
    assert xids.since_start(ADDRESS) == ()


@pytest.mark.parametrize(
    ("events", "logged", "joined"),
    [(None, None, None), (None, (79,), (79,)), ((79,), None, (79,)), ((79,), (79, 48), (79, 48)), ((), (), ())],
)
def test_an_event_that_both_tell_counts_once(
    events: tuple[int, ...] | None, logged: tuple[int, ...] | None, joined: tuple[int, ...] | None
) -> None:
    assert watch._joined(events, logged) == joined


def test_the_last_reading_of_a_watch_has_what_the_log_told(
    tmp_path: Path, log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watch, "XidLog", lambda: XidLog(log))
    seen = watch.Watch(Tree(trees.write(tmp_path / "tree", trees.gpu(f"pci0000:00/{ADDRESS}"))), [ADDRESS])
    seen.read(first=True)
    append(log, b"4,106,9,-;NVRM: Xid (PCI:0000:65:00): 79, pid=1\n")
    seen.read()
    seen.read(last=True)
    first, middle, last = seen.readings[ADDRESS]
    assert (first.xids, middle.xids, last.xids) == ((), None, (79,))
