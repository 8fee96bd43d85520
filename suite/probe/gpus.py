"""GPUs: NVML's answers fetched with a deadline and joined to the PCI functions of sysfs by address."""

from __future__ import annotations

import itertools
import os
import selectors
import subprocess
import time
from collections.abc import Sequence
from dataclasses import replace

import msgspec

from suite.probe import lifetime
from suite.probe.nvml import Answers, Problem
from suite.probe.pci import is_nvidia_gpu
from suite.probe.tree import Tree
from suite.records.machine import Gpu, GpuPair, LinkState, Machine, PciFunction
from suite.records.path import topology

_MOST = 64 << 20  # bytes of answers; a rack-sized machine needs far less


def ask(timeout_s: float) -> Answers:
    """NVML's answers from a child process; where it does not end within `timeout_s` seconds, those given so far.
    Never raises."""
    try:
        child = lifetime.start("suite.probe.nvml")
    except OSError as error:  # no right to run this Python, no memory, no more processes
        return Answers(problem="crash", problem_text=f"it cannot be started: {error.strerror}")
    try:
        output, in_time = _output(child, timeout_s)
    finally:
        lifetime.end(child)
    answers = last_answers(output)
    if answers.complete:
        return answers
    said = f"it said nothing more within {timeout_s:g} s" if not in_time else f"it ended with status {child.returncode}"
    return replace(answers, problem="crash" if in_time else "timeout", problem_text=said)


def last_answers(output: bytes) -> Answers:
    """The last whole line of answers; empty ones where there is none. Never raises."""
    for line in reversed(output.split(b"\n")[:-1]):
        try:
            return msgspec.json.decode(line, type=Answers)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            continue
    return Answers()


def join(answers: Answers, functions: Sequence[PciFunction]) -> tuple[Gpu, ...]:
    """NVML's GPUs with what sysfs adds: the NUMA node, the PCI device id, and the GPU's own width."""
    by_address = {f.address: f for f in functions}
    return tuple(_joined(gpu, by_address.get(gpu.address or "")) for gpu in answers.gpus)


def pairs(machine: Machine, answered: Sequence[GpuPair]) -> tuple[GpuPair, ...]:
    """Every pair of GPUs: what NVML said, the topology from the PCI tree, and the active NVLinks between them."""
    said = {(p.first, p.second): p for p in answered}
    return tuple(
        replace(
            said.get((one.index, two.index), GpuPair(one.index, two.index)),
            topology=topology(machine, one.address, two.address) if one.address and two.address else None,
            nvlinks=nvlinks_between(one, two),
        )
        for one, two in itertools.combinations(sorted(machine.gpus, key=lambda g: g.index), 2)
    )


def nvlinks_between(one: Gpu, two: Gpu) -> int | None:
    """Active NVLinks from one GPU to another, directly or through a switch; None where NVML names no remote ends."""
    links = [link for link in one.nvlinks if link.active]
    if any(link.remote is None and link.remote_address is None for link in links):
        return None
    direct = sum(link.remote_address == two.address for link in links if link.remote_address)
    switched = min(sum(link.remote == "switch" for link in gpu.nvlinks if link.active) for gpu in (one, two))
    return direct or switched


def why_none(answers: Answers, functions: Sequence[PciFunction], tree: Tree) -> str:
    """One sentence that says why there is no GPU to measure, and what to do."""
    seen = next((f.address for f in functions if is_nvidia_gpu(f)), None)
    problem = answers.problem or "no_gpus"
    if seen and problem in ("no_library", "no_driver", "no_binding") and not _driver_loaded(tree):
        return f"An NVIDIA GPU is there ({seen}), but no driver is loaded: install NVIDIA's driver, then run again."
    if problem == "not_recorded" and seen is None:
        return "The recording shows no NVIDIA GPU."
    return _REASONS[problem].format(text=answers.problem_text or "no reason given")


def _driver_loaded(tree: Tree) -> bool:
    return any(tree.path(name) is not None for name in ("proc/driver/nvidia", "sys/module/nvidia"))


_REASONS: dict[Problem, str] = {
    "no_binding": "GPUs were not looked for: the Python package nvidia-ml-py is not installed (make venv picks it).",
    "no_library": "No NVIDIA driver: libnvidia-ml.so.1 was not found (in a container, pass the GPUs to it).",
    "no_driver": "No NVIDIA driver is loaded, and no NVIDIA GPU is seen.",
    "mismatch": "The NVIDIA driver and its library have different versions: reboot, or reload the nvidia module.",
    "no_permission": "The NVIDIA driver refuses access to its device files (/dev/nvidia*): check their permissions.",
    "no_gpus": "The NVIDIA driver is loaded and finds no GPU.",
    "timeout": "NVML did not answer ({text}): a GPU hangs; look for Xid messages in dmesg, then reset or reboot.",
    "crash": "The process that asked NVML failed ({text}): try nvidia-smi.",
    "error": "NVML failed: {text}; try nvidia-smi.",
    "not_asked": "NVML was not asked.",
    "not_recorded": "The recording holds no NVML answers, only sysfs: record again with the driver loaded.",
}


def _joined(gpu: Gpu, function: PciFunction | None) -> Gpu:
    if function is None:
        return gpu
    return replace(
        gpu,
        numa_node=function.numa_node if gpu.numa_node is None else gpu.numa_node,
        pci_device_id=gpu.pci_device_id if gpu.pci_device_id is not None else function.device_id,
        link_device=LinkState(
            gpu.link_device.speed_gts or function.link_max.speed_gts, gpu.link_device.width or function.link_max.width
        ),
    )


def _output(child: subprocess.Popen[bytes], timeout_s: float) -> tuple[bytes, bool]:
    """(what the child wrote, whether it ended by itself in time)."""
    assert child.stdout is not None
    until = time.monotonic() + timeout_s
    output = bytearray()
    with selectors.DefaultSelector() as selector:
        selector.register(child.stdout, selectors.EVENT_READ)
        while (left := until - time.monotonic()) > 0 and len(output) < _MOST:
            if not selector.select(left):
                break
            part = os.read(child.stdout.fileno(), 1 << 16)
            if not part:
                return bytes(output), True
            output += part
    return bytes(output), False
