"""Libraries that do not fit the driver or each other are named in one sentence at the start."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from suite.plugin.versions import mismatches
from tests.plugin.conftest import MACHINE, NO_GPU, Bench

pytest_plugins = "pytester"


def told(**software: Any) -> tuple[str, ...]:
    return mismatches(replace(MACHINE, software=replace(MACHINE.software, **software)))


def test_what_fits_is_not_mentioned() -> None:
    assert told() == ()


def test_a_newer_minor_version_fits_an_older_driver_of_the_same_major_version() -> None:
    assert told(cuda_driver="13.0", torch_cuda="13.2") == ()


def test_a_driver_that_is_too_old_is_named_with_what_it_supports() -> None:
    (torch, cupy) = told(driver="550.54", cuda_driver="12.4")
    assert torch.startswith(
        "torch is built for CUDA 13 and driver 550.54 supports CUDA 12.4 at most: update the driver"
    )
    assert cupy.startswith("cupy is built for CUDA 13")


def test_torch_and_cupy_for_different_versions_name_the_package_to_install() -> None:
    assert told(cupy_cuda="12") == (
        "torch is built for CUDA 13 and cupy for CUDA 12: install cupy-cuda13x in cupy's place.",
    )


def test_an_absent_cupy_names_the_package_to_install() -> None:
    (sentence,) = told(cupy=None, cupy_cuda=None)
    assert "install cupy-cuda13x" in sentence


@pytest.mark.parametrize("unknown", ["", "unknown", None])
def test_versions_that_are_not_known_are_no_mismatch(unknown: str | None) -> None:
    assert told(torch_cuda=unknown, cuda_driver=unknown) == ()


def test_without_a_gpu_nothing_needs_to_fit() -> None:
    assert mismatches(replace(NO_GPU, software=replace(NO_GPU.software, cuda_driver="11.0"))) == ()


def test_a_mismatch_is_in_the_header_and_in_the_summary(bench: Bench) -> None:
    bench.machine = replace(MACHINE, software=replace(MACHINE.software, cupy_cuda="12"))
    lines = bench.run("--sizes=8", "--gpus=0").outlines
    assert sum("torch is built for CUDA 13 and cupy for CUDA 12" in line for line in lines) == 2
