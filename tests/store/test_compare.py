"""Comparing runs: what is refused, what is listed, what is called."""

from __future__ import annotations

from dataclasses import replace

import pytest

from suite.errors import StoreError
from suite.judge.thresholds import DEFAULT
from suite.records.comparison import Change, Comparison
from suite.records.machine import Cpu, Gpu, LinkState
from suite.records.run import Settings, Verdict
from suite.store import compare_machine
from suite.store.compare import compare
from tests.store.small import CASE, FAIL, GEN1, GEN4, MACHINE, copy, hang, latency, link, run, runs

STEADY = (26.0, 26.1, 25.9, 26.0)


def _only(comparison: Comparison) -> Change:
    (change,) = comparison.changes
    return change


def _one(before: object, after: object) -> Change:
    return _only(compare([run(before)], [run(after, start=1)]))  # type: ignore[arg-type]


def test_a_repaired_link_is_a_difference_of_the_machine_and_a_better_number() -> None:
    before = run(link(GEN1, 6.0), copy(2.9, verdict=FAIL, limits=None))
    after = run(link(GEN4, 52.0), copy(26.1), start=1)
    found = compare([before], [after])
    assert "GPU1 link under load: Gen1 x16 → Gen4 x16" in [str(difference) for difference in found.machine]
    assert found.call == "better"
    assert {change.call for change in found.changes} == {"better"}


def test_the_same_runs_repeated_show_no_change() -> None:
    found = compare(runs(STEADY), runs([26.05, 25.95, 26.0, 26.1], start=10))
    assert (found.call, _only(found).call) == ("same", "same")
    assert found.machine == ()


def test_four_runs_a_side_call_five_percent_and_one_run_does_not() -> None:
    found = compare(runs(STEADY), runs([24.7, 24.8, 24.6, 24.7], start=10))
    assert _only(found).call == "worse"
    assert _one(copy(26.0), copy(24.7)).call == "inconclusive"


def test_lower_latency_is_better_and_higher_latency_is_worse() -> None:
    assert _one(latency(20e-6), latency(10e-6)).call == "better"
    worse = _one(latency(10e-6), latency(20e-6))
    assert worse.call == "worse"
    assert worse.gain == pytest.approx(0.5)


def test_small_messages_of_a_collective_are_compared_by_latency() -> None:
    small = {"operation": "allreduce", "bytes": 4096, "latency_s": 20e-6}
    change = _one(copy(1.0, **small), copy(1.0, **{**small, "latency_s": 30e-6}))
    assert (change.quantity, change.call) == ("latency", "worse")


def test_cases_that_one_side_lacks_are_listed() -> None:
    before, after = run(copy(26.0), copy(26.0, "old")), run(copy(26.0), copy(26.0, "new"), start=1)
    missing = compare([before], [after]).missing
    assert {(row.case, row.measured, row.why) for row in missing} == {
        ("old", "before", "not in the runs after"),
        ("new", "after", "not in the runs before"),
    }


def test_a_case_that_became_unavailable_is_listed() -> None:
    gone = replace(copy(26.0), samples_s=(), bandwidth=None, verdict=Verdict("UNAVAILABLE", "unavailable"))
    (row,) = compare([run(copy(26.0))], [run(gone, start=1)]).missing
    assert (row.measured, row.why) == ("before", "unavailable in the runs after")


def test_a_case_of_another_size_under_the_same_name_is_not_compared() -> None:
    (row,) = compare([run(copy(26.0))], [run(copy(26.0, bytes=1 << 20), start=1)]).missing
    assert "different things" in row.why


def test_a_run_that_measured_another_size_is_left_out_and_said() -> None:
    before = [run(copy(20.0, bytes=1 << 20)), run(copy(26.0), start=1)]
    change = _only(compare(before, [run(copy(26.0), start=2)]))
    assert (change.before, change.runs_before) == (26e9, 1)
    assert change.why.endswith("; 1 run of another size or path left out")


def test_host_memory_is_compared_across_the_sizes_that_free_memory_allows() -> None:
    small, large = (copy(26.0, "host_memory/copy/node0", operation="host_memory_copy", bytes=1 << n) for n in (28, 29))
    change = _one(small, large)
    assert change.call == "same"
    assert change.why.endswith("; of different sizes (256MiB, 512MiB)")


