"""Which pairs are measured, which are represented by which, and that sixteen GPUs stay quick."""

from __future__ import annotations

from dataclasses import replace

from suite.plan import axes, budget, peers
from suite.plan.cases import complete
from suite.records.case import Plan
from suite.records.machine import GpuPair, Machine
from suite.records.run import Failure, Result, Settings, Status, Verdict
from suite.units import GIB, KIB, MIB
from tests.data.machines import build

QUICK, FULL = Settings(), Settings(effort="full")
EIGHT = build.eight_pcie()  # switch pairs (0,1) (2,3) | (4,5) (6,7), a socket on each side of |
RATES = {"PIX": 50e9, "NODE": 45e9, "SYS": 40e9}


def copy(pair: tuple[int, int], rate: float | None, status: Status = "PASS", **fields: object) -> Result:
    given = {"operation": "peer_write", "bytes": 16 * MIB, "p2p": True, "bandwidth": rate, **fields}
    return Result(f"peer_copy/direct/gpu{pair[0]}_gpu{pair[1]}/write", gpus=pair, verdict=Verdict(status, "x"), **given)


def healthy(machine: Machine = EIGHT) -> dict[tuple[int, int], Result]:
    pairs = [pair for p in machine.pairs for pair in ((p.first, p.second), (p.second, p.first))]
    return {pair: copy(pair, RATES[str(machine.pair(*pair).topology)]) for pair in pairs}  # type: ignore[union-attr]


def swept(so_far: dict[tuple[int, int], Result]) -> set[tuple[int, int]]:
    known = peers.Representatives(EIGHT, QUICK)
    return {pair for pair in healthy() if known.instead_of(pair, list(so_far.values())) is None}


def test_one_pair_of_each_class_is_swept_in_one_direction() -> None:
    assert swept(healthy()) == {(0, 1), (0, 2), (0, 4)}


def test_the_others_name_the_pair_that_stands_for_them() -> None:
    known = peers.Representatives(EIGHT, QUICK)
    done = list(healthy().values())
    assert [known.instead_of(pair, done) for pair in ((6, 7), (1, 0), (4, 6), (3, 7))] == [
        (0, 1), (0, 1), (0, 2), (0, 4),
    ]  # fmt: skip


def test_a_pair_that_is_slower_than_its_class_is_swept_in_both_directions() -> None:
    found = healthy()
    found[6, 7] = copy((6, 7), 30e9)
    assert swept(found) == {(0, 1), (0, 2), (0, 4), (6, 7), (7, 6)}


def test_a_broken_pair_represents_nobody() -> None:
    found = healthy()
    found[0, 1] = copy((0, 1), None, "FAIL", verified=False)
    known = peers.Representatives(EIGHT, QUICK)
    assert known.instead_of((6, 7), list(found.values())) == (2, 3)
    assert known.instead_of((1, 0), list(found.values())) is None


def test_results_that_come_later_are_learnt() -> None:
    known = peers.Representatives(EIGHT, QUICK)
    done = list(healthy().values())
    assert known.instead_of((6, 7), done) == (0, 1)
    slow = copy((6, 7), 30e9, operation="peer_read")
    fine = [replace(r, operation="peer_read") for r in done if r.gpus != (6, 7)]
    assert known.instead_of((6, 7), [*done, *fine, slow]) is None


def test_where_all_pairs_disagree_only_a_few_are_swept() -> None:
    """Every pair of the class at another rate."""
    found = {pair: copy(pair, 1e9 * (1 + sum(pair) ** 2 + pair[0] % 2)) for pair in healthy()}
    assert len({tuple(sorted(pair)) for pair in swept(found)}) <= 3 * (peers.MOST_SWEPT + 1)


def test_gpus_behind_nvswitch_are_one_class_wherever_they_sit() -> None:
    machine = build.nvswitch()
    assert len({peers.kind(machine, pair) for pair in peers.couples(machine, QUICK)}) == 1


def test_bridged_pairs_are_a_class_of_their_own() -> None:
    machine = build.bridged()
    assert peers.kind(machine, (0, 1)) == peers.kind(machine, (2, 3)) != peers.kind(machine, (0, 2))


def test_a_pair_that_hung_is_not_tried_again_with_p2p() -> None:
    hung = copy((2, 5), None, "FAIL", error=Failure("hang", "no answer"))
    reason = peers.given_up([hung], (5, 2), True)
    assert reason == "not tried again after peer_copy/direct/gpu2_gpu5/write (hang)"
    assert peers.given_up([hung], (0, 1, 2, 3, 4, 5), True) == reason
    assert peers.given_up([hung], (5, 2), False) is None
    assert peers.given_up([hung], (2, 3), True) is None


