"""What is set on each GPU (and NIC) and its path: facts that change results and are neither states nor faults."""

from __future__ import annotations

from collections.abc import Iterator

from suite.records.machine import Gpu, Machine, PciFunction
from suite.records.path import path_to_root
from suite.report.remarks import devices, listed, ranges


def lines(machine: Machine) -> list[str]:
    """'GPU 0-7: MPS 256 along the path, MRRS 512, …', then adapters and accelerators. Alike ones share a line."""
    gpus: dict[str, list[int]] = {}
    for gpu in machine.gpus:
        text = ", ".join([*_path(machine, machine.function(gpu.address)), *_gpu(gpu)])
        gpus.setdefault(text, []).append(gpu.index)
    others: dict[str, list[str]] = {}
    for device in devices(machine):
        if device.address not in {gpu.address for gpu in machine.gpus}:
            others.setdefault(", ".join(_path(machine, device)), []).append(device.address)
    return [
        *(f"GPU {ranges(indices)}: {text}" for text, indices in gpus.items() if text),
        *(f"{listed(addresses)}: {text}" for text, addresses in others.items() if text),
    ]


def _path(machine: Machine, function: PciFunction | None) -> Iterator[str]:
    if function is None or function.config is None:
        return
    config, path = function.config, path_to_root(machine, function.address)
    if path.mps:
        yield f"MPS {path.mps} along the path"
    if config.mrrs:
        yield f"MRRS {config.mrrs}"
    switches = {"extended tags": config.extended_tags, "relaxed ordering": config.relaxed_ordering}
    switches["flit mode"] = config.flit_mode or None  # off is the rule: not worth a word
    yield from _said(switches)
    if config.aspm:
        yield f"ASPM {config.aspm}"
    if config.autonomous_speed_disabled:
        yield "autonomous speed changes off"
    ports = [f.config.acs_redirect for f in machine.ancestors(function.address) if f.is_bridge and f.config]
    if ports and None not in ports:
        yield f"ACS redirect {'on' if any(ports) else 'off'}"
    if config.resizable_bar is not None:
        yield f"resizable BAR {'there' if config.resizable_bar else 'not there'}"


def _gpu(gpu: Gpu) -> Iterator[str]:
    if gpu.vbios:
        yield f"VBIOS {gpu.vbios}"
    yield from _said({"persistence": gpu.persistence, "MIG": gpu.mig})
    if gpu.compute_mode not in (None, "default"):
        yield f"compute mode {gpu.compute_mode}"
    if gpu.power_limit_w:
        default = gpu.power_default_w
        yield f"power limit {gpu.power_limit_w:.0f} W" + (f" (default {default:.0f})" if default else "")
    if gpu.sm_clock_max_mhz:
        yield f"SM clock at most {gpu.sm_clock_max_mhz} MHz"


def _said(switches: dict[str, bool | None]) -> Iterator[str]:
    for name, on in switches.items():
        if on is not None:
            yield f"{name} {'on' if on else 'off'}"