def test_one_run_a_side_says_less_of_gloo_and_host_memory_than_of_a_gpus_path() -> None:
    host = {"operation": "host_memory_copy", "gpus": ()}
    gloo = {"operation": "allreduce", "backend": "gloo", "gpus": ()}
    for fields in (host, gloo):
        assert [_one(copy(26.0, **fields), copy(26.0 * part, **fields)).call for part in (0.92, 0.8, 0.7)] == [
            "same", "inconclusive", "worse",
        ]  # fmt: skip
    assert _one(copy(26.0), copy(26.0 * 0.8)).call == "worse"
    four = compare(
        [run(copy(rate, **gloo), start=n, boot=str(n)) for n, rate in enumerate(STEADY)],
        [run(copy(rate * 0.9, **gloo), start=9 + n, boot=str(9 + n)) for n, rate in enumerate(STEADY)],
    )
    assert _only(four).call == "worse"


def test_a_case_that_hangs_now_is_worse_and_one_that_no_longer_does_is_better() -> None:
    broken = _one(copy(26.0), hang())
    assert broken.call == "worse"
    assert "hang in 1 of 1 runs after" in broken.why
    assert _one(hang(), copy(26.0)).call == "better"
    assert compare([run(hang())], [run(hang(), start=1)]).changes == ()


def test_wrong_bytes_have_no_number() -> None:
    wrong = copy(50.0, verified=False, verdict=Verdict("FAIL", "wrong_data"))
    change = _one(copy(26.0), wrong)
    assert (change.call, change.after) == ("worse", None)


def test_the_tail_is_told_beside_the_median() -> None:
    base = (256 << 20) / 26e9
    change = _one(copy(26.0), copy(26.0, samples_s=(base,) * 4 + (2 * base,)))
    assert change.after == change.before
    assert change.tail_after is not None
    assert change.tail_before is not None
    assert change.tail_after < 0.8 * change.tail_before


OTHERS = {
    "board Example Board before, Other Board": replace(
        MACHINE, environment=replace(MACHINE.environment, board="Other Board")
    ),
    "CPU Example CPU before, Other CPU": replace(MACHINE, cpu=Cpu(model="Other CPU")),
    "GPUs Example GPU before, Other GPU": replace(MACHINE, gpus=(Gpu(0, "Other GPU"),)),
}


@pytest.mark.parametrize("words", OTHERS)
def test_another_machine_is_refused_in_a_sentence_unless_forced(words: str) -> None:
    before, after = [run(copy(26.0))], [run(copy(26.0), start=1, machine=OTHERS[words])]
    with pytest.raises(StoreError, match=rf"different machines \({words} after\): add --force"):
        compare(before, after)
    found = compare(before, after, force=True)
    assert words in found.forced[0]
    assert found.machine


def test_a_simulated_run_is_never_compared_with_a_measured_one() -> None:
    with pytest.raises(StoreError, match="one is simulated and the other one measured"):
        compare([run(copy(26.0))], [run(copy(26.0), start=1, simulated=True)])


def test_another_effort_is_refused() -> None:
    with pytest.raises(StoreError, match=r"the effort differs \(quick before, full after\)"):
        compare([run(copy(26.0))], [run(copy(26.0), start=1, settings=Settings(effort="full"))])


def test_a_gpu_that_fell_off_the_bus_is_a_change_of_the_same_machine() -> None:
    lost = replace(MACHINE, gpus=MACHINE.gpus[:1])
    found = compare([run(copy(26.0))], [run(copy(26.0), start=1, machine=lost)])
    assert [str(difference) for difference in found.machine] == ["GPU1 (Example GPU, 0000:b1:00.0) is gone"]


def test_a_run_is_not_compared_with_itself() -> None:
    one = run(copy(26.0))
    with pytest.raises(StoreError, match="given twice"):
        compare([one], [run(copy(26.0), start=1), one])


def test_of_a_long_command_line_only_the_changed_words_are_told() -> None:
    lines = ("quiet splash iommu=pt", "quiet splash pcie_aspm=off")
    machines = [
        replace(MACHINE, environment=replace(MACHINE.environment, kernel_command_line=line, bios=f"1.{n}"))
        for n, line in enumerate(lines)
    ]
    before, after = (run(copy(26.0), start=n, machine=machine) for n, machine in enumerate(machines))
    told = [str(difference) for difference in compare([before], [after]).machine]
    assert "kernel command line: iommu=pt → pcie_aspm=off" in told
    assert "BIOS: 1.0 → 1.1" in told


