"""The child of the link watch: `python -m suite.probe.watch INTERVAL ADDRESS…`.

Writes `ready` after the first reading, samples until its stdin closes, then writes all readings as one line of JSON.
"""

from __future__ import annotations

import contextlib
import os
import select
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import msgspec

from suite.probe import config_space, lifetime, pci
from suite.probe.kernel_log import XidLog
from suite.probe.nvml_watch import NvmlThread
from suite.probe.tree import Tree, read_plain
from suite.records.case import LinkReading
from suite.records.machine import AerCounters, LinkState, Machine
from suite.records.path import path_to_root

_NVML_START_S = 5.0
# Slower facts (power, temperature, throttle reasons, replays, Xid events) are asked every tenth time only.
# Reading 1 is taken before NVML starts, so reading 2 is NVML's first.
_SLOW, _FIRST = 10, 2
# 10 minutes at 50 ms; a longer watch keeps its beginning and its last reading.
_MOST_READINGS = 12_000


def main(arguments: Sequence[str]) -> int:
    """Samples until stdin closes."""
    lifetime.end_with_parent()
    interval_s, addresses = float(arguments[0]), list(dict.fromkeys(arguments[1:]))
    watch = Watch(Tree(Path("/")), addresses)
    watch.read(first=True)
    nvml = NvmlThread(watch.nvidia)
    if nvml.wait_until_ready(_NVML_START_S):
        watch.read(nvml=nvml)
        watch.set_baseline()
    _write(b"ready\n")
    while not _stopped(interval_s):
        watch.read(nvml=nvml)
    watch.read(nvml=nvml, last=True)
    _write(msgspec.json.encode(watch.readings) + b"\n")
    # A NVML call that hangs would keep an orderly exit waiting for its thread.
    os._exit(0)


class Watch:
    """The hops above some PCI functions, their files held open, and the readings so far."""

    def __init__(self, tree: Tree, addresses: Sequence[str]) -> None:
        machine = Machine(pci=pci.read(tree, only=addresses))
        folders = {f.address: tree.path(f"{pci.DEVICES}/{f.address}") for f in machine.pci}
        self.tree = tree
        self.hops = {a: [_Hop(h.lower, h.upper, folders) for h in path_to_root(machine, a).hops] for a in addresses}
        self.chains = {a: [f.address for f in machine.ancestors(a)] for a in addresses}
        self.nvidia = [f.address for f in machine.pci if f.address in addresses and f.vendor_id == pci.NVIDIA]
        self.readings: dict[str, list[LinkReading]] = {a: [] for a in addresses}
        self._count = 0
        self._log = XidLog()

    def read(self, *, nvml: NvmlThread | None = None, first: bool = False, last: bool = False) -> None:
        """One reading of every function. Error counters and LnkSta's bits: in the first and the last one only."""
        at = time.monotonic()
        self._count += 1
        answers = nvml.ask(slow=last or self._count % _SLOW == _FIRST) if nvml else {}
        for address, readings in self.readings.items():
            hops = tuple((hop.lower, hop.read()) for hop in self.hops[address])
            reading = replace(answers.get(address, LinkReading(at)), at=at, hops=hops)
            if len(readings) >= _MOST_READINGS:
                readings.pop()
            readings.append(self._with_counters(address, reading) if first or last else reading)

    def set_baseline(self) -> None:
        """Gives the first reading, taken before NVML ran, the counters that NVML named before the load began."""
        for readings in self.readings.values():
            if len(readings) > 1:
                xids = _joined(readings[1].xids, readings[0].xids)
                readings[0] = replace(readings[0], replays=readings[1].replays, xids=xids)

    def _with_counters(self, address: str, reading: LinkReading) -> LinkReading:
        """Reading clears none of them."""
        chain = self.chains[address]
        bits = {a: bits for a in chain if (bits := self._status_bits(a)) is not None}
        return replace(
            reading,
            aer=tuple(self._aer(chain)),
            xids=_joined(reading.xids, self._log.since_start(address)) if address in self.nvidia else None,
            link_bandwidth_changed=tuple((a, managed) for a, (managed, _) in bits.items()),
            autonomous_change=tuple((a, changed) for a, (_, changed) in bits.items()),
        )

    def _aer(self, chain: Sequence[str]) -> Iterator[tuple[str, AerCounters]]:
        for address in chain:
            counters = pci.aer_counters(self.tree, f"{pci.DEVICES}/{address}")
            if counters is not None:
                yield address, counters

    def _status_bits(self, address: str) -> tuple[bool, bool] | None:
        return config_space.status_bits(self.tree.data(f"{pci.DEVICES}/{address}/config", most=256))


def _joined(events: tuple[int, ...] | None, logged: tuple[int, ...] | None) -> tuple[int, ...] | None:
    """Xid numbers that NVML and the kernel's log tell, each as often as the one that tells it more often."""
    if events is None or logged is None:
        return logged if events is None else events
    return tuple((Counter(events) | Counter(logged)).elements())


class _Hop:
    """One link: its lower end's files, and the upper end's for what the lower one does not say."""

    def __init__(self, lower: str, upper: str | None, folders: dict[str, Path | None]) -> None:
        self.lower = lower
        ends = [folder for end in (lower, upper) if end and (folder := folders.get(end))]
        self.speeds = [_File(folder / "current_link_speed") for folder in ends]
        self.widths = [_File(folder / "current_link_width") for folder in ends]

    def read(self) -> LinkState:
        """The link now."""
        speed = next((s for file in self.speeds if (s := pci.link_speed(file.read())) is not None), None)
        return LinkState(
            speed, next((w for file in self.widths if (w := pci.link_width(file.read())) is not None), None)
        )


class _File:
    """A sysfs file that is read again and again: kernfs makes its text anew when it is read from the start."""

    def __init__(self, path: Path) -> None:
        self._handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC) if read_plain(path, 64) is not None else None

    def read(self) -> str | None:
        if self._handle is None:
            return None
        with contextlib.suppress(OSError):  # the device is gone: unknown from now on
            return os.pread(self._handle, 64, 0).decode("ascii", "replace")
        return None


def _stopped(interval_s: float) -> bool:
    """Waits; True when the parent closed our stdin."""
    return bool(select.select([sys.stdin], [], [], interval_s)[0])


def _write(line: bytes) -> None:
    with contextlib.suppress(BrokenPipeError):  # the parent is gone: nobody wants it
        sys.stdout.buffer.write(line)
        sys.stdout.buffer.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
