"""What do the links between host memory and each GPU deliver, from and to every NUMA node?"""

from suite.plugin import Check


def test_host_to_device(check: Check, gpu: int, node: int, size: int) -> None:
    """Copy engine, pinned memory of one node, one way."""
    check("host_to_device", gpus=(gpu,), memory_node=node, bytes=size)


def test_device_to_host(check: Check, gpu: int, node: int, size: int) -> None:
    """Copy engine, pinned memory of one node, one way."""
    check("device_to_host", gpus=(gpu,), memory_node=node, bytes=size)


def test_both_ways(check: Check, gpu: int, node: int, size: int) -> None:
    """Both directions at once, each measured while the other one runs."""
    check("both_ways", gpus=(gpu,), memory_node=node, bytes=size)


def test_host_to_device_latency(check: Check, gpu: int, node: int) -> None:
    """One small copy, from launch to completion."""
    check("host_to_device_latency", gpus=(gpu,), memory_node=node)


def test_device_to_host_latency(check: Check, gpu: int, node: int) -> None:
    """One small copy, from launch to completion."""
    check("device_to_host_latency", gpus=(gpu,), memory_node=node)


def test_host_device_load_latency(check: Check, gpu: int, node: int) -> None:
    """One dependent load by a GPU thread from host memory."""
    check("host_device_load_latency", gpus=(gpu,), memory_node=node)


def test_host_to_device_sm(check: Check, gpu: int, node: int, large_size: int) -> None:
    """A kernel reads host memory: what NCCL's kernels can reach."""
    check("host_to_device", engine="sm", gpus=(gpu,), memory_node=node, bytes=large_size)


def test_device_to_host_sm(check: Check, gpu: int, node: int, large_size: int) -> None:
    """A kernel writes host memory."""
    check("device_to_host", engine="sm", gpus=(gpu,), memory_node=node, bytes=large_size)


def test_both_ways_sm(check: Check, gpu: int, node: int, large_size: int) -> None:
    """Kernels read and write host memory at once."""
    check("both_ways", engine="sm", gpus=(gpu,), memory_node=node, bytes=large_size)


def test_host_to_device_from(check: Check, gpu: int, memory: str, one_size: int) -> None:
    """Other kinds of page-locked memory on the GPU's own node: they ought to be as fast as registered memory."""
    check("host_to_device", gpus=(gpu,), memory=memory, bytes=one_size)


def test_device_to_host_into(check: Check, gpu: int, memory: str, one_size: int) -> None:
    """Other kinds of page-locked memory on the GPU's own node."""
    check("device_to_host", gpus=(gpu,), memory=memory, bytes=one_size)


def test_host_to_device_pageable(check: Check, gpu: int, node: int, pageable_size: int) -> None:
    """From memory that is not pinned: what is pinning worth?"""
    check("host_to_device", gpus=(gpu,), memory="pageable", memory_node=node, bytes=pageable_size, iterations=4)


def test_device_to_host_pageable(check: Check, gpu: int, node: int, pageable_size: int) -> None:
    """Into memory that is not pinned."""
    check("device_to_host", gpus=(gpu,), memory="pageable", memory_node=node, bytes=pageable_size, iterations=4)


def test_all_gpus_host_to_device(check: Check, gpu_group: tuple[int, ...], one_size: int) -> None:
    """Every GPU at once: do they share an uplink?"""
    check("all_gpus_host_to_device", gpus=gpu_group, bytes=one_size)


def test_all_gpus_device_to_host(check: Check, gpu_group: tuple[int, ...], one_size: int) -> None:
    """Every GPU at once: do they share an uplink?"""
    check("all_gpus_device_to_host", gpus=gpu_group, bytes=one_size)


def test_all_gpus_both_ways(check: Check, gpu_group: tuple[int, ...], one_size: int) -> None:
    """Every GPU at once, both ways."""
    check("all_gpus_both_ways", gpus=gpu_group, bytes=one_size)
