"""Allreduce: latency and bandwidth over message sizes, by rank count and transport."""

from suite.plugin import Check


def test_gloo(check: Check, world_size: int, message: int) -> None:
    """On the CPUs: a check of the machinery and of correctness. Loopback has no honest ceiling."""
    check("allreduce", backend="gloo", world_size=world_size, bytes=message)


def test_nccl(check: Check, gpu_world_size: int, transport: str, message: int) -> None:
    """On the GPUs, one rank each, over NCCL's own choice of transport and over shared memory."""
    check("allreduce", backend="nccl", world_size=gpu_world_size, transport=transport, bytes=message)