def test_a_pair_whose_worker_answered_with_an_error_may_be_tried_again() -> None:
    assert peers.given_up([copy((2, 5), None, "FAIL", error=Failure("error", "x"))], (2, 5), True) is None


def test_patterns_run_over_p2p_only_where_no_pair_is_denied() -> None:
    denied = GpuPair(6, 7, "PIX", p2p_read="OK", p2p_write="CNS")
    machine = replace(EIGHT, pairs=(*EIGHT.pairs[:-1], denied))
    made = [complete(m, QUICK, "c", "peer_pattern", transport="ring") for m in (EIGHT, machine)]
    assert [plan.p2p for plan in made] == [True, False]
    assert made[0].gpus == tuple(range(8))
    assert len(made[0].addresses) == 8


def test_a_pattern_needs_three_gpus() -> None:
    assert axes.values("gpu_pattern", build.two_pcie(), QUICK) == "needs three GPUs and two are there"
    assert axes.values("gpu_pattern", build.h200(), QUICK) == "needs three GPUs and one is there"


def test_a_copy_between_processes_has_two_ranks() -> None:
    made = complete(build.h200(), QUICK, "c", "ipc_copy", gpus=(0,), bytes=MIB)
    assert (made.world_size, made.gpus, made.backend) == (2, (0,), None)


def test_a_pair_and_its_reverse_follow_each_other() -> None:
    found = axes.values("pair", EIGHT, QUICK)
    assert [text for _, text in found[:4]] == ["gpu0_gpu1", "gpu1_gpu0", "gpu0_gpu2", "gpu2_gpu0"]
    assert len(found) == 56


def test_full_sweeps_every_size_in_every_way_and_quick_a_few() -> None:
    sizes = [value for value, _ in axes.values("sweep_size", EIGHT, FULL)]
    assert (sizes[0], sizes[-1]) == (4 * KIB, GIB)
    assert axes.pair_size(FULL) not in sizes
    assert [text for _, text in axes.values("sweep", EIGHT, FULL)] == ["write", "read", "both_ways"]
    assert len(axes.values("sweep_size", EIGHT, QUICK)) == 4


def test_sizes_that_are_asked_for_are_those_that_are_measured() -> None:
    asked = Settings(sizes=(MIB, 64 * MIB))
    assert complete(EIGHT, asked, "c", "peer_write", gpus=(0, 1), p2p=True).bytes == 64 * MIB
    assert axes.values("sweep_size", EIGHT, asked) == [(MIB, "1MiB")]
    assert axes.values("sweep_size", EIGHT, Settings(sizes=(MIB,))) == "no other size was asked for"


def test_sixteen_gpus_are_planned_within_three_minutes() -> None:
    """By the budget's slow rates: each pair in every way at one size, the sweeps of one pair a class, the patterns."""
    machine = build.switched(4)

    def plan(operation: str, **given: object) -> Plan:
        return complete(machine, QUICK, "c", operation, **given)  # type: ignore[arg-type]

    pairs = [pair for pair, _ in axes.values("pair", machine, QUICK)]
    assert len(pairs) == 240
    every = [("peer_write", False), ("peer_write", True), ("peer_read", True), ("peer_latency", True)]
    total = sum(budget.seconds(plan(operation, gpus=pair, p2p=p2p)) for operation, p2p in every for pair in pairs)
    total += 2 * len(pairs) / 2 * budget.WAKE_S  # each couple wakes a GPU, with P2P off and on
    for couple in {peers.kind(machine, c): c for c in peers.couples(machine, QUICK)}.values():
        for size, _ in axes.values("sweep_size", machine, QUICK):
            total += sum(budget.seconds(plan("peer_write", gpus=couple, bytes=size, p2p=p2p)) for p2p in (True, False))
        ways = ("peer_write", "peer_read", "peer_both_ways")
        total += sum(budget.seconds(plan(way, gpus=couple, bytes=256 * MIB, engine="sm", p2p=True)) for way in ways)
        total += sum(budget.seconds(plan("peer_both_ways", gpus=couple, p2p=p2p)) for p2p in (True, False))
        total += 4 * budget.BESIDES_S  # latencies
    total += sum(
        budget.seconds(plan("peer_pattern", transport=name)) for name, _ in axes.values("gpu_pattern", machine, QUICK)
    )
    assert total < 180
