"""What a person reads of a comparison."""

from __future__ import annotations

from dataclasses import replace

import pytest

from suite.records.comparison import Comparison
from suite.records.run import Limits, Verdict
from suite.report import compare as report
from suite.report import compare_words as words
from suite.store.compare import compare
from tests.store.small import CASE, FAIL, GEN1, GEN4, MACHINE, copy, hang, link, run, runs

STEADY = (26.0, 26.1, 25.9, 26.0)
NARROW = Limits(now=3.7e9)


def _fixed() -> Comparison:
    before = run(link(GEN1, 6.0), copy(2.9, verdict=FAIL, limits=NARROW))
    return compare([before], [run(link(GEN4, 52.0), copy(26.1), start=1)])


def test_a_repair_is_one_sentence_with_link_numbers_and_conclusion() -> None:
    (sentence,) = words.sentences(_fixed())
    assert sentence == (
        "GPU1 Gen1 x16 → Gen4 x16 under load; host_to_device 2.90 GB/s → 26.1 GB/s (×9.0, 90 % of the new ceiling), "
        "and 1 more case: the fix worked."
    )
    assert words.headline(_fixed()).startswith(sentence)


def test_a_gain_that_is_not_right_yet_is_not_called_fixed() -> None:
    doubtful = compare([run(copy(2.9, verdict=FAIL))], [run(copy(12.0, verdict=FAIL), start=1)])
    assert words.sentences(doubtful)[0].endswith("better, but not all of it is right yet.")


def test_a_gain_where_nothing_was_wrong_is_just_better() -> None:
    assert words.sentences(compare([run(copy(20.0))], [run(copy(26.0), start=1)]))[0].endswith(": probably better.")


def test_nothing_beyond_noise_says_that() -> None:
    found = compare(runs(STEADY), runs(STEADY, start=10))
    assert words.headline(found) == "No change beyond noise in 1 case."


def test_what_is_worse_names_a_busy_gpu() -> None:
    used = replace(MACHINE, gpus=(MACHINE.gpus[0], replace(MACHINE.gpus[1], utilization=0.87)))
    found = compare([run(copy(26.0))], [run(copy(13.0), start=1, machine=used)])
    assert words.headline(found) == (
        "GPU1: host_to_device 26.0 GB/s → 13.0 GB/s (×0.50, 45 % of the ceiling): probably worse; busy GPU: GPU1 was "
        "87 % busy with another program when the run began."
    )


def test_a_hang_is_told_as_such() -> None:
    assert "host_to_device 26.0 GB/s → hang: worse" in words.headline(
        compare([run(copy(26.0))], [run(hang(), start=1)])
    )
    fixed = compare([run(hang())], [run(copy(26.0), start=1)])
    assert "host_to_device hang → 26.0 GB/s: the fix worked" in words.headline(fixed)


def test_one_case_that_cannot_be_called_is_told_with_its_reason() -> None:
    text = report.render(compare([run(copy(26.0))], [run(copy(24.5), start=1)]))
    assert text.startswith("No change that can be called: Of 1 case: 1 inconclusive.")
    assert "too few runs to tell, take four a side: −5.8 %, gate 10 % (one run a side)" in " ".join(text.split())


def test_a_link_that_changed_without_a_change_of_numbers_is_told() -> None:
    found = compare([run(link(GEN1, 52.0))], [run(link(GEN4, 52.0), start=1)])
    assert words.sentences(found) == (
        "GPU1 Gen1 x16 → Gen4 x16 under load; the numbers of this GPU show no change beyond noise.",
    )


def test_the_machine_comes_before_the_numbers() -> None:
    text = report.render(_fixed())
    machine, numbers = text.index("What changed in the machine"), text.index("What changed in the numbers")
    assert machine < numbers
    assert "GPU1 link under load: Gen1 x16 → Gen4 x16" in text[machine:numbers]


@pytest.mark.parametrize("width", [60, 80, 100, 160])
def test_no_line_is_wider_than_asked_for(width: int) -> None:
    short = run(link(GEN4, 52.0), copy(26.1, "c"), start=1)
    found = compare([run(link(GEN1, 6.0), copy(2.9, "c", verdict=FAIL))], [short])
    assert max(map(len, report.render(found, width=width).splitlines())) <= width


def test_every_case_of_one_side_is_named_in_markdown_and_counted_on_the_terminal() -> None:
    names = [f"host_copy/case{number}" for number in range(30)]
    found = compare([run(copy(26.0), *(copy(26.0, name) for name in names))], [run(copy(26.0), start=1)])
    text = " ".join(report.render(found).split())
    assert "Not compared, not in the runs after: host_copy/case0," in text
    assert "and 10 more." in text
    markdown = report.render_markdown(found)
    assert all(f"{name.rpartition('/')[2]}" in markdown for name in names)


def test_a_forced_or_simulated_comparison_says_so_on_top() -> None:
    before, after = run(copy(26.0), simulated=True), run(copy(26.0), start=1)
    text = report.render(compare([before], [after], force=True))
    assert text.startswith("SIMULATED: FORCED: No change")
    assert "FORCED: one is simulated and the other one measured." in text.splitlines()[1]


def test_a_called_change_asks_for_its_repetition_until_it_has_repeated() -> None:
    before, after, again = run(copy(26.0)), run(copy(13.0), start=1), run(copy(13.0), start=2)
    assert "measure the called cases once more" in " ".join(report.render(compare([before], [after])).split())
    repeated = compare([before], [after], again=[again])
    assert "must repeat" not in report.render(repeated)
    assert "measured again: worse" in words.headline(repeated)


def test_nothing_in_common_is_said() -> None:
    found = compare([run(copy(26.0, "a"))], [run(copy(26.0, "b"), start=1)])
    assert words.headline(found) == "Nothing could be compared: no case has numbers on both sides."


@pytest.mark.parametrize(
    ("number", "text"),
    [(9.0, "×9.0"), (0.0635, "×0.064"), (123.4, "×123"), (1.042, "+4.2 %"), (0.949, "−5.1 %"), (None, "–")],
)
def test_ratios_read_well(number: float | None, text: str) -> None:
    assert words.ratio(number) == text


def test_sides_name_runs_and_boots() -> None:
    found = compare(runs(STEADY, boots=["x"] * 4), [run(copy(26.0), start=30, boot=None)], names=("slot1", "slot2"))
    assert words.side(found.before) == ("slot1: 4 runs in one boot, 2026-01-02 03:00:00 UTC to 2026-01-02 03:00:03 UTC")
    assert words.side(found.after) == "slot2: 1 run, 2026-01-02 03:00:30 UTC"


def test_names_from_files_cannot_steer_the_terminal_or_the_page() -> None:
    verdict = Verdict("PASS", "healthy")
    before, after = (run(copy(rate, f"{CASE}\x1b[31m|`<b>", verdict), start=n) for n, rate in enumerate((26.0, 13.0)))
    found = compare([before], [after], names=("\x1b[2J", "<script>"))
    assert "\x1b" not in report.render(found)
    assert "<script>" not in report.render_markdown(found)
