"""What NVML says, asked in a process of its own (`python -m suite.probe.nvml`): on a sick GPU a call may never return.

The child writes one line of JSON after every GPU, each with all that is known so far; the last whole line counts.
"""

from __future__ import annotations

import contextlib
import itertools
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from types import ModuleType
from typing import Any, Literal

import msgspec

from suite.probe import lifetime
from suite.probe.pci import normal_address
from suite.records.machine import GENERATION_GTS, Gpu, GpuPair, LinkState, NvLink, Topology

Problem = Literal[
    "no_binding",
    "no_library",
    "no_driver",
    "mismatch",
    "no_permission",
    "no_gpus",
    "timeout",
    "crash",
    "error",
    "not_asked",
    "not_recorded",
]

# nvml.h: nvmlGpuP2PStatus_t, nvmlGpuTopologyLevel_t, nvmlGpuVirtualizationMode_t, nvmlComputeMode_t.
P2P_STATUS = {0: "OK", 1: "CNS", 2: "GNS", 3: "TNS", 4: "DR", 5: "NS", 6: "U"}
TOPOLOGY: dict[int, Topology] = {0: "SELF", 10: "PIX", 20: "PXB", 30: "PHB", 40: "NODE", 50: "SYS"}
_VIRTUALIZATION = {0: "none", 1: "passthrough", 2: "vgpu", 3: "host_vgpu", 4: "host_vsga"}
_COMPUTE_MODE = {0: "default", 2: "prohibited", 3: "exclusive_process"}
# nvml.h: nvmlNvlinkVersion_t counts its members (2.2 and 3.1 among them): 6 is NVLink 4.
_NVLINK_VERSION = {1: 1, 2: 2, 3: 2, 4: 3, 5: 3, 6: 4, 7: 5}
_REMOTE: dict[int, Literal["gpu", "switch", "cpu"]] = {0: "gpu", 1: "cpu", 2: "switch"}
# nvml.h: nvmlClocksEventReason*.
_THROTTLE = {
    0x1: "idle",
    0x2: "application clocks",
    0x4: "software power cap",
    0x8: "hardware slowdown",
    0x10: "sync boost",
    0x20: "software thermal slowdown",
    0x40: "hardware thermal slowdown",
    0x80: "hardware power brake",
    0x100: "display clocks",
}
# nvml.h: nvmlGpuP2PCapsIndex_t. The binding's own constant for reading is a tuple by mistake.
_READ, _WRITE, _ATOMICS = 0, 1, 3
_NVLINKS = 18  # NVML_NVLINK_MAX_LINKS
_FIELD_NVLINK_SPEED = 164  # NVML_FI_DEV_NVLINK_GET_SPEED, MB/s, per link


@dataclass(frozen=True)
class Answers:
    """What NVML said. problem: why there is nothing, or not all; problem_text: NVML's own words.

    numa_nodes: (GPU index, node that its own memory is), on machines that map it as one (Grace)."""

    driver: str | None = None
    cuda_driver: str | None = None
    gpus: tuple[Gpu, ...] = ()
    pairs: tuple[GpuPair, ...] = ()
    numa_nodes: tuple[tuple[int, int], ...] = ()
    problem: Problem | None = None
    problem_text: str | None = None
    complete: bool = field(default=False)


class Nvml:
    """NVML through its Python binding; every question that is not answered is None."""

    def __init__(self, binding: ModuleType | Any) -> None:
        self.binding = binding

    def ask(self, name: str, *arguments: object) -> Any:
        """One call by its name without the prefix; None where it is not supported, not known or fails."""
        call: Callable[..., Any] | None = getattr(self.binding, f"nvml{name}", None)
        if call is None:
            return None
        try:
            return call(*arguments)
        except (self.binding.NVMLError, AttributeError, TypeError, ValueError, OSError):
            return None

    def number(self, name: str, *arguments: object) -> int | None:
        """A call's whole number; None where there is none."""
        value = self.ask(name, *arguments)
        return int(value) if isinstance(value, int) and not isinstance(value, bool) else None

    def text(self, name: str, *arguments: object) -> str | None:
        """A call's text; old bindings give bytes."""
        return _text(self.ask(name, *arguments))


def main() -> int:
    """The child: answers on stdout. Exit status 0 also where there is no GPU: the answer says so."""
    lifetime.end_with_parent()
    for answers in read():
        sys.stdout.buffer.write(msgspec.json.encode(answers) + b"\n")
        sys.stdout.buffer.flush()
    return 0


def read() -> Iterator[Answers]:
    """NVML's answers, growing GPU by GPU; `complete` in the last one."""
    try:
        import pynvml  # optional, and only this process may load it
    except ImportError:
        yield Answers(problem="no_binding", complete=True)
        return
    yield from read_with(pynvml)


def read_with(binding: ModuleType | Any) -> Iterator[Answers]:
    """As read(), through any object with pynvml's functions."""
    try:
        binding.nvmlInit()
    except binding.NVMLError as error:
        yield Answers(problem=_problem(error), problem_text=str(error), complete=True)
        return
    nvml = Nvml(binding)
    answers = Answers(driver=nvml.text("SystemGetDriverVersion"), cuda_driver=cuda_version(nvml))
    yield answers
    yield from _gpus(nvml, answers)
    with contextlib.suppress(binding.NVMLError):
        binding.nvmlShutdown()


