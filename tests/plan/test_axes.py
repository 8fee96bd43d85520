"""What there is to measure follows from the machine and the settings."""

from dataclasses import replace

from suite.plan import axes
from suite.records.machine import Environment, NumaNode, PciFunction
from suite.records.run import Settings
from suite.units import GIB, KIB, MIB, parse_sizes
from tests.plan.machines import two_nodes


def ids(name: str, machine=None, **settings: object) -> list[str] | str:
    found = axes.values(name, machine or two_nodes(), Settings(**settings))
    return found if isinstance(found, str) else [text for _, text in found]


def test_every_gpu_and_node_is_an_axis_value() -> None:
    assert ids("gpu") == ["gpu0", "gpu1"]
    assert ids("node") == ["node0", "node1"]
    assert ids("cpu_node") == ["cpus0", "cpus1"]


def test_pairs_are_ordered_pairs() -> None:
    assert ids("pair") == ["gpu0_gpu1", "gpu1_gpu0"]


def test_ids_hold_no_dash_because_pytest_joins_axes_with_it() -> None:
    for name in axes.NAMES:
        found = ids(name, two_nodes(gpus=3), effort="full", ranks_per_gpu=2)
        assert isinstance(found, list)
        assert not any("-" in text for text in found)


def test_without_a_gpu_the_reason_is_the_value() -> None:
    assert ids("gpu", two_nodes(gpus=0)) == "no driver"
    assert ids("gpu_world_size", two_nodes(gpus=0)) == "no driver"


def test_one_gpu_has_no_pair_and_no_allreduce() -> None:
    assert ids("pair", two_nodes(gpus=1)) == "needs two GPUs and one is there"
    assert ids("gpu_world_size", two_nodes(gpus=1)) == "needs two GPUs and one is there"


def test_a_node_without_memory_is_not_copied_from() -> None:
    machine = two_nodes()
    bare = replace(machine, nodes=(*machine.nodes, NumaNode(index=2, memory_bytes=0)))
    assert ids("node", bare) == ["node0", "node1"]


def test_a_gpu_s_own_memory_that_shows_as_a_node_is_no_host_memory() -> None:
    machine = two_nodes()
    coherent = replace(machine, nodes=(*machine.nodes, NumaNode(index=2, memory_bytes=GIB, gpu=0)))
    assert ids("node", coherent) == ["node0", "node1"]
    assert ids("target_node", coherent) == ["to_node0", "to_node1"]


def test_a_node_that_a_cgroup_forbids_is_left_alone() -> None:
    machine = replace(two_nodes(), environment=Environment(allowed_nodes=(1,)))
    assert ids("node", machine) == ["node1"]


def test_settings_narrow_the_axes() -> None:
    assert ids("gpu", gpus=(1,)) == ["gpu1"]
    assert ids("node", nodes=(0,)) == ["node0"]


def test_quick_copies_end_at_256_mib_and_full_ones_at_1_gib() -> None:
    assert axes.copy_sizes(Settings())[0] == 4 * KIB
    assert axes.copy_sizes(Settings())[-1] == 256 * MIB
    assert axes.copy_sizes(Settings(effort="full"))[-1] == GIB


def test_messages_of_decoding_are_in_every_default_sweep() -> None:
    assert {10 * KIB, 20 * KIB, 40 * KIB, 80 * KIB} <= set(axes.messages(Settings()))
    assert axes.messages(Settings())[0] == 8
    assert axes.messages(Settings())[-1] == 64 * MIB


def test_sizes_given_by_the_user_are_all_that_is_measured() -> None:
    assert axes.messages(Settings(sizes=parse_sizes("8..32"))) == (8, 16, 32)


def test_four_ranks_need_four_cpus() -> None:
    assert ids("world_size") == ["2ranks", "4ranks"]
    machine = two_nodes()
    small = replace(machine, nodes=(replace(machine.nodes[0], cpus=(0, 1)),))
    assert ids("world_size", small) == ["2ranks"]


def test_more_ranks_than_gpus_are_a_reason() -> None:
    assert ids("gpu_world_size", world_sizes=(8,)) == "needs 8 GPUs and 2 are there"


def test_quick_allreduce_runs_at_the_largest_world_size_only() -> None:
    assert ids("gpu_world_size", two_nodes(gpus=8)) == ["8ranks"]
    assert ids("gpu_world_size", two_nodes(gpus=8), effort="full") == ["2ranks", "4ranks", "8ranks"]


