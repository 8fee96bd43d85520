"""The link watch: a child of its own that samples, answers, and never outlives or delays anyone."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from suite.probe import nvml_watch, watch
from suite.probe.link import Watcher
from suite.probe.nvml import Nvml
from suite.probe.tree import Tree
from suite.records.case import LinkReading
from suite.records.machine import LinkState
from tests.probe import trees
from tests.probe.fake_nvml import FakeNvml, two_gpus

PORT, CARD = "pci0000:00/0000:00:01.0", "pci0000:00/0000:00:01.0/0000:01:00.0"
ADDRESS = "0000:01:00.0"


def here() -> str:
    """Any PCI function of this machine; most have none with a link."""
    found = sorted(Path("/sys/bus/pci/devices").glob("*")) if Path("/sys/bus/pci/devices").is_dir() else []
    return found[0].name if found else "0000:00:00.0"


def test_readings_have_times_of_the_monotonic_clock_and_every_address() -> None:
    watcher, address = Watcher(interval_s=0.02), here()
    before = time.monotonic()
    watcher.start([address, "0000:ff:1f.7"])
    time.sleep(0.2)
    readings = watcher.stop()
    after = time.monotonic()
    assert set(readings) == {address, "0000:ff:1f.7"}
    times = [r.at for r in readings[address]]
    assert len(times) >= 3
    assert times == sorted(times)
    assert before <= times[0] <= times[-1] <= after


def test_a_watch_that_was_not_started_or_was_stopped_has_no_readings() -> None:
    watcher = Watcher()
    assert watcher.stop() == {}
    watcher.start([here()])
    assert watcher.stop() != {}
    assert watcher.stop() == {}


def test_a_watch_that_cannot_be_started_has_no_readings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    watcher = Watcher()
    watcher.start([ADDRESS])
    assert watcher.stop() == {}


def test_a_watch_can_be_used_again() -> None:
    watcher = Watcher()
    for _ in range(2):
        watcher.start([here()])
        assert set(watcher.stop()) == {here()}


def test_a_child_that_was_killed_or_stopped_costs_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("suite.probe.link._STOP_S", 0.3)
    for number in (signal.SIGKILL, signal.SIGSTOP):
        watcher = Watcher()
        watcher.start([here()])
        child = watcher._child
        assert child is not None
        child.send_signal(number)
        assert watcher.stop() == {}
        assert child.poll() is not None


def test_the_child_ends_when_its_parent_is_killed() -> None:
    code = (
        "import time; from suite.probe.link import Watcher; w = Watcher(); w.start(['0000:00:00.0']);"
        "print(w._child.pid, flush=True); time.sleep(60)"
    )
    parent = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    child = int(parent.stdout.readline())
    parent.kill()
    parent.wait(10)
    assert any(_gone(child) for _ in _moments(10))


def test_every_hop_is_sampled_and_counters_in_the_first_and_last_reading_only(tmp_path: Path) -> None:
    config = trees.config_space(port=4, status_bits=1)
    files = trees.function(PORT, now="8.0 GT/s PCIe x16", config=config, aer_dev_correctable="TOTAL_ERR_COR 1\n")
    root = trees.write(tmp_path, files | trees.gpu(CARD, now="2.5 GT/s PCIe x16", vendor="0x8086"))
    watched = watch.Watch(Tree(root), [ADDRESS])
    watched.read(first=True)
    (root / f"sys/devices/{CARD}/current_link_speed").write_text("16.0 GT/s PCIe\n")
    (root / f"sys/devices/{PORT}/aer_dev_correctable").write_text("TOTAL_ERR_COR 9\n")
    watched.read()
    watched.read(last=True)
    first, middle, last = watched.readings[ADDRESS]
    assert [r.hops for r in (first, middle)] == [((ADDRESS, LinkState(s, 16)),) for s in (2.5, 16.0)]
    assert [dict(r.aer)["0000:00:01.0"].correctable for r in (first, last)] == [1, 9]
    assert middle.aer == middle.link_bandwidth_changed == ()
    assert dict(last.link_bandwidth_changed) == {"0000:00:01.0": True}
    assert dict(last.autonomous_change) == {"0000:00:01.0": False}


def test_the_port_says_what_the_device_does_not(tmp_path: Path) -> None:
    files = trees.function(PORT, now="8.0 GT/s PCIe x4") | trees.gpu(CARD, now="Unknown x0")
    watched = watch.Watch(Tree(trees.write(tmp_path, files)), [ADDRESS])
    watched.read()
    assert watched.readings[ADDRESS][0].hops == ((ADDRESS, LinkState(8.0, 4)),)


def test_a_long_watch_keeps_its_beginning_and_its_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch, "_MOST_READINGS", 3)
    watched = watch.Watch(Tree(trees.write(tmp_path, trees.gpu(CARD))), [ADDRESS])
    for _ in range(5):
        watched.read()
    times = [r.at for r in watched.readings[ADDRESS]]
    assert len(times) == 3
    assert times == sorted(times)


class _Thread(nvml_watch.NvmlThread):
    """The thread with a fake binding."""

    def __init__(self, fake: FakeNvml) -> None:
        self.fake = fake
        super().__init__([ADDRESS])

    def _load(self) -> Nvml:
        self.fake.nvmlInit()
        return Nvml(self.fake)


def test_nvml_answers_are_joined_to_the_reading_that_asked(tmp_path: Path) -> None:
    card = two_gpus(DeviceGetHandleByPciBusId=7, DeviceGetPcieReplayCounter=3, DeviceGetPerformanceState=2)
    thread = _Thread(card)
    assert thread.wait_until_ready(5)
    watched = watch.Watch(Tree(trees.write(tmp_path, trees.gpu(CARD))), [ADDRESS])
    watched.read(first=True)
    watched.read(nvml=thread)
    watched.set_baseline()
    first, second = watched.readings[ADDRESS]
    assert (second.nvml, second.performance_state, second.replays) == (LinkState(2.5, 16), 2, 3)
    assert (first.nvml, first.replays) == (None, 3)
    assert second.hops == ((ADDRESS, LinkState(16.0, 16)),)


def test_a_hanging_nvml_leaves_sysfs_alone(tmp_path: Path) -> None:
    released = threading.Event()

    def hang(_: object) -> int:
        released.wait(30)
        return 1

    thread = _Thread(two_gpus(DeviceGetHandleByPciBusId=7, DeviceGetCurrPcieLinkWidth=hang))
    assert thread.wait_until_ready(5)
    watched = watch.Watch(Tree(trees.write(tmp_path, trees.gpu(CARD))), [ADDRESS])
    for _ in range(4):
        watched.read(nvml=thread)
    released.set()
    assert [r.nvml for r in watched.readings[ADDRESS]] == [None] * 4
    assert {r.hops for r in watched.readings[ADDRESS]} == {((ADDRESS, LinkState(16.0, 16)),)}


def test_an_nvml_that_does_not_start_is_no_error() -> None:
    thread = _Thread(FakeNvml({}, start_error=9))
    assert thread.wait_until_ready(5)
    assert thread.ask(slow=True) == {}
    assert thread.failed is not None


def test_xid_events_are_collected() -> None:
    class Event:
        eventData = 79  # noqa: N815 - their spelling

    waiting = [Event()]

    def wait(*_: object) -> Event:
        if not waiting:
            raise FakeNvml.NVMLError(10)
        return waiting.pop()

    said = {"EventSetCreate": 1, "DeviceRegisterEvents": 0, "EventSetWait_v2": wait}
    thread = _Thread(two_gpus(DeviceGetHandleByPciBusId=7, **said))
    assert thread.wait_until_ready(5)
    answers: list[LinkReading] = [thread.ask(slow=True)[ADDRESS] for _ in range(2)]
    assert [a.xids for a in answers] == [(79,), (79,)]


def _moments(seconds: float) -> Iterator[None]:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        yield
        time.sleep(0.05)


def _gone(pid: int) -> bool:
    """Ended, or a zombie that nobody has waited for."""
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    return not os.path.exists(f"/proc/{pid}")  # noqa: PTH110 - a race with its end is fine
