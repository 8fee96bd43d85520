"""Tables of copies between host and GPU: where a curve reaches half its peak, and which nodes are left out."""

from __future__ import annotations

from dataclasses import replace

from suite.records.machine import NumaNode
from suite.records.run import Limits, Result, Run
from suite.report.tables import copies, groups
from suite.units import GIB, KIB
from tests.report import samples

GB = 1e9


def curve(*rates: float) -> list[Result]:
    """Copies of 4 KiB, 8 KiB, … with these GB/s."""
    return [
        replace(samples.host_copy(0, 0, "host_to_device", 4 * KIB << place, 1e9, "PASS", "healthy"), bandwidth=rate)
        for place, rate in enumerate(rates)
    ]


def half_peak(*rates: float) -> str:
    table = copies.tables("Host copies", curve(*rates))[1]
    place = [column.name for column in table.columns].index("half peak")
    return table.rows[0][place].text


def test_the_half_peak_size_is_the_one_from_which_on_half_of_the_peak_is_reached() -> None:
    assert half_peak(1, 10, 27, 28, 40, 55) == "32KiB"
    assert half_peak(1, 30, 20, 28, 40, 55) == "32KiB"


def test_no_half_peak_size_is_given_on_a_curve_that_falls() -> None:
    assert half_peak(2, 10, 15, 19, 17, 9.3, 9.8) == "–"


def test_no_half_peak_size_is_given_where_the_smallest_copy_reaches_it_already() -> None:
    assert half_peak(30, 40, 55) == ""


def test_a_copy_within_the_gpu_that_outruns_its_memory_is_put_down_to_the_cache() -> None:
    def local(rate: float) -> list[Result]:
        given = {"operation": "device_local_copy", "limits": Limits(now=2400 * GB, hard=False)}
        return [replace(one, **given) for one in curve(500 * GB, rate, 1700 * GB)]

    assert not any("cache" in note for table in copies.tables("Peer copies", local(2300 * GB)) for note in table.notes)
    over_sizes = copies.tables("Peer copies", local(2480 * GB))[1]
    assert any("second-level cache" in note for note in over_sizes.notes)


def test_pageable_memory_shows_no_healthy_range_whatever_an_old_run_holds() -> None:
    rates = Limits(now=58 * GB, expected=(52 * GB, 57 * GB))
    for memory, shown in (("pinned", True), ("pageable", False)):
        rows = [replace(one, memory=memory, limits=rates) for one in curve(9 * GB, 10 * GB)]
        table = copies.tables("Host copies", rows)[0]
        assert ("52.0–57.0" in [cell.text for cell in table.rows[0]]) is shown


def with_nodes(*nodes: NumaNode, allowed: tuple[int, ...] = ()) -> Run:
    run = samples.sound()
    facts = replace(run.machine.environment, allowed_nodes=allowed)
    return replace(run, machine=replace(run.machine, nodes=(*run.machine.nodes, *nodes), environment=facts))


def test_a_node_without_memory_is_said_to_be_left_out() -> None:
    lines = groups.absent(with_nodes(NumaNode(7, cpus=(40, 41), memory_bytes=0)), "host_copy")
    assert lines == ["Host copies: node 7 is left out: it has no memory"]


def test_a_node_that_this_process_may_not_use_is_said_to_be_left_out() -> None:
    lines = groups.absent(with_nodes(NumaNode(7, cpus=(40,), memory_bytes=GIB), allowed=(0, 1)), "host_copy")
    assert lines == ["Host copies: node 7 is left out: this process may not use its memory (cpuset)"]


def test_a_node_without_cpus_is_copied_by_others_and_that_is_said() -> None:
    run = with_nodes(NumaNode(7, memory_bytes=GIB))
    assert groups.absent(run, "host_memory") == [
        "Host memory: node 7 has no CPUs: those of the nearest node copy its memory"
    ]
    assert groups.absent(run, "host_copy") == []


def test_a_node_that_nobody_asked_for_is_not_mentioned() -> None:
    run = with_nodes(NumaNode(7, memory_bytes=0))
    asked = replace(run, settings=replace(run.settings, nodes=(0,)))
    assert groups.absent(asked, "host_copy") == []
