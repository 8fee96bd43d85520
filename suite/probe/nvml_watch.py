"""NVML's part of the link watch, in a thread of its own: when a call hangs, the watch goes on with sysfs alone."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Sequence
from typing import Any

from suite.probe import nvml
from suite.records.case import LinkReading

# One round of questions to all GPUs; one that takes longer is not waited for, and its answer is dropped.
_PATIENCE_S = 0.05
_XID_EVENTS = 0x8  # nvml.h: nvmlEventTypeXidCriticalError


class NvmlThread:
    """Asks NVML about some GPUs (PCI addresses) whenever it is told to. With no addresses NVML is not even loaded."""

    def __init__(self, addresses: Sequence[str]) -> None:
        self.addresses = list(addresses)
        self._wanted, self._ready, self._answered = threading.Event(), threading.Event(), threading.Event()
        self.failed: str | None = None
        self._slow = False
        self._busy = True
        self._answers: dict[str, LinkReading] = {}
        if self.addresses:
            threading.Thread(target=self._run, daemon=True).start()
        else:
            self._ready.set()

    def wait_until_ready(self, patience_s: float) -> bool:
        """Whether NVML has started, or has said that it cannot."""
        return self._ready.wait(patience_s)

    def ask(self, *, slow: bool) -> dict[str, LinkReading]:
        """One answer a GPU; nothing while NVML is not ready or still busy with an earlier question."""
        if self._busy or not self.addresses:
            return {}
        self._slow, self._busy = slow, True
        self._answered.clear()
        self._wanted.set()
        return self._answers if self._answered.wait(_PATIENCE_S) else {}

    def _run(self) -> None:
        try:
            source = self._load()
        except Exception as error:  # noqa: BLE001 - whatever NVML's start raises, the watch goes on without it
            self.failed = f"{type(error).__name__}: {error}"
            self._ready.set()
            return
        gpus = _Gpus(source, self.addresses)
        self._busy = False
        self._ready.set()
        while self._wanted.wait():
            self._wanted.clear()
            self._answers = gpus.read(slow=self._slow)
            self._busy = False
            self._answered.set()

    def _load(self) -> nvml.Nvml:
        import pynvml  # optional

        pynvml.nvmlInit()
        return nvml.Nvml(pynvml)


class _Gpus:
    """The handles of some GPUs, and one set of Xid events each (None where events are not supported)."""

    def __init__(self, source: nvml.Nvml, addresses: Sequence[str]) -> None:
        self.nvml = source
        found = {a: source.ask("DeviceGetHandleByPciBusId", a.encode()) for a in addresses}
        self.handles = {a: handle for a, handle in found.items() if handle is not None}
        self.events = {a: self._events(handle) for a, handle in self.handles.items()}
        self.xids: dict[str, list[int]] = {a: [] for a in self.handles}

    def read(self, *, slow: bool) -> dict[str, LinkReading]:
        return {a: self._read(a, handle, slow) for a, handle in self.handles.items()}

    def _read(self, address: str, handle: object, slow: bool) -> LinkReading:
        source = self.nvml
        fast = LinkReading(
            at=0.0,
            nvml=nvml.link(source, handle, "CurrPcieLinkGeneration", "CurrPcieLinkWidth"),
            performance_state=nvml.performance_state(source, handle),
        )
        if not slow:
            return fast
        temperature = source.number("DeviceGetTemperature", handle, 0)
        return LinkReading(
            at=0.0,
            nvml=fast.nvml,
            performance_state=fast.performance_state,
            temperature_c=None if temperature is None else float(temperature),
            power_w=nvml.watts(source, "DeviceGetPowerUsage", handle),
            throttle=nvml.throttle_reasons(source, handle),
            replays=source.number("DeviceGetPcieReplayCounter", handle),
            xids=self._new_xids(address),
        )

    def _events(self, handle: object) -> Any:
        events = self.nvml.ask("EventSetCreate")
        if events is None:
            return None
        error: type[Exception] = self.nvml.binding.NVMLError
        with contextlib.suppress(error):
            self.nvml.binding.nvmlDeviceRegisterEvents(handle, _XID_EVENTS, events)
            return events
        return None

    def _new_xids(self, address: str) -> tuple[int, ...] | None:
        """All Xid numbers since the watch began."""
        events = self.events[address]
        if events is None:
            return None
        seen = self.xids[address]
        while len(seen) < 100 and (event := self.nvml.ask("EventSetWait_v2", events, 0)) is not None:
            seen.append(int(event.eventData))
        return tuple(seen)
