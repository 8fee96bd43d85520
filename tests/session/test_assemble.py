"""Rates follow from medians, by operation; wrong bytes carry none."""

import pytest

from suite.records.case import Operation, Plan, Samples
from suite.records.run import Failure, Limits
from suite.session import assemble
from suite.units import MIB


def measured(operation: Operation, *seconds: float, verified: bool | None = True, **fields: object):
    plan = Plan("group/case", operation, MIB, **fields)
    return assemble.result(plan, Samples(seconds, "host-monotonic", "test", verified))


def test_bandwidth_is_bytes_over_the_median() -> None:
    assert measured("host_to_device", 1.0, 2.0, 100.0).bandwidth == MIB / 2.0


def test_both_ways_count_both_directions() -> None:
    assert measured("both_ways", 1.0).bandwidth == 2 * MIB


def test_all_gpus_count_every_gpu() -> None:
    assert measured("all_gpus_host_to_device", 1.0, gpus=(0, 1, 2)).bandwidth == 3 * MIB
    assert measured("all_gpus_both_ways", 1.0, gpus=(0, 1, 2)).bandwidth == 6 * MIB


def test_a_latency_case_has_no_bandwidth() -> None:
    result = measured("host_to_device_latency", 2e-6)
    assert (result.latency_s, result.bandwidth) == (2e-6, None)


def test_allreduce_has_latency_algbw_and_busbw() -> None:
    result = measured("allreduce", 1.0, world_size=4, backend="gloo")
    assert (result.latency_s, result.algbw) == (1.0, MIB)
    assert result.bandwidth == pytest.approx(MIB * 1.5)


def test_wrong_bytes_carry_no_bandwidth_but_keep_their_samples() -> None:
    result = measured("host_to_device", 1.0, verified=False)
    assert result.bandwidth is None
    assert result.samples_s == (1.0,)


def test_a_failure_is_kept_with_what_the_ranks_said() -> None:
    plan = Plan("group/case", "allreduce", 8)
    result = assemble.result(plan, None, Failure("hang", "no answer within 5 s", ("", "waiting")))
    assert result.error is not None
    assert result.error.said == ("", "waiting")
    assert result.bandwidth is None


def test_a_fraction_needs_both_a_rate_and_a_ceiling() -> None:
    rate = measured("host_to_device", 1.0)
    assert assemble.with_limits(rate, Limits(now=2.0 * MIB)).fraction_of_limit == 0.5
    assert assemble.with_limits(rate, Limits()).fraction_of_limit is None
    assert assemble.with_limits(measured("host_to_device"), Limits(now=1.0)).fraction_of_limit is None


def test_iterations_are_those_that_were_really_made() -> None:
    plan = Plan("group/case", "host_to_device", 8, iterations=16)
    samples = Samples((1.0,), "cuda-event", "copy-engine", True, iterations=3)
    assert assemble.result(plan, samples).iterations == 3
