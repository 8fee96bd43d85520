"""What do collectives reach over message sizes, by rank count, transport, placement of the ranks, and tuning?

Allreduce in float32 and in place is measured over all sizes; everything else at a few in quick, at all in full (on
CPUs up to 16 MiB).
"""

from suite.plugin import Check
from suite.records.case import Operation


def test_gloo(check: Check, world_size: int, message: int) -> None:
    """On the CPUs: a check of the machinery and of correctness. Loopback has no honest ceiling."""
    check("allreduce", backend="gloo", world_size=world_size, bytes=message)


def test_gloo_dtypes(check: Check, most_ranks: int, dtype: str, few_host_message: int) -> None:
    """Half-width elements on the CPUs."""
    check("allreduce", backend="gloo", world_size=most_ranks, dtype=dtype, bytes=few_host_message)


def test_gloo_out_of_place(check: Check, most_ranks: int, few_host_message: int) -> None:
    """Into another buffer than the rank's own message."""
    check("allreduce", backend="gloo", world_size=most_ranks, in_place=False, bytes=few_host_message)


def test_gloo_others(check: Check, most_ranks: int, collective: Operation, few_host_message: int) -> None:
    """The other collectives on the CPUs."""
    check(collective, backend="gloo", world_size=most_ranks, bytes=few_host_message)


def test_gloo_placed(check: Check, most_ranks: int, ranks_placed: str, few_host_message: int) -> None:
    """gloo's buffers follow first touch: ranks on one node against ranks on several move the data."""
    check("allreduce", backend="gloo", world_size=most_ranks, ranks_placed=ranks_placed, bytes=few_host_message)


def test_nccl(check: Check, gpu_world_size: int, transport: str, message: int) -> None:
    """On the GPUs, one rank each: eager calls over NCCL's own choice of transport and over shared memory."""
    check("allreduce", backend="nccl", world_size=gpu_world_size, transport=transport, bytes=message)


def test_nccl_graph(check: Check, gpu_world_size: int, transport: str, graph_message: int) -> None:
    """The same calls replayed as one CUDA graph: what the device takes without the cost of launching."""
    check("allreduce", backend="nccl", world_size=gpu_world_size, transport=transport, graph=True, bytes=graph_message)


def test_nccl_dtypes(check: Check, most_gpu_ranks: int, dtype: str, few_message: int) -> None:
    """Half-width elements."""
    check("allreduce", backend="nccl", world_size=most_gpu_ranks, transport="default", dtype=dtype, bytes=few_message)


def test_nccl_out_of_place(check: Check, most_gpu_ranks: int, few_message: int) -> None:
    """Into another buffer than the rank's own message."""
    check(
        "allreduce", backend="nccl", world_size=most_gpu_ranks, transport="default", in_place=False, bytes=few_message
    )


def test_nccl_others(check: Check, most_gpu_ranks: int, collective: Operation, few_message: int) -> None:
    """The other collectives."""
    check(collective, backend="nccl", world_size=most_gpu_ranks, transport="default", bytes=few_message)


def test_nccl_placed(
    check: Check, most_gpu_ranks: int, placed_transport: str, ranks_placed: str, few_message: int
) -> None:
    """The ranks' CPUs on their GPUs' nodes and on the farthest ones."""
    check(
        "allreduce",
        backend="nccl",
        world_size=most_gpu_ranks,
        transport=placed_transport,
        ranks_placed=ranks_placed,
        bytes=few_message,
    )


def test_nccl_host_buffers(
    check: Check, most_gpu_ranks: int, host_buffers: str, ranks_placed: str, few_message: int
) -> None:
    """Shared memory that follows the rank, in place of lying on the GPU's node: placement moves the data."""
    check(
        "allreduce",
        backend="nccl",
        world_size=most_gpu_ranks,
        transport="shm",
        tuning=host_buffers,
        ranks_placed=ranks_placed,
        bytes=few_message,
    )


def test_nccl_tuned(check: Check, most_gpu_ranks: int, tuning: str, message: int) -> None:
    """One of NCCL's settings changed: tuning or hardware?"""
    check("allreduce", backend="nccl", world_size=most_gpu_ranks, transport="default", tuning=tuning, bytes=message)


def test_nccl_graph_tuned(check: Check, most_gpu_ranks: int, graph_tuning: str, graph_message: int) -> None:
    """Graphs that do not register their buffers, as eager calls do not."""
    check(
        "allreduce",
        backend="nccl",
        world_size=most_gpu_ranks,
        transport="default",
        tuning=graph_tuning,
        graph=True,
        bytes=graph_message,
    )


def test_nccl_shared_gpu(check: Check, shared_world_size: int, few_message: int) -> None:
    """Several ranks on one GPU, a process each: functional-only, no link is crossed."""
    check("allreduce", backend="nccl", world_size=shared_world_size, transport="default", bytes=few_message)


def test_nccl_threads(check: Check, shared_world_size: int, message: int) -> None:
    """Several ranks on one GPU as threads of one process: functional-only, no link is crossed."""
    check(
        "allreduce",
        backend="nccl",
        world_size=shared_world_size,
        transport="default",
        ranks_as="threads",
        bytes=message,
    )
