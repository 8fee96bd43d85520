"""What the link watch says of a transfer: the link under load, both ends of every hop, and what was counted."""

from __future__ import annotations

from typing import Any

from suite.measure.watch import summarise
from suite.records.case import LinkReading
from suite.records.machine import AerCounters, LinkState

GPU, PORT, UP, ROOT = "0000:03:00.0", "0000:02:00.0", "0000:01:00.0", "0000:00:01.0"
GEN1, GEN3, GEN4 = LinkState(2.5, 16), LinkState(8.0, 16), LinkState(16.0, 16)
WINDOW = (10.0, 11.0)


def reading(at: float, link: LinkState = GEN4, **fields: Any) -> LinkReading:
    return LinkReading(at, ((GPU, link),), **fields)


def test_load_is_what_was_seen_in_the_transfer_and_idle_is_as_found() -> None:
    readings = [reading(1, GEN1), *(reading(10.2 + n / 10) for n in range(8)), reading(11.5, GEN1)]
    watch = summarise(readings, WINDOW)
    assert (watch.idle, watch.load, watch.load_min, watch.after) == (GEN1, GEN4, GEN4, GEN1)
    assert (watch.readings, watch.seconds, watch.changes) == (8, 1.0, 0)
    assert watch.source == "sysfs"


def test_the_ramp_at_the_beginning_is_dropped() -> None:
    watch = summarise([reading(1, GEN1), reading(10.05, GEN1), reading(10.5), reading(10.9)], WINDOW)
    assert (watch.load_min, watch.readings) == (GEN4, 2)


def test_a_link_that_drops_within_the_transfer_shows_as_least_and_as_changes() -> None:
    watch = summarise([reading(1), reading(10.3), reading(10.5, GEN3), reading(10.7), reading(10.9)], WINDOW)
    assert (watch.load, watch.load_min, watch.changes) == (GEN4, GEN3, 2)


def test_no_reading_in_the_transfer_leaves_the_load_unknown() -> None:
    for watch in (summarise([reading(1, GEN1)], WINDOW), summarise([reading(1, GEN1)], None)):
        assert (watch.readings, watch.load, watch.load_min) == (0, LinkState(), LinkState())
        assert watch.idle == GEN1
    assert summarise([], WINDOW).idle == LinkState()


def test_nvml_counts_first_and_sysfs_fills_what_it_does_not_say() -> None:
    watch = summarise([reading(1), reading(10.5, GEN3, nvml=LinkState(16.0, None))], WINDOW)
    assert (watch.load, watch.source) == (LinkState(16.0, 16), "nvml+sysfs")


def test_an_unknown_state_is_no_change_and_no_mode() -> None:
    watch = summarise([reading(1), reading(10.3), reading(10.5, LinkState()), reading(10.7)], WINDOW)
    assert (watch.load, watch.changes) == (GEN4, 0)


def test_counters_are_those_of_the_transfer_over_all_functions() -> None:
    first = reading(1, replays=5, aer=((GPU, AerCounters(1, 0, 0, 4)), (ROOT, AerCounters(10, 1, None))))
    last = reading(11, replays=7, aer=((GPU, AerCounters(3, 0, 0, 5)), (ROOT, AerCounters(11, 1, None))))
    watch = summarise([first, last], WINDOW)
    assert (watch.replays, watch.aer_correctable, watch.aer_uncorrectable) == (2, 3, 0)
    hop = watch.hops[0]
    assert (hop.lower, hop.upper) == (GPU, ROOT)
    assert (hop.aer_lower, hop.aer_upper) == (AerCounters(2, 0, 0, 1), AerCounters(1, 0, None))


def test_counters_that_nobody_reports_are_unknown() -> None:
    watch = summarise([reading(1), reading(11)], WINDOW)
    assert (watch.replays, watch.aer_correctable, watch.aer_uncorrectable, watch.xids) == (None, None, None, None)


def path(at: float, *named: str) -> LinkReading:
    """Two hops, GPU to a switch's port and the switch to its root port, with counters of the named functions."""
    return LinkReading(at, ((GPU, GEN4), (UP, GEN3)), aer=tuple((name, AerCounters(0, 0, 0)) for name in named))


def test_the_upper_end_of_each_hop_is_told_where_the_path_is_complete() -> None:
    hops = summarise([path(1, GPU, PORT, UP, ROOT)], WINDOW).hops
    assert [(hop.lower, hop.upper) for hop in hops] == [(GPU, PORT), (UP, ROOT)]


def test_the_upper_end_is_not_guessed_where_a_function_reports_nothing() -> None:
    for named in ((GPU, UP, ROOT), (GPU, ROOT), (GPU,), ()):
        first, _ = summarise([path(1, *named)], WINDOW).hops
        assert first.upper is None, named


def bits(at: float, lower: bool, upper: bool) -> LinkReading:
    return reading(at, link_bandwidth_changed=((GPU, lower), (ROOT, upper)))


def test_a_bit_that_was_set_meanwhile_at_either_end_is_a_change() -> None:
    assert summarise([bits(1, False, False), bits(11, False, True)], WINDOW).hops[0].link_bandwidth_changed is True
    assert summarise([bits(1, False, False), bits(11, False, False)], WINDOW).hops[0].link_bandwidth_changed is False


def test_a_bit_that_was_set_before_tells_nothing() -> None:
    assert summarise([bits(1, True, True), bits(11, True, True)], WINDOW).hops[0].link_bandwidth_changed is None
    assert summarise([reading(1), bits(11, True, True)], WINDOW).hops[0].link_bandwidth_changed is None


def test_throttle_reasons_gather_and_the_hottest_reading_counts() -> None:
    during = [
        reading(10.3, throttle=("power",), temperature_c=60.0, power_w=300.0, performance_state=0),
        reading(10.6, throttle=(), temperature_c=62.0, performance_state=0),
        reading(10.9, throttle=("thermal", "power"), performance_state=2),
    ]
    watch = summarise([reading(1), *during], WINDOW)
    assert watch.throttle == ("power", "thermal")
    assert (watch.temperature_c, watch.power_w, watch.performance_state) == (62.0, 300.0, 0)
