"""Kinds of host memory and sizes of chunks are compared with each other; they are no verdicts on the path."""

from __future__ import annotations

from dataclasses import replace

import pytest

from suite.records.case import ONE_COPY_ENGINE
from suite.records.run import Result, Verdict
from suite.units import KIB, MIB
from tests.data.machines import build
from tests.judge.small import judged, last, limits, link, result, under_load

ONE = replace(build.two_pcie(), gpus=build.two_pcie().gpus[:1])


def copy(memory: str, rate: float, node: int | None = 0) -> Result:
    return result("host_to_device", rate, memory=memory, memory_node=node, limits=limits(58.4))


def staged(rate: float, chunk: int, now: float = 57.0, node: int = 0) -> Result:
    return result("staging", rate, case="host_staging/staging", chunk_bytes=chunk, memory_node=node, limits=limits(now))


def test_a_pageable_copy_says_what_pinning_is_worth_and_never_fails() -> None:
    verdict = last(ONE, copy("pinned", 55.4), copy("pageable", 8.13))
    assert (verdict.status, verdict.cause) == ("PASS", "pageable")
    assert "pinning is worth a factor of 6.8" in verdict.evidence[0]
    assert "Pin the buffers" in (verdict.advice or "")


@pytest.mark.parametrize("memory", ["pageable", "host_alloc", "huge", "write_combined"])
def test_a_kind_of_memory_with_nothing_beside_it_says_so(memory: str) -> None:
    verdict = last(ONE, copy(memory, 8.0))
    assert verdict.status == "PASS"
    assert "not measured beside it" in verdict.evidence[0]


@pytest.mark.parametrize("memory", ["host_alloc", "huge", "write_combined"])
@pytest.mark.parametrize(
    ("rate", "status", "cause"),
    [
        (55.0, "PASS", "memory_kind"),
        (51.0, "PASS", "memory_kind"),
        (58.3, "WARN", "registered_slow"),
        (30.0, "WARN", "memory_kind_slow"),
        (8.0, "WARN", "memory_kind_slow"),
    ],
)
def test_page_locked_memory_of_any_kind_ought_to_be_as_fast(memory: str, rate: float, status: str, cause: str) -> None:
    pinned = 50.0 if cause == "registered_slow" else 55.4
    verdict = last(ONE, copy("pinned", pinned), copy(memory, rate))
    assert (verdict.status, verdict.cause) == (status, cause)
    if status == "WARN":
        assert "IOMMU" in " ".join((*verdict.evidence, verdict.advice or ""))
        assert "iommu=pt" in (verdict.advice or "")


def test_only_write_combined_memory_is_said_to_be_slow_to_read() -> None:
    said = {m: last(ONE, copy("pinned", 55.0), copy(m, 55.0)).evidence for m in ("write_combined", "host_alloc")}
    assert any("slowly" in sentence for sentence in said["write_combined"])
    assert not any("slowly" in sentence for sentence in said["host_alloc"])


def test_a_kind_on_one_node_is_not_held_against_pinned_memory_on_another() -> None:
    verdict = last(ONE, copy("pinned", 55.0, node=1), copy("host_alloc", 30.0))
    assert "not measured beside it" in verdict.evidence[0]


def test_where_the_gpus_node_is_not_known_the_fastest_node_counts() -> None:
    verdict = last(ONE, copy("pinned", 20.0), copy("pinned", 55.0, node=1), copy("host_alloc", 30.0, node=None))
    assert verdict.cause == "memory_kind_slow"


def test_more_than_the_link_can_carry_is_no_pass_for_any_memory() -> None:
    assert last(ONE, copy("pinned", 55.0), copy("pageable", 70.0)).cause == "above_ceiling"


def one_engine(rate: float, operation: str = "both_ways") -> Result:
    return result(operation, rate, memory="pinned", memory_node=0, limits=limits(115.0), notes=(ONE_COPY_ENGINE,))  # type: ignore[arg-type]


def test_both_ways_by_one_copy_engine_is_called_serial_and_no_fault() -> None:
    verdict = last(ONE, copy("pinned", 55.0), one_engine(54.0))
    assert (verdict.status, verdict.cause) == ("PASS", "one_copy_engine")
    assert "serial" in verdict.evidence[0]


def test_the_link_of_a_gpu_with_one_copy_engine_is_no_slow_path() -> None:
    verdict = last(ONE, under_load(link(5, 16), rate=54.0, limits=limits(115.0), notes=(ONE_COPY_ENGINE,)))
    assert verdict.status == "PASS"


def test_one_copy_engine_does_not_excuse_less_than_one_way() -> None:
    assert last(ONE, copy("pinned", 55.0), one_engine(20.0)).cause == "both_ways_collapse"
    assert last(ONE, one_engine(20.0)).cause == "slow_path"


def chunks(*cases: Result) -> list[Verdict]:
    return [one.verdict for one in judged(ONE, *cases) if one.verdict]


def test_a_sweep_of_chunks_as_an_h200_measured_it_is_in_order() -> None:
    """36.2, 46.0 and 47.2 GB/s in chunks of 1, 4 and 16 MiB."""
    small, middle, large = chunks(staged(36.2, MIB), staged(46.0, 4 * MIB, 56.4), staged(47.2, 16 * MIB, 54.0))
    assert (small.status, small.cause) == ("PASS", "staging_chunk")
    assert "larger ones tell" in small.evidence[0]
    assert (middle.cause, large.cause) == ("healthy", "healthy")


def test_a_chunk_size_slower_than_one_that_was_in_order_names_that_one() -> None:
    *_, last_one = chunks(staged(46.0, 4 * MIB), staged(20.0, 64 * MIB))
    assert (last_one.status, last_one.cause) == ("PASS", "staging_chunk")
    assert "chunks of 4MiB reach 46.0 GB/s" in last_one.evidence[0]


def test_a_path_that_is_slow_in_every_chunk_size_fails_at_the_first_large_one() -> None:
    verdicts = chunks(staged(10.0, 256 * KIB), staged(15.0, MIB), staged(18.0, 16 * MIB))
    assert [v.cause for v in verdicts] == ["staging_chunk", "staging_chunk", "slow_path"]


def test_chunks_of_another_node_excuse_nothing() -> None:
    *_, verdict = chunks(staged(46.0, 4 * MIB), staged(35.0, 16 * MIB, node=1), staged(20.0, 16 * MIB, node=1))
    assert verdict.cause != "staging_chunk"


def on_a_bad_link(memory: str, rate: float) -> Verdict:
    bound = result("host_to_device", rate, memory=memory, memory_node=0, limits=limits(3.6, 57.0))
    return last(ONE, under_load(link(1, 16)), bound)


@pytest.mark.parametrize("memory", ["pinned", "host_alloc", "huge", "write_combined", "pageable"])
def test_on_a_bad_link_every_kind_of_memory_that_fills_it_has_that_cause(memory: str) -> None:
    verdict = on_a_bad_link(memory, 3.4)
    assert (verdict.status, verdict.cause) == ("FAIL", "downtrained_speed")


def test_pageable_memory_far_below_a_bad_link_is_bound_by_its_own_nature() -> None:
    assert on_a_bad_link("pageable", 1.2).cause == "pageable"
