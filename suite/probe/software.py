"""Versions of what takes part, without importing any of it: torch and cupy cost seconds and wake GPUs."""

from __future__ import annotations

import platform
import re
from importlib import metadata, util
from pathlib import Path

from suite import __version__
from suite.probe.tree import Tree, read_plain
from suite.records.machine import Software

# One distribution a CUDA version; the newest first.
_CUPY = ("cupy-cuda13x", "cupy-cuda12x", "cupy-cuda11x", "cupy")
_NCCL = ("nvidia-nccl-cu13", "nvidia-nccl-cu12", "nvidia-nccl-cu11")


def read(tree: Tree) -> Software:
    """Versions as text. For a recorded tree only what its files say: its Python is not this one."""
    kernel, driver = tree.text("proc/sys/kernel/osrelease"), driver_version(tree)
    if not tree.live:
        return Software(kernel=kernel, driver=driver)
    cupy = next((name for name in _CUPY if version(name)), None)
    return Software(
        kernel=kernel,
        python=platform.python_version(),
        driver=driver,
        torch=version("torch"),
        torch_cuda=_torch_cuda(),
        cupy=version(cupy) if cupy else None,
        cupy_cuda=_digits(cupy) if cupy else None,
        nccl=next((found for name in _NCCL if (found := version(name))), None),
        pytest_benchmark=version("pytest-benchmark"),
        lanecheck=__version__,
    )


def version(distribution: str) -> str | None:
    """An installed distribution's version; None where it is not installed."""
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return None


def driver_version(tree: Tree) -> str | None:
    """NVIDIA's kernel driver, loaded: '580.95.05'; None where it is not."""
    loaded = tree.text("sys/module/nvidia/version")
    match = re.search(
        r"Kernel Module.*?\s(\d{3,4}\.\d{1,4}(?:\.\d{1,4})?)\s", tree.text("proc/driver/nvidia/version") or ""
    )
    return loaded or (match[1] if match else None)


def _torch_cuda() -> str | None:
    """The CUDA version that torch was built for, from its version.py as text; None for CPU builds."""
    spec = util.find_spec("torch")
    if spec is None or spec.origin is None:
        return None
    text = read_plain(Path(spec.origin).with_name("version.py")) or b""
    match = re.search(r"^cuda\b[^=\n]*=\s*['\"]([\d.]+)['\"]", text.decode("utf-8", "replace"), re.MULTILINE)
    return match[1] if match else None


def _digits(name: str) -> str | None:
    match = re.search(r"cuda(\d+)", name)
    return match[1] if match else None
