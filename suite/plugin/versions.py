"""Do driver, torch and cupy fit together? Said in one sentence at the start, not by a worker's stack trace."""

from __future__ import annotations

from suite.records.machine import Machine, Software


def mismatches(machine: Machine) -> tuple[str, ...]:
    """Sentences; empty where there is no GPU (then nothing of it is used) or where everything fits."""
    if not machine.gpus:
        return ()
    software = machine.software
    found = [
        _driver_too_old(software, "torch", software.torch_cuda),
        _driver_too_old(software, "cupy", software.cupy_cuda),
        _different(software),
        _absent(software),
    ]
    return tuple(sentence for sentence in found if sentence)


def _driver_too_old(software: Software, library: str, built_for: str | None) -> str | None:
    """Within one major version of CUDA an older driver runs newer libraries (CUDA's minor version compatibility)."""
    has, needs = major(software.cuda_driver), major(built_for)
    if has is None or needs is None or has >= needs:
        return None
    return (
        f"{library} is built for CUDA {needs} and driver {software.driver or '(unknown)'} supports CUDA "
        f"{software.cuda_driver} at most: update the driver, or install {library} for CUDA {has}."
    )


def _different(software: Software) -> str | None:
    torch, cupy = major(software.torch_cuda), major(software.cupy_cuda)
    if torch is None or cupy is None or torch == cupy:
        return None
    return f"torch is built for CUDA {torch} and cupy for CUDA {cupy}: install cupy-cuda{torch}x in cupy's place."


def _absent(software: Software) -> str | None:
    if software.torch is None or software.cupy is not None:
        return None
    version = major(software.torch_cuda) or major(software.cuda_driver)
    package = f"cupy-cuda{version}x" if version else "cupy"
    return f"cupy is not installed, so that no GPU copy can be measured: install {package} (make venv picks it)."


def major(version: str | None) -> int | None:
    """'13.0' as 13; None for what is no version."""
    digits = (version or "").partition(".")[0]
    return int(digits) if digits.isdigit() else None
