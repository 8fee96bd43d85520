"""Every other cause of the catalogue: fired by the evidence it needs, and not without it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from suite.judge.findings import findings, headline
from suite.judge.rules import judge
from suite.judge.thresholds import Thresholds
from suite.records.case import HopWatch, Placement, Transport
from suite.records.machine import Environment, LinkState, Machine, PcieConfig
from suite.records.run import Failure, Limits, Result, Run, Settings, Verdict
from suite.units import KIB, MIB
from tests.data.machines import build
from tests.judge.small import GB, errors, judged, last, limits, link, result, under_load

PCIE = build.two_pcie()
ONE = replace(PCIE, gpus=PCIE.gpus[:1])


def copy(rate: float | None, now: float | None = 57.0, **fields: Any) -> Result:
    return result("host_to_device", rate, **{"memory_node": 0, "limits": limits(now), **fields})


def configured(machine: Machine, address: str, **config: Any) -> Machine:
    """The machine with other config values of one function."""
    return replace(
        machine,
        pci=tuple(
            replace(f, config=replace(f.config or PcieConfig(), **config)) if f.address == address else f
            for f in machine.pci
        ),
    )


# Above and below the ceiling


@pytest.mark.parametrize(
    ("case", "cause"),
    [
        (copy(57.5), "healthy"),
        (copy(59.0), "above_ceiling"),
        (result("both_ways", 110.0, limits=limits(115.0, utilisation=1.02)), "above_ceiling"),
        (result("both_ways", 110.0, limits=limits(105.0, utilisation=1.0)), "healthy"),
        (copy(70.0, limits=limits(57.0, hard=False)), "healthy"),
    ],
)
def test_more_than_a_hard_ceiling_is_never_a_pass(case: Result, cause: str) -> None:
    verdict = last(ONE, case)
    assert verdict.cause == cause
    assert (verdict.status == "PASS") == (cause == "healthy")


def test_far_below_without_a_reason_fails_and_somewhat_below_warns() -> None:
    assert last(ONE, copy(30.0)).cause == "slow_path"
    assert last(ONE, copy(41.0)).cause == "below_expected"


def test_the_expected_range_lowers_what_passes_on_paths_that_are_known_to_reach_less() -> None:
    expected = limits(45.8, expected=(0.68 * 45.8 * GB, 0.9 * 45.8 * GB))
    assert last(PCIE, result("peer_write", 31.5, gpus=(0, 1), p2p=True, limits=expected)).status == "PASS"


def test_switched_off_extended_tags_are_named_with_a_slow_copy() -> None:
    machine = configured(ONE, "0000:21:00.0", extended_tags=False)
    assert "extended tags are off on GPU0" in last(machine, copy(27.0)).evidence[0]


def test_an_unknown_limit_shows_the_value_and_what_it_behaves_like() -> None:
    verdict = last(ONE, under_load(LinkState()), copy(3.4, None))
    assert verdict.cause == "limit_unknown"
    assert "3.40 GB/s" in verdict.evidence[0]
    assert "Gen1 x16" in verdict.evidence[0]


# Several GPUs, peers behind an IOMMU, small messages


def together(rate: float, machine: Machine = PCIE) -> Verdict:
    alone = [copy(54.0, gpus=(gpu,), memory_node=gpu, limits=limits(57.0)) for gpu in (0, 1)]
    case = result("all_gpus_host_to_device", rate, gpus=(0, 1), limits=limits(114.0))
    return last(machine, *alone, case)


def test_gpus_that_are_slow_together_only_and_share_no_link_are_limited_above_their_ports() -> None:
    assert together(60.0).cause == "root_complex_limited"
    assert "108 GB/s in sum" in together(60.0).evidence[0]
    assert together(105.0).cause == "healthy"


def test_one_slow_gpu_that_all_wait_for_is_no_full_root_complex() -> None:
    """Both in order alone, one at 30 of 58: the total is twice the slower one."""
    alone = [copy(r, gpus=(g,), memory_node=g, limits=limits(m)) for g, r, m in ((0, 54.0, 57.0), (1, 30.0, 32.0))]
    case = result("all_gpus_host_to_device", 60.0, gpus=(0, 1), limits=limits(114.0))
    assert last(PCIE, *alone, case).cause != "root_complex_limited"


def test_gpus_below_one_switch_are_not_limited_by_the_root_complex() -> None:
    assert together(60.0, build.eight_pcie()).cause == "slow_path"


def test_an_iommu_that_translates_redirects_slow_peer_copies_below_one_switch() -> None:
    machine = replace(build.eight_pcie(), environment=Environment(iommu="DMA-FQ"))
    slow = result("peer_write", 12.0, gpus=(0, 1), p2p=True, limits=limits(57.0))
    assert last(machine, slow).cause == "p2p_redirected"
    assert "IOMMU translates them (DMA-FQ)" in last(machine, slow).evidence[0]
    passing = replace(machine, environment=Environment(iommu="identity"))
    assert last(passing, slow).cause == "slow_path"


@pytest.mark.parametrize(
    ("machine", "microseconds", "cause"),
    [
        (PCIE, 25.0, "small_message"),
        (PCIE, 115.0, "collective_latency"),
        (build.nvswitch(), 55.0, "small_message"),
        (build.nvswitch(), 210.0, "collective_latency"),
    ],
    ids=["PCIe in order", "PCIe slow", "NVLink in order", "NVLink slow"],
)
def test_a_small_allreduce_is_held_against_machines_in_order(machine: Machine, microseconds: float, cause: str) -> None:
    gpus = tuple(g.index for g in machine.gpus)
    took = (microseconds * 1e-6,) * 5
    case = result(
        "allreduce", bytes=8, gpus=gpus, backend="nccl", world_size=len(gpus), samples_s=took, limits=limits(45.8)
    )
    assert last(machine, case).cause == cause


# Doubt


def test_scattered_samples_do_not_bear_a_fail_when_the_best_one_is_in_order() -> None:
    rates = (55.0, 30.0, 31.0, 52.0, 29.0)
    case = copy(31.0, samples_s=tuple(64 * MIB / (r * GB) for r in rates))
    assert last(ONE, case).cause == "noisy"


def test_scattered_samples_that_are_all_slow_still_fail() -> None:
    rates = (20.0, 30.0, 22.0, 27.0, 18.0)
    assert last(ONE, copy(22.0, samples_s=tuple(64 * MIB / (r * GB) for r in rates))).cause == "slow_path"


def test_scattered_samples_in_order_pass_and_say_so() -> None:
    rates = (56.0, 47.0, 55.0, 48.0, 57.0)
    verdict = last(ONE, copy(55.0, samples_s=tuple(64 * MIB / (r * GB) for r in rates)))
    assert verdict.status == "PASS"
    assert any("spread" in sentence for sentence in verdict.evidence)


def test_two_samples_are_too_few_to_call_a_path_slow() -> None:
    assert last(ONE, copy(20.0, samples_s=(0.003, 0.0031))).cause == "too_few_samples"


def test_a_gpu_that_others_use_is_not_called_slow() -> None:
    busy = replace(ONE, gpus=(replace(ONE.gpus[0], utilization=0.8),))
    assert last(busy, copy(20.0)).cause == "busy_gpu"


def test_a_resident_process_is_not_busy() -> None:
    resident = replace(ONE, gpus=(replace(ONE.gpus[0], utilization=0.0, processes=1),))
    assert last(resident, copy(20.0)).cause == "slow_path"


def test_a_small_copy_is_not_judged_by_its_bandwidth() -> None:
    verdict = last(ONE, copy(0.5, bytes=64 * KIB))
    assert (verdict.status, verdict.cause) == ("PASS", "small_message")


def test_a_size_whose_start_costs_a_share_is_not_judged_either() -> None:
    """8 MiB at 400 GB/s takes 21 µs; a shortest operation of 10 µs makes half of it start."""
    machine = build.nvswitch()
    given: dict[str, Any] = {"backend": "nccl", "world_size": 8, "gpus": tuple(range(8)), "limits": limits(400.0)}
    tiny = result("allreduce", 0.001, bytes=8, samples_s=(10e-6,) * 5, **given)
    medium = result("allreduce", 180.0, bytes=8 * MIB, **given)
    large = result("allreduce", 180.0, bytes=512 * MIB, **given)
    assert [r.verdict.cause for r in judged(machine, tiny, medium, large) if r.verdict] == [
        "small_message",
        "small_message",
        "collective_below_limit",
    ]


# The link


def test_a_target_speed_set_at_the_port_is_configuration_not_a_fault() -> None:
    machine = configured(ONE, "0000:20:01.0", target_speed_gts=8.0)
    verdict = last(machine, under_load(link(3, 16)))
    assert (verdict.status, verdict.cause) == ("WARN", "configured_speed")


def test_a_driver_that_lowers_the_cards_own_target_at_idle_does_not_excuse_a_slow_link() -> None:
    machine = configured(ONE, "0000:21:00.0", target_speed_gts=2.5)
    assert last(machine, under_load(link(1, 16))).cause == "downtrained_speed"


def test_a_slow_link_with_a_hidden_other_end_cannot_be_called_a_fault() -> None:
    h200 = build.h200()
    hidden = replace(h200, gpus=(replace(h200.gpus[0], link_max=LinkState()),))
    assert last(hidden, under_load(link(3, 16))).cause == "slower_than_card"
    assert last(h200, under_load(link(3, 16))).cause == "downtrained_speed"


def test_a_slot_that_supports_less_is_said_and_passes() -> None:
    pci = build.slot("0000:21:00.0", "0000:20:01.0", link(5, 16), 0, link(4, 16))
    machine = build.machine(pci, [build.card(0, "card", pci, "0000:21:00.0")], build.nodes(1))
    verdict = last(machine, under_load(link(4, 16), rate=50.0, limits=limits(57.0)))
    assert (verdict.status, verdict.cause) == ("PASS", "platform_limited")
    assert "Gen5 x16" in verdict.evidence[0]


def test_a_link_that_changes_under_load_is_retraining() -> None:
    assert last(ONE, under_load(link(5, 16), watched={"changes": 3})).cause == "retraining"


def test_few_link_errors_warn_and_any_uncorrectable_one_fails() -> None:
    few = {"hops": (errors("0000:21:00.0", "0000:20:01.0", 2),), "aer_correctable": 2}
    assert last(ONE, under_load(link(5, 16), watched=few)).cause == "link_errors"
    assert last(ONE, under_load(link(5, 16), watched={"aer_uncorrectable": 1})).cause == "signal_integrity"
    assert last(ONE, under_load(link(5, 16), watched={"replays": 0})).status == "PASS"


def test_counters_that_are_not_reported_are_no_errors() -> None:
    assert last(ONE, under_load(link(5, 16), watched={"aer_correctable": None, "replays": None})).status == "PASS"


def test_a_reading_that_says_nothing_under_load_is_unknown() -> None:
    case = under_load(LinkState(), watched={"idle": LinkState(), "readings": 20})
    assert last(ONE, case).cause == "link_unknown"


def test_a_reduced_hop_above_a_switch_is_named_for_the_copies_too() -> None:
    machine = build.eight_pcie()
    hop = HopWatch("0000:11:00.0", "0000:10:01.0", load=link(3, 16))
    watched = {"hops": (HopWatch("0000:13:00.0", load=link(5, 16)), hop)}
    case = under_load(link(5, 16), watched=watched)
    slow = copy(14.0, limits=limits(14.6, 58.4))
    for one in judged(machine, case, slow):
        assert one.verdict
        assert one.verdict.cause == "downtrained_speed"
        assert one.verdict.binding == "0000:10:01.0 – 0000:11:00.0"
        assert "the hop above GPU0" in one.verdict.evidence[0]


# Copies and memory


def test_a_far_node_a_little_slower_passes_and_a_good_deal_slower_warns() -> None:
    near = copy(55.0)
    assert last(PCIE, near, copy(45.0, memory_node=1)).status == "PASS"
    assert last(PCIE, near, copy(35.0, memory_node=1)).cause == "numa_far_weak"


def test_a_far_node_measured_first_is_held_against_an_equal_gpu() -> None:
    """GPU1's node 0 comes before its own node; GPU0's near copy stands in."""
    assert last(PCIE, copy(55.0), copy(12.0, gpus=(1,), memory_node=0)).cause == "numa_far_slow"


def test_a_gpu_that_is_slow_from_its_own_node_too_is_not_called_far() -> None:
    equal = copy(54.0, memory_node=0, gpus=(0,))
    slow = under_load(link(5, 16), gpu=1, rate=23.8)
    slow = replace(slow, directions={"host_to_device": 12.0 * GB, "device_to_host": 12.0 * GB})
    verdict = last(PCIE, equal, slow, copy(12.0, memory_node=0, gpus=(1,)))
    assert verdict.status == "FAIL"
    assert not verdict.cause.startswith("numa_far")


def test_a_node_that_is_faster_than_the_near_one_makes_the_mapping_suspect() -> None:
    verdict = last(PCIE, copy(20.0, None), copy(55.0, memory_node=1))
    assert (verdict.status, verdict.cause) == ("WARN", "numa_node_suspect")


def test_a_gpu_without_a_known_node_is_compared_with_its_best_node() -> None:
    unknown = replace(ONE, gpus=(replace(ONE.gpus[0], numa_node=None),))
    assert last(unknown, copy(55.0), copy(12.0, memory_node=1)).cause == "numa_far_slow"


def test_a_buffer_elsewhere_says_nothing_of_the_node() -> None:
    placed = Placement(node=0, proved=False, detail="12 of 16 pages lie on node 1.")
    assert last(ONE, copy(55.0, placement=placed)).cause == "placement_elsewhere"


def test_a_placement_without_proof_passes_and_says_so() -> None:
    verdict = last(ONE, copy(55.0, placement=Placement(node=0, proved=None, detail="move_pages is not permitted")))
    assert verdict.status == "PASS"
    assert "placement not proved: move_pages is not permitted" in verdict.evidence


def test_one_weak_direction_is_told_by_the_copies_that_loaded_the_link() -> None:
    both = under_load(link(5, 16), rate=60.0, directions={"host_to_device": 24 * GB, "device_to_host": 50 * GB})
    assert last(ONE, both, copy(24.0)).cause == "one_direction_weak"


def test_both_ways_that_carry_no_more_than_one_collapse() -> None:
    given = {"memory_node": 0, "limits": limits(115.0)}
    assert last(ONE, copy(55.0), result("both_ways", 58.0, **given)).cause == "both_ways_collapse"
    assert last(ONE, copy(55.0), result("both_ways", 100.0, **given)).status == "PASS"


def test_gpus_that_fill_a_shared_uplink_are_in_order() -> None:
    machine = build.eight_pcie()
    alone = [copy(55.0, gpus=(g,)) for g in (0, 1)]
    together = result("all_gpus_host_to_device", 56.0, gpus=(0, 1), limits=limits(58.4, binding="0000:11:00.0"))
    verdict = last(machine, *alone, together)
    assert (verdict.status, verdict.cause) == ("PASS", "shared_uplink")


def test_host_memory_that_caps_a_copy_is_blamed() -> None:
    memory = result("host_memory_copy", 15.0, case="host_memory/copy", gpus=(), memory_node=0, target_node=0)
    assert last(ONE, memory, copy(28.0)).cause == "host_limited"
    assert last(ONE, memory, copy(10.0)).cause == "slow_path"


def test_host_memory_is_not_blamed_for_less_than_a_copy_took_from_it() -> None:
    """28 GB/s through memory of which processors copied 9: with stores that read first, that was 27."""
    memory = result("host_memory_copy", 9.0, case="host_memory/copy", gpus=(), memory_node=0, target_node=0)
    assert last(ONE, memory, copy(28.0)).cause == "slow_path"


def test_a_node_with_slow_memory_of_its_own_is_named() -> None:
    def memory(rate: float, node: int, target: int) -> Result:
        given = {"case": f"host_memory/{node}/{target}", "gpus": (), "memory_node": node, "target_node": target}
        return result("host_memory_copy", rate, cpu_node=node, limits=limits(None, hard=False), **given)

    assert last(PCIE, memory(60.0, 0, 0), memory(30.0, 1, 1)).cause == "memory_node_slow"
    assert last(PCIE, memory(60.0, 0, 0), memory(10.0, 0, 1)).cause == "memory_far_slow"
    assert last(PCIE, memory(60.0, 0, 0), memory(30.0, 0, 1)).status == "PASS"


# Peers and collectives


def test_acs_redirect_on_a_slow_peer_path_is_named_with_its_ports() -> None:
    machine = configured(build.eight_pcie(), "0000:12:00.0", acs_redirect=True)
    slow = result("peer_write", 12.0, case="peer_copy/write", gpus=(0, 1), p2p=True, limits=limits(45.8))
    verdict = last(machine, slow)
    assert (verdict.status, verdict.cause) == ("FAIL", "p2p_redirected")
    assert "0000:12:00.0" in verdict.evidence[0]


@pytest.mark.parametrize(("rate", "status"), [(35.7, "PASS"), (15.0, "FAIL")])
def test_the_drivers_own_staging_fills_part_of_a_path_that_is_in_order(rate: float, status: str) -> None:
    verdict = last(PCIE, result("peer_write", rate, gpus=(0, 1), p2p=False, limits=limits(57.6)))
    assert verdict.status == status
    assert (verdict.cause == "driver_staging") == (status == "PASS")


def test_shared_memory_where_all_pairs_have_p2p_is_unexpected() -> None:
    given: dict[str, Any] = {"backend": "nccl", "world_size": 8, "gpus": tuple(range(8)), "bytes": 256 * MIB}
    taken = result("allreduce", 300.0, transport_taken=Transport("SHM/direct"), limits=limits(400.0), **given)
    assert last(build.nvswitch(), taken).cause == "transport_unexpected"
    across = replace(taken, gpus=(0, 1), world_size=2)
    assert last(PCIE, across).cause != "transport_unexpected"


def test_gloo_is_judged_by_its_values_only() -> None:
    gloo = result("allreduce", 0.01, gpus=(), backend="gloo", world_size=2, case="allreduce/gloo")
    assert last(Machine(), gloo).cause == "correct"


def test_ranks_that_share_a_gpu_measure_no_link() -> None:
    shared = result("allreduce", 400.0, gpus=(0,), backend="nccl", world_size=2, case="allreduce/nccl")
    assert last(ONE, shared).cause == "functional_only"


# Cases that did not end well


@pytest.mark.parametrize(("kind", "cause"), [("crash", "crash"), ("error", "worker_error")])
def test_a_failed_worker_fails_the_case(kind: Any, cause: str) -> None:
    assert last(ONE, copy(None, error=Failure(kind, "out of memory"))).cause == cause


def test_a_case_that_another_one_stands_for_is_not_sampled() -> None:
    assert last(ONE, copy(None, represented_by="host_copy/gpu1")).status == "NOT_SAMPLED"


def test_an_empty_answer_is_not_a_pass() -> None:
    assert last(ONE, copy(None)).cause == "not_measured"


# Findings and the headline


def test_a_container_with_little_shared_memory_is_told() -> None:
    machine = replace(ONE, environment=Environment(shm_bytes=64 * MIB, memlock_bytes=64 * KIB))
    assert {f.cause for f in findings(Run(machine, Settings()))} == {"small_shm", "small_memlock"}


def test_acs_redirect_matters_only_between_gpus() -> None:
    machine = configured(PCIE, "0000:20:01.0", acs_redirect=True)
    assert [f.cause for f in findings(Run(machine, Settings()))] == ["acs_redirect"]
    assert not findings(Run(replace(machine, gpus=machine.gpus[:1]), Settings()))


@pytest.mark.parametrize(
    ("results", "complete", "expected"),
    [
        ((), False, "Nothing was measured before the run was broken off. The run is incomplete: 0 of 3 cases ended."),
        ((), True, "Nothing was measured: no driver."),
        ((copy(55.0),), True, "What was measured is right: the one case passes. No GPU path was measured: no driver."),
        ((copy(55.0), copy(20.0, None)), True, "No fault found, but 1 of 2 cases could not be judged."),
    ],
)
def test_the_headline_answers_for_what_there_is(results: tuple[Result, ...], complete: bool, expected: str) -> None:
    machine = Machine(why_no_gpu="no driver")
    run = Run(machine, Settings(), tuple(judged(machine, *results)), planned=3, complete=complete)
    assert headline(run, findings(run)).startswith(expected)


def test_a_wrong_copy_and_a_slow_link_are_two_findings() -> None:
    wrong = result("peer_write", case="peer_copy/write", gpus=(0, 1), verified=False, samples_s=(1e-3,) * 5, p2p=True)
    run = Run(PCIE, Settings(), tuple(judged(PCIE, under_load(link(1, 16), 1), wrong)), 2, complete=True)
    assert [f.cause for f in findings(run)] == ["wrong_data", "downtrained_speed"]


def test_a_threshold_can_be_overridden() -> None:
    strict = Thresholds(healthy_fraction=0.95, margin=0.0)
    assert judge(copy(50.0), ONE, (), strict).cause == "below_expected"
    assert judge(copy(50.0), ONE, ()).status == "PASS"


def test_no_limits_at_all_is_an_unknown_limit() -> None:
    seen = under_load(LinkState())
    assert last(ONE, seen, copy(20.0, limits=None)).cause == "limit_unknown"
    assert last(ONE, seen, copy(20.0, limits=Limits())).cause == "limit_unknown"


def test_small_copies_both_ways_over_a_slow_link_are_no_late_starts() -> None:
    """Both directions' bytes take their time: 2 MiB each way over Gen1, beside a GPU at Gen5."""
    given = {"memory_node": None, "bytes": 2 * MIB}
    fast = result("both_ways", 89.0, gpus=(0,), limits=limits(114.0), samples_s=(47e-6,) * 5, **given)
    slow = result("both_ways", 6.1, gpus=(1,), limits=limits(7.2), samples_s=(687e-6,) * 5, **given)
    assert last(PCIE, fast, slow).status == "PASS"


def test_one_direction_of_a_loaded_link_makes_no_near_node_suspect() -> None:
    """It ran beside the other direction; alone the copy is naturally faster."""
    both = under_load(link(5, 16), rate=56.0, directions={"host_to_device": 28 * GB, "device_to_host": 28 * GB})
    assert last(PCIE, replace(both, memory_node=0), copy(54.0, memory_node=1)).cause != "numa_node_suspect"
