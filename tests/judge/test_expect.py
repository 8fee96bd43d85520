"""A manifest decides what the machine alone cannot."""

from __future__ import annotations

from dataclasses import replace

import pytest

from suite.errors import PlanError
from suite.judge.expect import draft, read, write
from suite.judge.findings import failing, findings, headline
from suite.judge.rules import judge
from suite.judge.thresholds import DEFAULT, of, parse
from suite.records.expect import Expectations, ExpectedGpu
from suite.records.machine import LinkState
from suite.records.run import Finding, Result, Run, Settings
from tests.data.machines import build
from tests.judge.small import limits, link, result, under_load

GPU0 = "0000:21:00.0"
ONE = replace(build.two_pcie(), gpus=build.two_pcie().gpus[:1])


def expecting(speed: float | None, width: int | None, **fields: int) -> Expectations:
    return Expectations({GPU0: ExpectedGpu(speed, width, **fields)})


def cause(case: Result, expected: Expectations, *so_far: Result) -> str:
    return judge(case, ONE, so_far, expected=expected).cause


def test_half_width_by_design_passes_where_the_manifest_says_so() -> None:
    assert cause(under_load(link(5, 8)), expecting(32.0, 8)) == "as_expected"
    narrow = result("host_to_device", 27.0, memory_node=0, limits=limits(29.2, 58.4))
    assert cause(narrow, expecting(32.0, 8), under_load(link(5, 8))) == "healthy"


def test_half_width_fails_where_the_manifest_expects_more() -> None:
    assert cause(under_load(link(5, 8)), expecting(None, 16)) == "not_as_expected"


def test_copies_bound_by_a_link_below_the_manifest_have_the_link_s_cause() -> None:
    bound = result("host_to_device", 27.0, memory_node=0, limits=limits(29.2, 58.4))
    assert cause(bound, expecting(None, 16), under_load(link(5, 8))) == "not_as_expected"


def test_a_slower_link_than_expected_fails_although_both_ends_agree_on_less() -> None:
    assert cause(under_load(link(4, 16)), expecting(32.0, 16)) == "not_as_expected"


def test_a_manifest_does_not_judge_what_was_not_read_under_load() -> None:
    assert cause(under_load(LinkState()), expecting(32.0, 16)) == "link_idle_only"


def test_a_case_below_its_floor_fails_whatever_the_limit_is() -> None:
    case = result("host_to_device", 50.0, case="host_copy/x", memory_node=0, limits=limits(57.0))
    assert cause(case, Expectations(floors={"host_copy/x": 52e9})) == "below_floor"
    assert cause(case, Expectations(floors={"host_copy/x": 49e9})) == "healthy"
    assert cause(case, Expectations(floors={"host_copy/other": 52e9})) == "healthy"
    assert cause(case, Expectations(floors={"host_copy/*": 52e9})) == "below_floor"
    assert cause(case, Expectations(floors={"host_copy/*": 52e9, "host_copy/x": 49e9})) == "healthy"


def test_a_slot_can_stand_for_the_address_of_the_card_in_it() -> None:
    pci = tuple(replace(f, slot="3") if f.parent is None else f for f in ONE.pci[:2])
    slotted = replace(ONE, pci=pci)
    narrow = Expectations({"3": ExpectedGpu(32.0, 8)})
    assert judge(under_load(link(5, 8)), slotted, (), expected=narrow).cause == "as_expected"
    assert not findings(Run(slotted, Settings(), expected=narrow))


def test_a_gpu_on_another_node_or_missing_is_a_finding() -> None:
    def found(expected: Expectations) -> tuple[Finding, ...]:
        return findings(Run(ONE, Settings(), expected=expected))

    assert not found(expecting(None, None, numa_node=0))
    moved = found(expecting(None, None, numa_node=1))
    assert [(f.status, f.cause, f.subject) for f in moved] == [("FAIL", "numa_not_as_expected", "GPU0")]
    missing = found(Expectations({"0000:ff:00.0": ExpectedGpu()}))
    assert "no GPU is there" in missing[0].sentence


