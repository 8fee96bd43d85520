"""What users met in the field, each with the verdict that a right tool gives. Numbers are GB/s."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

import pytest

from suite.judge.findings import findings
from suite.judge.rules import judge
from suite.judge.words import where
from suite.records.case import Operation, Transport
from suite.records.machine import Environment, LinkState, Machine
from suite.records.run import Failure, Result, Run, Settings, Verdict
from suite.records.scenario import Scenario
from suite.units import GIB, MIB
from tests.data.machines import build
from tests.judge.pipeline import measured, run
from tests.judge.small import errors, judged, last, limits, link, result, under_load, watch

SCENARIOS = build.scenarios()
PCIE = build.two_pcie()


def verdict_of(one: Result) -> Verdict:
    assert one.verdict is not None
    return one.verdict


def ceiling(one: Result) -> float:
    """Bytes per second."""
    assert one.limits is not None
    assert one.limits.now is not None
    return one.limits.now


def allreduce(
    machine: Machine, rate: float, transport: str, algorithm: str, so_far: Sequence[Result] = (), **given: int
) -> Result:
    """NCCL's own choice over all GPUs, with its real limits. rate: bus bandwidth, GB/s."""
    taken = Transport(transport, algorithm, "Simple")
    count = len(machine.gpus)
    return measured(
        machine, "allreduce/nccl", "allreduce", rate, so_far,
        backend="nccl", world_size=count, transport="default", transport_taken=taken, **given,
    )  # fmt: skip


def test_1_an_idle_reading_is_never_a_fault() -> None:
    """Gen1 at P8, read while nothing ran; the card is Gen4."""
    case = result("link_under_load", case="link/under_load/gpu0", link=watch(LinkState()), samples_s=(1e-3,))
    verdict = judge(case, build.two_pcie(gen=4), ())
    assert (verdict.status, verdict.cause) == ("INDETERMINATE", "link_idle_only")
    assert "Gen1 x16" in verdict.evidence[0]


def test_2_gen1_during_transfers_is_a_downtrained_link() -> None:
    verdict = last(PCIE, under_load(link(1, 16), rate=6.2))
    assert (verdict.status, verdict.cause) == ("FAIL", "downtrained_speed")
    assert "Gen1 x16" in verdict.evidence[0]
    assert "Gen5 x16" in verdict.evidence[0]
    assert verdict.binding == "0000:20:01.0 – 0000:21:00.0"


def test_3_a_far_node_several_times_slower_fails_while_the_link_passes() -> None:
    machine = build.one_gen3()
    case = under_load(link(3, 16), rate=24.0, limits=limits(28.6))
    near = result("host_to_device", 12.89, memory_node=0, limits=limits(14.61))
    far = result("host_to_device", 2.54, memory_node=1, limits=limits(14.61))
    one, two, three = (r.verdict for r in judged(machine, case, near, far))
    assert one
    assert two
    assert three
    assert (one.status, two.status) == ("PASS", "PASS")
    assert (three.status, three.cause) == ("FAIL", "numa_far_slow")
    assert "node 1" in three.evidence[0]
    assert "--membind=0" in (three.advice or "")


def test_4_a_coherent_link_has_no_pcie_limit_and_its_far_node_still_fails() -> None:
    unknown = limits(None, hard=False, why="The PCIe model is not applicable.")
    near = result("device_to_host", 330.0, memory_node=0, limits=unknown)
    far = result("device_to_host", 115.0, memory_node=1, limits=unknown)
    done = judged(build.c2c(), near, far)
    assert [r.verdict.status for r in done if r.verdict] == ["INDETERMINATE", "FAIL"]
    assert done[1].verdict
    assert done[1].verdict.cause == "numa_far_slow"


def test_5_the_same_rate_on_every_node_is_no_alarm() -> None:
    rates = [result("host_to_device", 27.8 + n / 10, memory_node=n, limits=limits(29.22)) for n in range(4)]
    assert {r.verdict.status for r in judged(build.four_nodes(), *rates) if r.verdict} == {"PASS"}