def cuda_version(nvml: Nvml) -> str | None:
    """The newest CUDA version that the driver speaks: 12080 is '12.8'."""
    number = nvml.number("SystemGetCudaDriverVersion_v2")
    return f"{number // 1000}.{number % 1000 // 10}" if number else None


def link(nvml: Nvml, handle: object, generation: str, width: str | None) -> LinkState:
    """A link from two of NVML's calls, by name; 0 and nonsense are unknown."""
    lanes = nvml.number(f"DeviceGet{width}", handle) if width else None
    speed = GENERATION_GTS.get(nvml.number(f"DeviceGet{generation}", handle) or 0)
    return LinkState(speed, lanes if lanes in (1, 2, 4, 8, 12, 16, 32) else None)


def throttle_reasons(nvml: Nvml, handle: object) -> tuple[str, ...] | None:
    """Why the clocks are held down now, in words; () for no reason, None where NVML does not say."""
    bits = nvml.number("DeviceGetCurrentClocksEventReasons", handle)
    if bits is None:  # drivers before 535 know the older name only
        bits = nvml.number("DeviceGetCurrentClocksThrottleReasons", handle)
    return None if bits is None else tuple(word for bit, word in _THROTTLE.items() if bits & bit)


def watts(nvml: Nvml, name: str, handle: object) -> float | None:
    """A power reading; NVML counts in milliwatts."""
    milliwatts = nvml.number(name, handle)
    return None if milliwatts is None else milliwatts / 1000


def performance_state(nvml: Nvml, handle: object) -> int | None:
    """0 (full) to 15 (idle); None where not known (NVML says 32)."""
    state = nvml.number("DeviceGetPerformanceState", handle)
    return state if state is not None and 0 <= state <= 15 else None


def _gpus(nvml: Nvml, answers: Answers) -> Iterator[Answers]:
    handles: dict[int, object] = {}
    count = nvml.number("DeviceGetCount")
    if count is None:
        yield replace(answers, problem="error", problem_text="it does not say how many GPUs there are", complete=True)
        return
    for index in range(count):
        handle = nvml.ask("DeviceGetHandleByIndex", index)
        if handle is None:
            answers = replace(answers, problem="error", problem_text=f"GPU {index} does not answer")
            continue
        handles[index] = handle
        node = nvml.number("DeviceGetNumaNodeId", handle)
        answers = replace(
            answers,
            gpus=(*answers.gpus, gpu(nvml, index, handle)),
            numa_nodes=(*answers.numa_nodes, *(((index, node),) if node is not None and node >= 0 else ())),
        )
        yield answers
    pairs = tuple(_pair(nvml, handles, one, two) for one, two in itertools.combinations(handles, 2))
    problem = answers.problem if handles or answers.problem else "no_gpus"
    yield replace(answers, pairs=pairs, problem=problem, complete=True)


def gpu(nvml: Nvml, index: int, handle: object) -> Gpu:
    """All that one GPU says of itself. No UUID, no serial number: they are not asked for."""
    return Gpu(
        index=index,
        name=nvml.text("DeviceGetName", handle) or "NVIDIA GPU",
        **_identity(nvml, handle),
        **_state(nvml, handle),
    )


def _identity(nvml: Nvml, handle: object) -> dict[str, Any]:
    pci = nvml.ask("DeviceGetPciInfo_v3", handle)
    capability = nvml.ask("DeviceGetCudaComputeCapability", handle)
    memory, bar1 = nvml.ask("DeviceGetMemoryInfo", handle), nvml.ask("DeviceGetBAR1MemoryInfo", handle)
    mig = nvml.ask("DeviceGetMigMode", handle)
    c2c = nvml.ask("DeviceGetC2cModeInfoV", handle)
    return {
        "address": normal_address(_text(getattr(pci, "busId", None))),
        "pci_device_id": _upper_half(getattr(pci, "pciDeviceId", None)),
        "compute_capability": tuple(capability) if capability else None,
        "memory_bytes": _field(memory, "total"),
        "memory_free_bytes": _field(memory, "free"),
        "bar1_bytes": _field(bar1, "bar1Total") or None,
        "link": link(nvml, handle, "CurrPcieLinkGeneration", "CurrPcieLinkWidth"),
        "link_max": link(nvml, handle, "MaxPcieLinkGeneration", "MaxPcieLinkWidth"),
        # There is no call for the GPU's own width alone; sysfs has it.
        "link_device": link(nvml, handle, "GpuMaxPcieLinkGeneration", None),
        "vbios": nvml.text("DeviceGetVbiosVersion", handle),
        "virtualization": _VIRTUALIZATION.get(_or(nvml.number("DeviceGetVirtualizationMode", handle), -1)),
        "mig": bool(mig[0]) if mig else None,
        "c2c": bool(c2c.isC2cEnabled) if hasattr(c2c, "isC2cEnabled") else None,
        "nvlinks": tuple(_nvlinks(nvml, handle)),
    }


