"""All ranks' answers as one: the slowest counts, proofs and bytes must hold on every rank."""

from __future__ import annotations

import pytest

from suite.errors import MeasureError, Unavailable
from suite.measure import merge
from suite.measure.answer import Answer
from suite.records.case import Placement
from tests.measure.conftest import plan


def test_each_round_takes_its_slowest_rank() -> None:
    samples = merge.samples(plan("allreduce"), [Answer(seconds=(1.0, 4.0)), Answer(seconds=(3.0, 2.0))])
    assert samples.seconds == (3.0, 4.0)
    assert samples.mean_seconds == (2.0, 3.0)


def test_one_worker_has_no_mean_over_ranks() -> None:
    assert merge.samples(plan(), [Answer(seconds=(1.0,))]).mean_seconds == ()


def test_a_rank_that_only_helps_has_no_say_in_the_time() -> None:
    assert merge.samples(plan("ipc_copy"), [Answer(seconds=(1.0,)), Answer()]).seconds == (1.0,)


def test_ranks_that_disagree_in_rounds_are_an_error() -> None:
    with pytest.raises(MeasureError, match="different numbers of rounds: 1, 2"):
        merge.samples(plan("allreduce"), [Answer(seconds=(1.0,)), Answer(seconds=(1.0, 2.0))])


def test_verified_needs_every_rank_and_nothing_to_verify_stays_unknown() -> None:
    assert merge.verified([True, True]) is True
    assert merge.verified([True, None]) is True
    assert merge.verified([True, False, None]) is False
    assert merge.verified([None, None]) is None


def test_placement_is_proved_by_all_and_disproved_by_one() -> None:
    yes, no, unknown = (Placement(node=0, proved=p) for p in (True, False, None))
    for placements, proved in [([yes, yes], True), ([yes, unknown], None), ([unknown, no], False)]:
        merged = merge.placement(placements)
        assert merged is not None
        assert (merged.proved, merged.node) == (proved, 0)
    assert merge.placement([None]) is None
    assert merge.placement([yes, None]) == yes


def test_ranks_on_different_nodes_have_no_node_in_common() -> None:
    merged = merge.placement([Placement(node=0, proved=True), Placement(node=1, proved=True)])
    assert merged is not None
    assert (merged.node, merged.proved) == (None, True)


def test_the_window_reaches_from_the_first_start_to_the_last_end() -> None:
    assert merge.window([Answer(window=(1.0, 5.0)), Answer(), Answer(window=(2.0, 6.0))]) == (1.0, 6.0)
    assert merge.window([Answer()]) is None


def test_what_a_rank_cannot_do_is_unavailable_and_what_it_could_not_is_an_error() -> None:
    with pytest.raises(Unavailable, match="no such device"):
        merge.samples(plan(), [Answer(unavailable="no such device")])
    with pytest.raises(MeasureError, match="rank 1: out of memory"):
        merge.samples(plan(), [Answer(seconds=(1.0,)), Answer(error="out of memory")])


def test_notes_that_all_ranks_make_are_said_once() -> None:
    samples = merge.samples(
        plan("allreduce"), [Answer(seconds=(1.0,), notes=("a",)), Answer(seconds=(1.0,), notes=("a", "b"))]
    )
    assert samples.notes == ("a", "b")