def test_6_geforce_cards_have_no_p2p_by_design() -> None:
    machine = SCENARIOS["2xpcie-no-p2p"].machine
    nothing = result("peer_write", case="peer_copy/write", gpus=(0, 1), p2p=True)
    verdict = last(machine, nothing)
    assert (verdict.status, verdict.cause) == ("UNAVAILABLE", "p2p_unavailable")
    assert "GNS" in verdict.evidence[0]
    assert "By design (GNS" in (verdict.advice or "")


def test_6_staging_is_judged_by_what_the_shared_uplink_carries() -> None:
    """Both ways below one switch load its uplink twice, across sockets once; one way loads it once each way."""
    machine = SCENARIOS["3xpcie-no-p2p-switch"].machine
    assert [pair.topology for pair in machine.pairs] == ["PIX", "SYS", "SYS"]
    links = run(Scenario(machine), groups=("link",)).run.results

    def staged(operation: Operation, rate: float, *pair: int) -> Result:
        return measured(machine, f"peer_copy/{operation}", operation, rate, links, gpus=pair, p2p=False, bytes=64 * MIB)

    near, far = staged("peer_both_ways", 25.0, 0, 1), staged("peer_both_ways", 50.0, 0, 2)
    assert (verdict_of(near).status, verdict_of(far).status) == ("PASS", "PASS")
    assert ceiling(near) == pytest.approx(ceiling(far) / 2)
    assert "0000:11:00.0" in (verdict_of(near).binding or "")
    one_way = staged("peer_write", 25.0, 0, 1), staged("peer_write", 26.0, 0, 2)
    assert {verdict_of(one).status for one in one_way} == {"PASS"}
    assert ceiling(one_way[0]) == pytest.approx(ceiling(one_way[1]), rel=0.05)


def test_6_a_ring_through_shared_memory_is_judged_by_the_shared_uplink_too() -> None:
    machine = SCENARIOS["3xpcie-no-p2p-switch"].machine
    links = run(Scenario(machine), groups=("link",)).run.results
    ring = allreduce(machine, 10.0, "SHM", "Ring", links, bytes=64 * MIB)
    assert verdict_of(ring).status == "PASS"
    assert ceiling(ring) == pytest.approx(45.83e9 / 4, rel=0.01)


def test_7_wrong_bytes_fail_and_show_no_bandwidth() -> None:
    copied = result(
        "peer_write", case="peer_copy/write", gpus=(0, 1), verified=False, wrong="4096 bytes differ", p2p=True
    )
    verdict = last(PCIE, replace(copied, samples_s=(1e-3,) * 5))
    assert (verdict.status, verdict.cause) == ("FAIL", "wrong_data")
    assert "GB/s" not in " ".join(verdict.evidence)


def test_8_p2p_slower_than_staging_below_one_host_bridge_suspects_acs_or_the_iommu() -> None:
    machine = build.eight_pcie()
    staged = result("peer_write", 22.0, case="peer_copy/staged", gpus=(0, 1), p2p=False, limits=limits(28.0))
    direct = result("peer_write", 9.9, case="peer_copy/p2p", gpus=(0, 1), p2p=True, limits=limits(45.8))
    verdict = last(machine, staged, direct)
    assert (verdict.status, verdict.cause) == ("FAIL", "p2p_slower_than_staging")
    assert "ACS" in verdict.evidence[0]
    assert "iommu=pt" in (verdict.advice or "")


def test_8_p2p_slower_than_staging_across_numa_nodes_is_worth_a_look_and_no_fault() -> None:
    staged = result("peer_write", 46.0, case="peer_copy/staged", gpus=(0, 1), p2p=False, limits=limits(50.0))
    direct = result("peer_write", 37.0, case="peer_copy/p2p", gpus=(0, 1), p2p=True, limits=limits(45.8))
    verdict = last(PCIE, staged, direct)
    assert (verdict.status, verdict.cause) == ("WARN", "p2p_far")
    assert "keep NCCL's default" in (verdict.advice or "")