def _state(nvml: Nvml, handle: object) -> dict[str, Any]:
    persistence = nvml.number("DeviceGetPersistenceMode", handle)
    utilization = nvml.ask("DeviceGetUtilizationRates", handle)
    temperature = nvml.number("DeviceGetTemperature", handle, 0)
    processes, used = _processes(nvml, handle)
    return {
        "performance_state": performance_state(nvml, handle),
        "compute_mode": _COMPUTE_MODE.get(_or(nvml.number("DeviceGetComputeMode", handle), -1)),
        "persistence": None if persistence is None else bool(persistence),
        "processes": processes,
        "processes_bytes": used,
        "utilization": utilization.gpu / 100 if hasattr(utilization, "gpu") else None,
        "power_w": watts(nvml, "DeviceGetPowerUsage", handle),
        "power_limit_w": watts(nvml, "DeviceGetEnforcedPowerLimit", handle),
        "power_default_w": watts(nvml, "DeviceGetPowerManagementDefaultLimit", handle),
        "temperature_c": None if temperature is None else float(temperature),
        "sm_clock_mhz": nvml.number("DeviceGetClockInfo", handle, 1),
        "sm_clock_max_mhz": nvml.number("DeviceGetMaxClockInfo", handle, 1),
        "throttle": throttle_reasons(nvml, handle),
        "replays": nvml.number("DeviceGetPcieReplayCounter", handle),
    }


def _processes(nvml: Nvml, handle: object) -> tuple[int | None, int | None]:
    """(how many processes use the GPU, bytes they hold); a driver that hides either answers None."""
    lists = [nvml.ask(f"DeviceGet{kind}RunningProcesses", handle) for kind in ("Compute", "Graphics")]
    if all(found is None for found in lists):
        return None, None
    by_id = {process.pid: process.usedGpuMemory for found in lists for process in found or ()}
    sizes = list(by_id.values())
    return len(by_id), None if None in sizes else sum(sizes)


def _nvlinks(nvml: Nvml, handle: object) -> Iterator[NvLink]:
    """Every NVLink that the GPU has, active or not; a GPU without NVLink answers none of them."""
    for index in range(_NVLINKS):
        active = nvml.number("DeviceGetNvLinkState", handle, index)
        if active is None:
            continue
        remote = nvml.ask("DeviceGetNvLinkRemotePciInfo", handle, index) if active else None
        kind = nvml.number("DeviceGetNvLinkRemoteDeviceType", handle, index) if active else None
        yield NvLink(
            index=index,
            active=bool(active),
            version=_NVLINK_VERSION.get(_or(nvml.number("DeviceGetNvLinkVersion", handle, index), 0)),
            remote=_REMOTE.get(_or(kind, -1)),
            remote_address=normal_address(_text(getattr(remote, "busId", None))),
            rate=_nvlink_rate(nvml, handle, index),
        )


def _nvlink_rate(nvml: Nvml, handle: object, index: int) -> float | None:
    """Bytes per second and direction."""
    values = nvml.ask("DeviceGetFieldValues", handle, [(_FIELD_NVLINK_SPEED, index)])
    if not values or values[0].nvmlReturn != 0:
        return None
    megabytes = values[0].value.uiVal
    return megabytes * 1e6 if 0 < megabytes < 10_000_000 else None


def _pair(nvml: Nvml, handles: dict[int, object], one: int, two: int) -> GpuPair:
    first, second = handles[one], handles[two]
    level = nvml.number("DeviceGetTopologyCommonAncestor", first, second)
    read, write, atomics = (
        _worse(
            nvml.number("DeviceGetP2PStatus", first, second, index),
            nvml.number("DeviceGetP2PStatus", second, first, index),
        )
        for index in (_READ, _WRITE, _ATOMICS)
    )
    return GpuPair(
        first=one,
        second=two,
        topology_nvml=TOPOLOGY.get(_or(level, -1)),
        p2p_read=read,
        p2p_write=write,
        p2p_atomics=atomics,
    )


def _worse(there: int | None, back: int | None) -> str | None:
    """A pair has one status: OK only where both directions say so."""
    if there is None or back is None:
        return None
    return P2P_STATUS.get(there or back, str(there or back))


def _problem(error: Exception) -> Problem:
    """nvml.h: nvmlReturn_t."""
    known: dict[int, Problem] = {4: "no_permission", 9: "no_driver", 12: "no_library", 18: "mismatch"}
    return known.get(getattr(error, "value", -1), "error")


def _text(value: object) -> str | None:
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace") or None
    return value if isinstance(value, str) and value else None


def _field(record: object, name: str) -> int | None:
    value = getattr(record, name, None)
    return int(value) if isinstance(value, int) else None


def _upper_half(identifier: object) -> int | None:
    """NVML packs device and vendor id: 0x233510DE is device 0x2335."""
    return identifier >> 16 if isinstance(identifier, int) else None


def _or(value: int | None, other: int) -> int:
    return other if value is None else value


if __name__ == "__main__":
    sys.exit(main())
