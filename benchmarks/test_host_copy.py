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