def test_9_a_narrow_hop_above_the_card_is_named() -> None:
    judged_run = run(SCENARIOS["2xpcie-x4-hop"], groups=("link", "host_copy"))
    verdict = judged_run.verdict("link/under_load/gpu1")
    assert verdict.cause == "upstream_hop_uneven"
    assert verdict.binding == "0000:00:1c.0 – 0000:02:00.0"
    assert "Gen4 x4" in verdict.evidence[0]
    assert judged_run.statuses("host_copy") == {"PASS"}
    assert "GPU1 gets half of GPU0's bandwidth (" in judged_run.headline
    assert "the hop above its slot" in judged_run.headline


def test_10_a_blank_link_leaves_the_limit_unknown_and_shows_what_was_measured() -> None:
    judged_run = run(SCENARIOS["1xvm-blank-link"], groups=("link", "host_copy"))
    assert judged_run.verdict("link/under_load/gpu0").cause == "link_hidden"
    verdict = judged_run.verdict("host_copy/host_to_device/gpu0/node0/256MiB")
    assert (verdict.status, verdict.cause) == ("INDETERMINATE", "limit_unknown")
    assert "GB/s measured" in verdict.evidence[0]
    assert "behaves like Gen3 x16" in verdict.evidence[0]


def test_11_the_limit_counts_the_nvlinks_that_are_there() -> None:
    """A PCIe H100 has 12 links where the SXM part has 18: equal siblings say that nothing is down."""
    judged_run = run(SCENARIOS["2xh100-nvl"], groups=("link", "peer_copy", "allreduce"))
    assert judged_run.statuses() == {"PASS"}
    limited = [r for r in judged_run.run.results if r.case.endswith(("/p2p/64MiB", "default/256MiB"))]
    assert {ceiling(r) for r in limited} == {12 * 25e9}
    assert not judged_run.found


def test_11_fewer_active_nvlinks_than_an_equal_gpu_are_said() -> None:
    machine = build.nvswitch()
    first = replace(machine.gpus[0], nvlinks=tuple(replace(n, active=n.index > 1) for n in machine.gpus[0].nvlinks))
    found = findings(Run(replace(machine, gpus=(first, *machine.gpus[1:])), Settings()))
    down = next(f for f in found if f.cause == "nvlink_partly_down")
    assert (down.subject, down.status) == ("GPU0", "WARN")
    assert "16 of 18" in down.sentence


def test_12_a_larger_payload_is_no_problem() -> None:
    """MPS 512 raises the ceiling a little; nothing compares it with 256."""
    pci = tuple(replace(f, config=replace(f.config, mps=512)) for f in PCIE.pci if f.config)
    judged_run = run(Scenario(replace(PCIE, pci=pci), efficiency=0.95), groups=("link", "host_copy"))
    assert judged_run.statuses() == {"PASS"}
    case = "host_copy/device_to_host/gpu0/node0/256MiB"
    limited = next(r for r in judged_run.run.results if r.case == case)
    assert ceiling(limited) == pytest.approx(60.19e9, rel=0.001)
    assert (limited.bandwidth or 0) > 0.98 * 57.61e9 * 0.95


def test_13_rising_link_errors_are_bad_signals_read_at_both_ends() -> None:
    hops = (errors("0000:21:00.0", "0000:20:01.0", 135),)
    case = under_load(link(5, 16), rate=100.0, watched={"hops": hops, "aer_correctable": 135})
    verdict = last(PCIE, case)
    assert (verdict.status, verdict.cause) == ("FAIL", "signal_integrity")
    assert verdict.binding == "0000:20:01.0 – 0000:21:00.0"
    assert "0000:20:01.0 counted 135" in " ".join(verdict.evidence)


