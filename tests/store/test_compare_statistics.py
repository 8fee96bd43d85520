"""The rules by which a change is called, checked against numbers worked out by hand."""

from __future__ import annotations

from itertools import combinations

import pytest

from suite.store import compare_statistics as statistics
from suite.store.compare_statistics import compare

FLAT = (10.0, 10.01, 9.99, 10.0)


def test_the_interval_of_four_runs_a_side_spans_all_pairwise_ratios() -> None:
    """P(all four after lie on one side of all four before) is 1 in 70 each way: 97.1 % lie between the extremes."""
    found = statistics.estimate((10.0, 10.1, 10.2, 10.3), (9.0, 9.1, 9.2, 9.3))
    assert (found.low, found.high) == (pytest.approx(9.0 / 10.3), pytest.approx(9.3 / 10.0))


@pytest.mark.parametrize(("before", "after"), [(1, 1), (1, 40), (2, 2), (3, 3), (40, 1)])
def test_too_few_runs_have_no_interval(before: int, after: int) -> None:
    found = statistics.estimate([10.0] * before, [11.0] * after)
    assert (found.low, found.high) == (None, None)


@pytest.mark.parametrize(("before", "after"), [(2, 3), (4, 4), (3, 5), (5, 2)])
def test_the_distribution_of_rank_sums_is_that_of_all_orders(before: int, after: int) -> None:
    counts = [0] * (before * after + 1)
    for places in combinations(range(before + after), before):
        counts[sum(1 for b in places for a in range(before + after) if a not in places and a > b)] += 1
    assert statistics._rank_sums(before, after) == counts


def test_a_clear_loss_is_called_and_a_clear_gain_is() -> None:
    assert compare(FLAT, [9.5, 9.51, 9.49, 9.5]).moved == "down"
    assert compare(FLAT, [10.5, 10.51, 10.49, 10.5]).moved == "up"


def test_less_than_three_percent_is_not_called_however_sure_it_is() -> None:
    answer = compare(FLAT, [9.75, 9.75, 9.75, 9.75])
    assert answer.estimate.high is not None
    assert answer.estimate.high < 1
    assert (answer.moved, answer.doubtful) == (None, False)


def test_a_noisy_baseline_widens_the_gate_to_twice_its_spread() -> None:
    noisy = (9.0, 10.0, 11.0, 10.0)
    answer = compare(noisy, [8.7, 8.8, 8.9, 8.8])
    assert answer.gate == pytest.approx(2 * statistics.spread(noisy))
    assert answer.gate > 0.12
    assert answer.moved is None


def test_a_large_difference_that_hides_in_noise_is_doubtful_not_no_change() -> None:
    answer = compare((8.0, 10.0, 12.0, 9.0), [15.0, 15.1, 14.9, 15.0])
    assert answer.gate > 0.3
    assert answer.moved == "up"
    hidden = compare((8.0, 10.0, 12.0, 9.0), [12.1, 12.2, 12.3, 12.2])
    assert (hidden.moved, hidden.doubtful) == (None, True)
    assert "vary too much" in hidden.why


def test_runs_that_overlap_are_doubtful_not_called() -> None:
    answer = compare(FLAT, [9.0, 9.0, 9.0, 10.005])
    assert (answer.moved, answer.doubtful) == (None, True)
    assert "overlap" in answer.why


def test_one_run_a_side_is_called_above_ten_percent_only_and_says_so() -> None:
    assert compare([10.0], [8.9]).moved == "down"
    between = compare([10.0], [9.2])
    assert (between.moved, between.doubtful) == (None, True)
    assert "one run a side" in between.why
    assert "four a side" in between.why
    within = compare([10.0], [9.9])
    assert (within.moved, within.doubtful) == (None, False)


def test_two_or_three_runs_a_side_must_not_overlap() -> None:
    assert compare([10.0, 10.1], [8.0, 8.1]).moved == "down"
    assert compare([10.0, 8.05], [8.0, 8.1]).moved is None


def test_a_single_run_of_few_rounds_calls_nothing() -> None:
    answer = compare([10.0], [5.0], rounds=2)
    assert (answer.moved, answer.doubtful) == (None, True)
    assert "fewer than 3 rounds" in answer.why


def test_a_boot_on_each_side_widens_the_gate() -> None:
    lower = [9.6, 9.61, 9.59, 9.6]
    assert compare(FLAT, lower).moved == "down"
    answer = compare(FLAT, lower, boot_each=True)
    assert (answer.moved, answer.gate) == (None, statistics.ONE_BOOT_EACH)


def test_the_tail_is_the_slowest_tenth_of_the_rounds() -> None:
    assert statistics.tail([1.0] * 9 + [2.0]) == pytest.approx(1.1)
    assert statistics.tail([1.0]) == 1.0