def test_the_headline_counts_what_is_wrong_with_the_machine_itself() -> None:
    absent = Expectations({"0000:ff:00.0": ExpectedGpu()})
    passing = judge(under_load(link(5, 16)), ONE, ())
    good = replace(under_load(link(5, 16)), verdict=passing)
    run = Run(ONE, Settings(), (good,), 1, complete=True, expected=absent)
    found = findings(run)
    assert headline(run, found) == (
        "This machine is not right: 0000:ff:00.0: no GPU is there, the manifest expects one; the one case passes."
    )
    assert [f.cause for f in failing(found)] == ["numa_not_as_expected"]
    empty = replace(run, results=())
    assert headline(empty, findings(empty)).endswith("the manifest expects one; nothing was measured.")


def test_a_gpu_that_the_baseline_has_and_the_machine_lacks_is_a_failure_of_the_machine() -> None:
    run = Run(ONE, Settings(), complete=True, gone=("GPU1 (RTX PRO 6000, 0000:a1:00.0)",))
    assert [(f.cause, f.subject) for f in failing(findings(run))] == [("gpu_gone", "GPU1")]
    assert headline(run, findings(run)).startswith("This machine is not right: GPU1 (RTX PRO 6000, 0000:a1:00.0) is")
    bare = replace(run, machine=replace(ONE, gpus=(), why_no_gpu="No NVIDIA driver"))
    assert headline(bare, findings(bare)).endswith("No GPU path was measured: no NVIDIA driver.")


def test_the_headline_mentions_what_is_worth_a_look_about_the_machine_itself() -> None:
    small = replace(ONE, gpus=(replace(ONE.gpus[0], bar1_bytes=256 << 20),))
    good = replace(under_load(link(5, 16)), verdict=judge(under_load(link(5, 16)), small, ()))
    run = Run(small, Settings(), (good, good), 2, complete=True)
    found = findings(run)
    assert headline(run, found).startswith("This machine works: all 2 cases pass; 1 thing to look at: GPU0: BAR1 maps")
    assert not failing(found)
    assert [f.cause for f in failing(found, strict=True)] == ["small_bar1"]


def test_a_draft_of_a_machine_in_order_reads_back_and_finds_nothing() -> None:
    drafted = draft(ONE)
    assert read(write(drafted)) == drafted
    assert drafted.gpus[GPU0] == ExpectedGpu(32.0, 16, 0)
    assert not findings(Run(ONE, Settings(), expected=drafted))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "truncated"),
        ("[]", "Expected `object`"),
        ('{"gpus": {"0000:21:00.0": {"width": "wide"}}}', "Expected `int"),
        ('{"gpus": {"0000:21:00.0": {"widht": 8}}}', "'widht' of 0000:21:00.0 is not one of speed_gts, width"),
        ('{"floor": {}}', "'floor' is not one of gpus, floors"),
        ('{"gpus": {"4": {"speed_gts": 4}}}', "no speed of PCI Express"),
        ('{"gpus": {"4": {"width": 9}}}', "no width of PCI Express"),
        ('{"floors": {"host_copy/x": -1}}', "not above 0"),
    ],
)
def test_a_manifest_that_cannot_be_read_is_one_sentence(text: str, said: str) -> None:
    with pytest.raises(PlanError, match="manifest cannot be read") as caught:
        read(text)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_thresholds_are_overridden_by_name() -> None:
    assert parse(["spread = 0.2", "samples=5"]) == {"spread": 0.2, "samples": 5}
    assert of({"spread": 0.2}) == replace(DEFAULT, spread=0.2)
    assert of({"of_a_later_version": 0.2}) == DEFAULT


def test_thresholds_of_the_run_hold_for_findings_of_the_machine_too() -> None:
    small = replace(ONE, gpus=(replace(ONE.gpus[0], bar1_bytes=ONE.gpus[0].memory_bytes // 4),))
    assert [f.cause for f in findings(Run(small, Settings()))] == ["small_bar1"]
    assert not findings(Run(small, Settings(), thresholds={"bar1_fraction": 0.2}))


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("sprad = 0.2", "choose from"),
        ("spread = much", "not a number"),
        ("samples = 2.5", "not a whole number"),
        ("spread = -1", "0 or more"),
        ("spread = nan", "0 or more"),
        ("spread", "NAME = VALUE"),
    ],
)
def test_a_bad_threshold_is_one_sentence(given: str, said: str) -> None:
    with pytest.raises(PlanError, match=said):
        parse([given])