def test_14_the_whole_path_counts_not_the_endpoint_alone() -> None:
    """The endpoint says 32 GT/s x16; the card's own edge is 16 GT/s x8."""
    judged_run = run(SCENARIOS["1xpcie-narrow-edge"], groups=("link", "host_copy"))
    verdict = judged_run.verdict("link/under_load/gpu0")
    assert (verdict.status, verdict.cause) == ("PASS", "upstream_hop_narrower")
    assert verdict.binding == "0000:00:01.0 – 0000:01:00.0"
    assert "Gen4 x8" in verdict.evidence[0]
    assert judged_run.statuses() == {"PASS"}
    copied = next(r for r in judged_run.run.results if r.case == "host_copy/device_to_host/gpu0/node0/256MiB")
    assert ceiling(copied) == pytest.approx(28.81e9 / 2, rel=0.001)
    assert "0000:01:00.0 16 GT/s x8" in (verdict_of(copied).binding or "")


def test_15_half_width_is_a_warning_unless_something_decides() -> None:
    alone = replace(PCIE, gpus=PCIE.gpus[:1])
    verdict = last(alone, under_load(link(5, 8)))
    assert (verdict.status, verdict.cause) == ("WARN", "downtrained_width")
    assert "wiring, bifurcation or a fault" in verdict.evidence[0]


def test_15_cards_that_all_run_at_half_width_stay_a_warning() -> None:
    judged_run = run(SCENARIOS["4xvm-x8"], groups=("link", "host_copy"))
    assert judged_run.statuses() == {"WARN", "PASS"}
    assert judged_run.verdict("link/under_load/gpu3").cause == "downtrained_width"


def test_15_an_equal_card_at_full_width_makes_half_width_a_fault() -> None:
    verdict = last(PCIE, under_load(link(5, 16), 1), under_load(link(5, 8), 0))
    assert (verdict.status, verdict.cause) == ("FAIL", "width_fault")
    assert "GPU1" in verdict.evidence[0]


def test_15_link_errors_make_half_width_a_fault() -> None:
    hops = (replace(errors("0000:21:00.0", "0000:20:01.0", 1), load=link(5, 8)),)
    machine = replace(PCIE, gpus=PCIE.gpus[:1])
    assert last(machine, under_load(link(5, 8), watched={"hops": hops})).cause == "width_fault"


def test_16_wrong_elements_of_an_allreduce_fail() -> None:
    wrong = result("allreduce", case="allreduce/nccl", gpus=(0, 1), backend="nccl", world_size=2, verified=False)
    assert last(PCIE, replace(wrong, samples_s=(1e-4,) * 5)).cause == "wrong_data"


def test_17_a_hang_fails_with_advice_about_iommu_and_acs() -> None:
    failure = Failure("hang", "no answer within 30 s", ("rank 0: ring ready", ""))
    hung = result("allreduce", case="allreduce/nccl", gpus=(0, 1), backend="nccl", world_size=2, error=failure)
    verdict = last(replace(PCIE, environment=Environment(shm_bytes=64 * MIB)), hung)
    assert (verdict.status, verdict.cause) == ("FAIL", "hang")
    assert "iommu" in (verdict.advice or "")
    assert "ACS" in (verdict.advice or "")
    assert "rank 0 last said: rank 0: ring ready" in verdict.evidence
    assert "/dev/shm has only 64MiB" in verdict.evidence


def test_18_a_small_bar1_is_a_warning() -> None:
    gpus = tuple(replace(g, bar1_bytes=256 * MIB, memory_bytes=24 * GIB) for g in PCIE.gpus[:1])
    found = findings(Run(Machine(gpus=gpus), Settings()))
    assert [(f.status, f.cause) for f in found] == [("WARN", "small_bar1")]
    assert "256 MiB of 24 GiB" in found[0].sentence


def test_19_the_workstation_at_idle_is_not_called_faulty() -> None:
    machine = build.a6000s()
    idle = [replace(under_load(LinkState(), gpu), gpus=(gpu,)) for gpu in (0, 1)]
    whole = Run(machine, Settings(), tuple(judged(machine, *idle)), 2, complete=True)
    found = findings(whole)
    assert "FAIL" not in {f.status for f in found}
    assert {"link_idle_only", "nvlink_no_bridge", "resident_process"} <= {f.cause for f in found}
    assert where(machine, 0, 1) == "different sockets"


