"""What a baseline decides, and what it leaves as it was."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from suite.judge.against import decide, is_worse
from suite.records.comparison import Change, Reference
from suite.records.machine import Gpu, LinkState, Machine
from suite.records.run import Verdict
from tests.judge.small import link, result, watch

MACHINE = Machine(gpus=(Gpu(0, "Example GPU"),))
COPY = result("host_to_device", 13.0)
PASS = Verdict("PASS", "healthy", ("in order",))


def _reference(call: str = "same", seen: LinkState | None = None, **fields: Any) -> Reference:
    given = {"before": 26e9, "after": 13e9, "ratio": 0.5, "status_before": "PASS", **fields}
    change = Change("case", "host_to_device", 1 << 26, (0,), "bandwidth", call, "the reason", **given)  # type: ignore[arg-type]
    return Reference("before", 4, change, seen)


def test_a_case_that_passes_and_is_worse_than_the_baseline_fails() -> None:
    verdict = decide(PASS, COPY, MACHINE, _reference("worse"))
    assert (verdict.status, verdict.cause) == ("FAIL", "worse_than_baseline")
    assert verdict.evidence[0] == "GPU0: 13.0 GB/s, 26.0 GB/s in the baseline before (−50 %)."
    assert verdict.evidence[1:] == ("the reason", "in order")
    assert is_worse(replace(COPY, verdict=verdict))


def test_a_busy_gpu_is_named() -> None:
    busy = Machine(gpus=(Gpu(0, "Example GPU", utilization=0.87),))
    verdict = decide(PASS, COPY, busy, _reference("worse"))
    assert "busy GPU: GPU0 was 87 % busy with another program" in verdict.evidence[0]


def test_a_program_on_the_gpu_is_named_though_copies_count_as_idle() -> None:
    shared = Machine(gpus=(Gpu(0, "Example GPU", utilization=0.0, processes=1),))
    verdict = decide(PASS, COPY, shared, _reference("worse"))
    assert "perhaps a busy GPU: another program was on GPU0 when the run began" in verdict.evidence[0]


def test_a_fail_keeps_its_cause_and_says_how_it_was_before() -> None:
    broken = Verdict("FAIL", "downtrained_speed", ("Gen1",), advice="reseat")
    verdict = decide(broken, COPY, MACHINE, _reference("worse"))
    assert (verdict.cause, verdict.advice) == ("downtrained_speed", "reseat")
    assert verdict.evidence == ("Gen1", "the baseline before has 26.0 GB/s (the reason)")
    assert not is_worse(replace(COPY, verdict=verdict))


def test_a_case_as_in_the_baseline_stays_as_it_is() -> None:
    assert decide(PASS, COPY, MACHINE, _reference("same")) == PASS
    assert decide(PASS, COPY, MACHINE, _reference("better")) == PASS


def test_a_baseline_settles_what_the_machine_alone_cannot_tell() -> None:
    for cause, status in (("limit_unknown", "INDETERMINATE"), ("downtrained_width", "WARN")):
        verdict = decide(Verdict(status, cause, ("why",)), COPY, MACHINE, _reference("same"))  # type: ignore[arg-type]
        assert (verdict.status, verdict.cause) == ("PASS", "as_baseline")
        assert verdict.evidence[1:] == ("why",)


def test_a_baseline_that_failed_settles_nothing() -> None:
    unknown = Verdict("INDETERMINATE", "limit_unknown", ("why",))
    assert decide(unknown, COPY, MACHINE, _reference("same", status_before="FAIL")).cause == "limit_unknown"


def test_a_doubt_that_a_baseline_cannot_settle_stays() -> None:
    noisy = Verdict("INDETERMINATE", "noisy", ("why",))
    assert decide(noisy, COPY, MACHINE, _reference("same")).cause == "noisy"


def test_a_link_below_that_of_the_baseline_fails_whatever_its_numbers() -> None:
    narrow = result("link_under_load", 13.0, link=watch(link(4, 8)))
    verdict = decide(Verdict("WARN", "downtrained_width", ("x8",)), narrow, MACHINE, _reference(seen=link(4, 16)))
    assert (verdict.status, verdict.cause) == ("FAIL", "link_below_baseline")
    assert verdict.evidence[0] == "GPU0 runs at Gen4 x8 under load, Gen4 x16 in the baseline before."


def test_a_narrow_link_that_was_as_narrow_in_the_baseline_passes() -> None:
    narrow = result("link_under_load", 13.0, link=watch(link(4, 8)))
    verdict = decide(Verdict("WARN", "downtrained_width", ("x8",)), narrow, MACHINE, _reference(seen=link(4, 8)))
    assert (verdict.status, verdict.cause) == ("PASS", "as_baseline")


def test_a_link_that_was_not_seen_under_load_is_not_held_against_the_baseline() -> None:
    unseen = result("link_under_load", 13.0, link=watch(link(1, 16), readings=0))
    assert decide(PASS, unseen, MACHINE, _reference(seen=link(4, 16))) == PASS


def test_what_was_not_measured_stays_so() -> None:
    absent = Verdict("UNAVAILABLE", "unavailable", ("no GPU",))
    assert decide(absent, COPY, MACHINE, _reference("worse")) == absent