def test_quick_does_not_cube_the_nodes_of_a_large_machine() -> None:
    machine = two_nodes()
    large = replace(machine, nodes=tuple(NumaNode(index=i, cpus=(i,), memory_bytes=GIB) for i in range(8)))
    assert ids("cpu_node", large) == ["near_cpus"]
    assert len(ids("cpu_node", large, effort="full")) == 8


def below_one_port():
    """Two GPUs below one root port with a switch, a third one beside."""
    machine = two_nodes(gpus=3)
    ports = (
        PciFunction("0000:00:01.0", class_code=0x060400),
        PciFunction("0000:10:00.0", parent="0000:00:01.0", class_code=0x060400),
        PciFunction("0000:11:00.0", parent="0000:10:00.0", class_code=0x060400),
        PciFunction("0000:11:01.0", parent="0000:10:00.0", class_code=0x060400),
        PciFunction("0000:01:00.0", parent="0000:11:00.0"),
        PciFunction("0000:02:00.0", parent="0000:11:01.0"),
        PciFunction("0000:03:00.0", parent="0000:00:02.0"),
    )
    return replace(machine, pci=ports)


def test_gpus_that_share_a_port_are_a_group_named_by_the_lowest_one() -> None:
    assert axes.values("gpu_group", below_one_port(), Settings()) == [
        ((0, 1, 2), "all_gpus"),
        ((0, 1), "below_0000.10.00.0"),
    ]


def test_one_gpu_is_no_group() -> None:
    assert ids("gpu_group", two_nodes(gpus=1)) == "needs two GPUs and one is there"


def test_quick_staging_takes_each_gpu_alone_and_each_to_the_next() -> None:
    assert ids("route", two_nodes(gpus=3)) == ["gpu0", "gpu1", "gpu2", "gpu0_gpu1", "gpu1_gpu2", "gpu2_gpu0"]
    assert len(ids("route", two_nodes(gpus=3), effort="full")) == 3 + 6


def test_quick_judges_bandwidth_at_the_largest_size_only() -> None:
    assert ids("large_size") == ["256MiB"]
    assert ids("large_size", effort="full")[0] == "1MiB"
    assert ids("large_size", sizes=(8, 64)) == ["64B"]


def test_what_is_compared_with_each_other_is_measured_at_one_size() -> None:
    assert ids("one_size") == ids("one_size", effort="full") == ["256MiB"]
    assert ids("one_size", sizes=(8, 64, GIB)) == ["64B"]
    assert ids("one_size", sizes=(GIB,)) == ["1GiB"]


def test_placement_needs_two_nodes_with_cpus() -> None:
    machine = two_nodes()
    assert ids("ranks_placed") == ["ranks_near", "ranks_far"]
    assert "near and far are the same" in ids("ranks_placed", replace(machine, nodes=machine.nodes[:1]))


def test_quick_tunes_nothing_and_takes_two_sizes_of_what_is_not_the_sweep() -> None:
    assert "--effort full" in ids("tuning")
    assert ids("tuning", effort="full") == ["min_channels_8", "p2p_level_sys", "buffers_8MiB"]
    assert ids("few_message") == ["40KiB", "16MiB"]
    assert ids("few_message", effort="full") == ids("message", effort="full")
    assert ids("few_message", sizes=(8, 64)) == ["8B", "64B"]


def test_on_cpus_what_is_beside_the_main_sweep_ends_at_16_mib() -> None:
    assert ids("few_host_message") == ["40KiB", "16MiB"]
    assert ids("few_host_message", effort="full")[-1] == "16MiB"
    assert ids("few_host_message", sizes=(8, 1 << 30)) == ["8B", "1GiB"]


def test_ranks_share_a_gpu_only_where_asked_for() -> None:
    assert "--ranks-per-gpu 2" in ids("shared_world_size")
    assert ids("shared_world_size", two_nodes(gpus=1), ranks_per_gpu=2) == ["2ranks"]


def test_ranks_on_several_hosts_are_as_many_as_asked_for() -> None:
    assert ids("gpu_world_size", two_nodes(gpus=0), several_hosts=True, world_sizes=(16,)) == ["16ranks"]
    assert "--world-size" in ids("gpu_world_size", two_nodes(gpus=0), several_hosts=True)


def test_pageable_memory_is_swept_in_full_only_and_other_kinds_in_neither() -> None:
    assert ids("pageable_size") == ["256MiB"]
    assert ids("pageable_size", effort="full") == ids("size", effort="full")
    assert ids("memory") == ["host_alloc"]
    assert ids("memory", effort="full") == ["host_alloc", "huge", "write_combined"]