def test_19_the_workstation_with_gen1_under_load_is_called_so_first() -> None:
    judged_run = run(SCENARIOS["2xa6000-gpu1-gen1"], groups=("link", "host_copy", "host_staging", "allreduce"))
    first = judged_run.found[0]
    assert (first.status, first.cause, first.subject) == ("FAIL", "downtrained_speed", "GPU1")
    assert "Gen1 x16" in first.sentence
    assert "explains" in first.sentence
    assert re.search(r"allreduce reaches 2\.\d+ GB/s where 22\.9 GB/s should be possible", first.sentence)
    assert re.search(r"staging reaches 3\.\d+ GB/s where 2\d\.\d GB/s should be possible", first.sentence)
    assert "allreduce" not in judged_run.headline


def test_19_a_server_that_waits_is_idle_with_a_resident_process_and_not_busy() -> None:
    """It holds all but 3.5 GB on both GPUs; slow copies stay a FAIL, since nobody else used the link."""
    gpus = tuple(replace(g, memory_free_bytes=int(3.5 * GIB), utilization=0.0) for g in build.a6000s().gpus)
    machine = replace(build.a6000s(), gpus=gpus)
    judged_run = run(Scenario(machine, SCENARIOS["2xa6000-gpu1-gen1"].faults), groups=("link", "host_copy"))
    assert "busy_gpu" not in {r.verdict.cause for r in judged_run.run.results if r.verdict}
    resident = [f for f in judged_run.found if f.cause == "resident_process"]
    assert [(f.status, f.subject) for f in resident] == [("PASS", "GPU0"), ("PASS", "GPU1")]
    assert "idle with a resident process" in resident[0].sentence


@pytest.mark.parametrize(("packages", "expected"), [((0, 0), "different NUMA nodes"), ((0, 1), "different sockets")])
def test_20_sockets_are_named_only_where_the_package_ids_differ(packages: tuple[int, int], expected: str) -> None:
    numa = tuple(replace(n, packages=(packages[n.index],)) for n in PCIE.nodes)
    assert where(replace(PCIE, nodes=numa), 0, 1) == expected


def test_21_in_switch_reduction_has_its_own_limit() -> None:
    """470 of busbw is above 18 links × 25, and fine: the switches reduce."""
    reached = allreduce(build.nvswitch(), 470.0, "P2P", "NVLS", bytes=2 * GIB)
    assert ceiling(reached) == pytest.approx(700e9)
    assert verdict_of(reached).status == "PASS"
    assert verdict_of(allreduce(build.nvswitch(), 300.0, "P2P", "NVLS", bytes=2 * GIB)).status == "WARN"
    as_ring = allreduce(build.nvswitch(), 470.0, "P2P", "Ring", bytes=2 * GIB)
    assert verdict_of(as_ring).cause == "above_ceiling"


def test_22_a_collective_below_its_limit_with_links_in_order_is_tuned_first() -> None:
    machine = build.eight_pcie()
    links = run(Scenario(machine), groups=("link",)).run.results
    assert {r.verdict.status for r in links if r.verdict} == {"PASS"}
    untuned = verdict_of(allreduce(machine, 22.0, "SHM+P2P", "Ring", links, bytes=256 * MIB))
    assert (untuned.status, untuned.cause) == ("WARN", "collective_below_limit")
    assert "NCCL_MIN_NCHANNELS=8" in (untuned.advice or "")
    for rate in (38.0, 41.0):
        assert verdict_of(allreduce(machine, rate, "SHM+P2P", "Ring", links, bytes=256 * MIB)).status == "PASS"


@pytest.mark.parametrize(
    ("rate", "status"),
    [(52.0, "PASS"), (44.0, "INDETERMINATE"), (20.0, "FAIL")],
    ids=["in order for every MPS", "depends on the MPS", "slow for every MPS"],
)
def test_23_an_unread_payload_size_is_judged_only_where_all_sizes_agree(rate: float, status: str) -> None:
    assumed = limits(58.45, basis="assumed", low=54.5, high=60.65)
    assert last(PCIE, result("host_to_device", rate, memory_node=0, limits=assumed)).status == status