def test_a_link_that_idles_differently_is_told_last() -> None:
    machines = [
        replace(
            MACHINE,
            gpus=(replace(MACHINE.gpus[0], link=link, vbios=bios),),
        )
        for link, bios in ((GEN1, "a"), (LinkState(8.0, 16), "b"))
    ]
    before, after = (run(copy(26.0), start=n, machine=machine) for n, machine in enumerate(machines))
    told = [difference.what for difference in compare([before], [after]).machine]
    assert told == ["GPU0 VBIOS", "GPU0 link idle"]


def test_runs_of_one_boot_are_called_that() -> None:
    found = compare(runs(STEADY, boots=["x"] * 4), runs(STEADY, start=10))
    assert (found.before.boots, found.after.boots) == (1, 4)
    (note,) = found.notes
    assert note.startswith("The 4 runs before were made in one boot")
    unknown = compare([run(copy(26.0), boot=None)], [run(copy(26.0), start=1)])
    assert unknown.before.boots is None


def test_one_boot_a_side_has_a_wider_gate_unless_it_is_the_same_boot() -> None:
    lower = [24.9, 24.95, 24.85, 24.9]
    apart = compare(runs(STEADY, boots=["x"] * 4), runs(lower, start=10, boots=["y"] * 4))
    assert _only(apart).call == "same"
    together = compare(runs(STEADY, boots=["x"] * 4), runs(lower, start=10, boots=["x"] * 4))
    assert _only(together).call == "worse"


def test_a_busy_gpu_is_named() -> None:
    used = replace(MACHINE, gpus=(MACHINE.gpus[0], replace(MACHINE.gpus[1], utilization=0.87)))
    found = compare([run(copy(26.0))], [run(copy(13.0), start=1, machine=used)])
    assert found.busy == ("busy GPU: GPU1 was 87 % busy with another program when the run began",)


def test_a_program_that_was_not_there_before_is_named_though_copies_count_as_idle() -> None:
    quiet, used = (
        replace(MACHINE, gpus=(MACHINE.gpus[0], replace(MACHINE.gpus[1], utilization=0.0, processes=count)))
        for count in (0, 1)
    )
    before, after = run(copy(26.0), machine=quiet), run(copy(13.0), start=1, machine=used)
    found = compare([before], [after])
    assert found.busy == ("perhaps a busy GPU: another program was on GPU1 when the run began",)
    assert [str(difference) for difference in found.machine] == ["GPU1 other programs: 0 → 1"]
    assert compare([replace(after, started="2026")], [after]).busy == ()


def test_a_called_change_stands_only_where_it_repeats() -> None:
    before, after = [run(copy(26.0))], [run(copy(13.0), start=1)]
    assert _only(compare(before, after)).repeated is None
    again = _only(compare(before, after, again=[run(copy(13.1), start=2)]))
    assert (again.call, again.repeated) == ("worse", True)
    not_again = _only(compare(before, after, again=[run(copy(25.9), start=2)]))
    assert (not_again.call, not_again.repeated) == ("inconclusive", False)
    elsewhere = _only(compare(before, after, again=[run(copy(1.0, "other"), start=2)]))
    assert (elsewhere.call, elsewhere.repeated) == ("worse", None)


def test_a_run_that_was_broken_off_is_said() -> None:
    found = compare([run(copy(26.0), complete=False)], [run(copy(26.0), start=1)])
    assert found.before.incomplete == 1
    assert any("broken off" in note for note in found.notes)


def test_a_failing_run_among_many_good_ones_is_not_averaged_away() -> None:
    after = [*runs(STEADY[:3], start=10), run(hang(), start=20)]
    change = _only(compare(runs(STEADY), after))
    assert change.call == "worse"
    assert "hang in 1 of 4 runs" in change.why
    assert change.case == CASE


@pytest.mark.parametrize("rate", [0.0, -26.0, 1e300, 5e-324])
def test_numbers_that_no_hardware_gives_are_not_compared(rate: float) -> None:
    odd = replace(copy(26.0), bandwidth=rate)
    (row,) = compare([run(copy(26.0))], [run(odd, start=1)]).missing
    assert row.measured == "before"


@pytest.mark.parametrize("samples", [(0.0,) * 5, (-1.0, 1.0, 1.0)])
def test_times_that_no_clock_gives_are_not_compared(samples: tuple[float, ...]) -> None:
    odd = replace(copy(26.0), samples_s=samples)
    assert compare([run(copy(26.0))], [run(odd, start=1)]).changes == ()


def test_a_gpu_is_busy_from_the_same_share_on_as_for_the_judge() -> None:
    assert DEFAULT.busy == compare_machine.BUSY
