"""A plan is complete: an engine looks nothing up."""

from dataclasses import replace

from suite.plan import cases, order
from suite.records.machine import NumaNode
from suite.records.run import Settings
from suite.units import GIB, KIB, MIB
from tests.plan.machines import two_nodes

QUICK = Settings()


def plan(operation: str, machine=None, settings: Settings = QUICK, **given: object):
    return cases.complete(machine or two_nodes(), settings, "group/case", operation, **given)


def test_a_copy_runs_on_the_cpus_of_the_buffers_node() -> None:
    made = plan("host_to_device", gpus=(0,), memory_node=1, bytes=MIB)
    assert (made.addresses, made.cpu_node, made.cpus) == (("0000:01:00.0",), 1, (4, 5, 6, 7))


def test_the_link_is_watched_over_at_least_half_a_second_from_the_gpus_own_node() -> None:
    made = plan("link_under_load", gpus=(1,))
    assert made.watch
    assert made.min_seconds >= 0.5
    assert made.memory_node == 1


def test_memory_of_a_node_without_cpus_is_copied_by_the_nearest_cpus() -> None:
    machine = two_nodes()
    bare = replace(machine, nodes=(*machine.nodes, NumaNode(index=2, memory_bytes=GIB, distances=(31, 14, 10))))
    assert plan("host_to_device", bare, gpus=(0,), memory_node=2, bytes=MIB).cpu_node == 1


def test_every_one_of_several_gpus_gets_a_buffer_on_its_own_node() -> None:
    made = plan("all_gpus_host_to_device", two_nodes(gpus=3), gpus=(0, 1, 2), bytes=MIB)
    assert made.gpu_nodes == (0, 1, 0)
    assert (made.memory_node, made.cpu_node, made.cpus) == (None, None, ())


def test_gpus_of_one_node_share_it_and_its_cpus() -> None:
    made = plan("all_gpus_both_ways", two_nodes(gpus=3), gpus=(0, 2), bytes=MIB)
    assert (made.gpu_nodes, made.memory_node, made.cpu_node) == ((0, 0), 0, 0)


def test_a_node_that_is_asked_for_is_that_of_all_gpus() -> None:
    made = plan("all_gpus_host_to_device", gpus=(0, 1), memory_node=1, bytes=MIB)
    assert (made.gpu_nodes, made.memory_node) == ((), 1)


def test_a_gpu_on_a_node_without_memory_uses_the_nearest_that_has_some() -> None:
    machine = two_nodes()
    empty, other = machine.nodes
    bare = replace(machine, nodes=(replace(empty, memory_bytes=0), other))
    assert plan("link_under_load", bare, gpus=(0,)).memory_node == 1
    assert plan("all_gpus_host_to_device", bare, gpus=(0, 1), bytes=MIB).gpu_nodes == (1, 1)


def test_host_memory_copies_are_larger_than_all_caches() -> None:
    made = plan("host_memory_copy", two_nodes(cache=200 * MIB), memory_node=0, target_node=1)
    assert made.bytes == 512 * MIB


def test_host_memory_copies_leave_the_nodes_most_of_their_free_memory() -> None:
    machine = two_nodes(cache=200 * MIB)
    tight = replace(machine, nodes=tuple(replace(n, free_bytes=GIB) for n in machine.nodes))
    assert plan("host_memory_copy", tight, memory_node=0, target_node=1).bytes == 128 * MIB


def test_host_memory_copies_use_one_cpu_a_core() -> None:
    made = plan("host_memory_copy", memory_node=0, target_node=0, cpu_node=1)
    assert made.cpus == (4, 5)


def test_small_copies_are_repeated_until_a_sample_is_long_enough_but_never_past_the_queue() -> None:
    assert cases.copy_iterations(4 * KIB) == 256
    assert cases.copy_iterations(256 * MIB) == 16
    assert [cases.copy_iterations(size) for size in (512 * MIB, GIB, 4 * GIB)] == [8, 4, 4]


def test_shared_memory_rows_switch_peer_to_peer_off() -> None:
    made = plan("allreduce", backend="nccl", world_size=2, transport="shm", bytes=8)
    assert made.variables == (("NCCL_P2P_DISABLE", "1"),)
    assert made.addresses == ("0000:01:00.0", "0000:02:00.0")
    assert made.iterations >= 20


def test_gloo_ranks_get_no_gpu() -> None:
    made = plan("allreduce", backend="gloo", world_size=2, bytes=8)
    assert made.gpus == ()


def test_ranks_near_their_gpus_and_far_from_them() -> None:
    given = {"backend": "nccl", "world_size": 2, "bytes": 8}
    assert plan("allreduce", ranks_placed="near", **given).rank_cpus == ((0, 1, 2, 3), (4, 5, 6, 7))
    assert plan("allreduce", ranks_placed="far", **given).rank_cpus == ((4, 5, 6, 7), (0, 1, 2, 3))
    assert plan("allreduce", **given).rank_cpus == ()


def test_gloo_ranks_lie_on_one_node_or_on_several() -> None:
    given = {"backend": "gloo", "world_size": 3, "bytes": 8}
    assert plan("allreduce", ranks_placed="near", **given).rank_cpus == ((0, 1, 2, 3),) * 3
    assert plan("allreduce", ranks_placed="far", **given).rank_cpus == ((0, 1, 2, 3), (4, 5, 6, 7), (0, 1, 2, 3))


def test_a_tuned_row_sets_its_variable_beside_the_transports() -> None:
    made = plan("allreduce", backend="nccl", world_size=2, bytes=8, transport="shm", tuning="host_buffers_follow_rank")
    assert made.variables == (("NCCL_P2P_DISABLE", "1"), ("NCCL_CUMEM_HOST_ENABLE", "0"))


def test_ranks_that_share_a_gpu_ask_nccl_for_it() -> None:
    made = plan("allreduce", two_nodes(gpus=1), backend="nccl", world_size=2, bytes=8, ranks_as="threads")
    assert made.gpus == (0, 0)
    assert ("NCCL_MULTI_RANK_GPU_ENABLE", "1") in made.variables
    assert made.processes == 1
    assert made.iterations == 100
    taking_turns = plan("allreduce", two_nodes(gpus=1), backend="nccl", world_size=2, bytes=8)
    assert (taking_turns.processes, taking_turns.iterations) == (2, 5)


def test_ranks_on_several_hosts_find_their_gpus_there() -> None:
    made = plan("allreduce", settings=Settings(several_hosts=True), backend="nccl", world_size=16, bytes=8)
    assert made.gpus == ()


def test_the_deadline_is_the_users() -> None:
    assert plan("host_to_device", settings=Settings(deadline_s=7.0), gpus=(0,), bytes=8).deadline_s == 7.0


def test_what_judges_comes_before_what_is_judged() -> None:
    names = ["allreduce/x", "mine/x", "host_copy/x", "link/x", "host_memory/x"]
    assert sorted(names, key=order.key) == ["link/x", "host_memory/x", "host_copy/x", "allreduce/x", "mine/x"]


def test_an_unavailable_group_keeps_its_reason() -> None:
    result = cases.unavailable("peer_copy/write", "peer_write", "needs two GPUs")
    assert result.verdict is not None
    assert (result.verdict.status, result.verdict.evidence) == ("UNAVAILABLE", ("needs two GPUs",))


def test_an_unavailable_group_has_an_operation_even_where_that_is_an_axis_without_values() -> None:
    assert cases.unavailable("peer_copy/direct", None, "needs two GPUs").operation == "peer_write"
