"""The terminal report: the answer first, nothing hidden that went wrong, and everything fits the page."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

import pytest

from suite.records.machine import GpuPair, NvLink
from suite.records.run import Finding, Run
from suite.report import style, text
from tests.report import samples
from tests.report.sample_machine import GEN4_X4

ESCAPE = re.compile(r"\x1b\[[0-9;]*m")
RUNS = (samples.sound, samples.troubled, samples.without_gpu, samples.incomplete, samples.hostile, samples.large)


def _summary(run: Run, width: int = 100, colour: bool = False) -> str:
    return text.summary(run, samples.FINDINGS, samples.HEADLINE, width=width, colour=colour)


def test_the_first_line_is_the_answer() -> None:
    assert _summary(samples.troubled()).splitlines()[0] == samples.HEADLINE


@pytest.mark.parametrize("make", RUNS)
@pytest.mark.parametrize("width", [80, 100, 160])
@pytest.mark.parametrize("colour", [False, True])
def test_no_line_is_wider_than_the_page(make: Callable[[], Run], width: int, colour: bool) -> None:
    lines = ESCAPE.sub("", _summary(make(), width, colour)).splitlines()
    assert max(map(len, lines)) <= width


@pytest.mark.parametrize("make", RUNS)
def test_colour_adds_nothing_but_colour(make: Callable[[], Run]) -> None:
    assert ESCAPE.sub("", _summary(make(), colour=True)) == _summary(make())


def test_without_colour_there_is_no_escape_code_even_in_hostile_names() -> None:
    shown = _summary(samples.hostile())
    assert "\x1b" not in shown
    assert "\u202e" not in shown


def test_an_incomplete_simulated_run_says_both_on_top() -> None:
    top = _summary(samples.incomplete()).splitlines()[:5]
    assert top[0].startswith("SIMULATED: INCOMPLETE: ")
    assert top[1].startswith("No hardware was measured")
    assert "Only 9 of 120 planned cases" in top[2]
    assert "".join(top).count("SIMULATED") == 1


def test_a_headline_that_says_simulated_itself_says_it_once() -> None:
    shown = text.summary(samples.incomplete(), (), "SIMULATED: This machine is right.", width=100, colour=False)
    assert shown.startswith("SIMULATED: INCOMPLETE: This machine is right.")


def test_what_the_files_could_not_say_is_on_top() -> None:
    run = replace(samples.sound(), notes=("Line 3 of run.jsonl cannot be read and was left out.",))
    assert "NOTE: Line 3 of run.jsonl" in "\n".join(_summary(run).splitlines()[:3])


def test_findings_come_before_tables_with_their_advice_and_cases() -> None:
    shown = _summary(samples.troubled())
    finding, advice, table = (
        shown.index("✗ FAIL GPU2 runs"),
        shown.index("→ Reseat the card"),
        shown.index("\nMachine\n"),
    )
    assert finding < advice < table
    assert "seen in link/gpu2" in shown
    assert "and 2 more" in shown


def test_what_is_in_order_is_worth_knowing_and_no_finding() -> None:
    known = Finding("PASS", "no_bridge", "GPU0, GPU1", "NVLink-capable, no bridge fitted.", "Fit one.", ("link/gpu0",))
    lines = text.summary(samples.sound(), (known,), samples.HEADLINE).splitlines()
    assert lines[lines.index("Worth knowing") + 1] == "· GPU0, GPU1: NVLink-capable, no bridge fitted. Fit one."
    assert not [line for line in lines if line.startswith("✓ PASS  ") or "seen in" in line]


def test_an_unavailable_group_is_one_line_with_its_reason() -> None:
    shown = _summary(samples.without_gpu())
    assert "Host copies: not measured: there is no GPU (2 cases)" in shown.splitlines()
    assert "Links: not measured: there is no GPU" in shown.splitlines()
    assert shown.count("no NVIDIA driver is loaded") == 1


def test_links_are_shown_as_found_under_load_and_as_they_could_be() -> None:
    row = next(line for line in _summary(samples.troubled()).splitlines() if re.match(r" +2  Gen", line))
    assert row.split("  ")[-1] == "✗ FAIL"
    assert re.findall(r"Gen\d x\d+", row) == ["Gen1 x16", "Gen1 x16", "Gen4 x16"]


def test_a_narrow_hop_above_the_card_is_named() -> None:
    run = samples.sound()
    port = next(f for f in run.machine.pci if f.port_type == "upstream_port")
    narrow = replace(port, link=GEN4_X4)
    pci = tuple(narrow if f is port else f for f in run.machine.pci)
    shown = text.group(replace(run, machine=replace(run.machine, pci=pci)), "link")
    assert "01:00.0 Gen4 x4" in shown


def test_wrong_data_and_hangs_stand_where_the_number_would_be() -> None:
    shown = _summary(samples.troubled())
    assert re.search(r"^ +0 +wrong data ✗ +18.0", shown, re.MULTILINE)
    assert re.search(r"^ 64MiB .* hang .*✗ FAIL$", shown, re.MULTILINE)


def test_sizes_that_went_wrong_keep_their_columns_on_a_narrow_page() -> None:
    shown = text.group(samples.troubled(), "host_copy", width=80)
    row = next(line for line in shown.splitlines() if line.startswith("host→device    2") and "✗ FAIL" not in line)
    assert row.count("✗") >= 3
    assert re.search(r"\d+ more sizes do not fit; `lanecheck report --format csv` has all", shown)


def test_many_healthy_rows_become_one_and_those_that_are_not_stay() -> None:
    run = samples.large()
    last = tuple(r for r in run.results if r.group == "host_copy")[-5]
    bad = replace(last, verdict=replace(samples.troubled().results[2].verdict))  # type: ignore[type-var]
    shown = text.group(replace(run, results=tuple(bad if r is last else r for r in run.results)), "host_copy")
    assert re.search(r"^both ways +15 +1 .*✗ FAIL", shown, re.MULTILINE)
    assert re.search(r"^both ways +0–15 +0, 1 +46.7 .*✓ PASS ×31", shown, re.MULTILINE)
    assert re.search(r"^host→device +0–15 +0, 1 +26.0 .*✓ PASS ×32", shown, re.MULTILINE)
    assert len(shown.splitlines()) < 30


def test_rows_that_cannot_merge_are_counted_where_the_page_ends() -> None:
    run = samples.troubled()
    bad = tuple(
        replace(r, gpus=(n,)) for n in range(40) for r in run.results if r.case.endswith("gpu2/node1/268435456B")
    )
    shown = text.group(replace(run, results=bad), "host_copy")
    assert re.search(r"… 90 more rows, 90 of them not in order", shown)


def test_a_downtrained_path_says_what_it_could_be() -> None:
    run = samples.troubled()
    slow = tuple(
        replace(r, limits=replace(r.limits, now=3.66e9))
        if r.group == "host_copy" and r.gpus == (2,) and r.limits
        else r
        for r in run.results
    )
    shown = text.group(replace(run, results=slow), "host_copy")
    assert re.search(r"^copy .* ceiling +% +could be ", shown, re.MULTILINE)
    assert re.search(r"^host→device +2 .* 3.20 +3.66 .* 28.8 .*✗ FAIL", shown, re.MULTILINE)
    assert "could be: the ceiling if every link ran at what both its ends can do" in shown
    assert "could be" not in text.group(samples.sound(), "host_copy")


def test_merged_values_keep_their_range_and_their_unit() -> None:
    run = samples.sound(16)
    varied = tuple(
        replace(r, bandwidth=26e9 + 1e8 * r.gpus[0], fraction_of_limit=0.90 + 0.003 * r.gpus[0])
        if r.case.startswith("host_copy/host_to_device/") and r.bytes == samples.SIZES[-1]
        else r
        for r in run.results
    )
    shown = text.group(replace(run, results=varied), "host_copy")
    assert re.search(r"^host→device +0–15 .* 26.0–27.5 +28.8 +90–94 % ", shown, re.MULTILINE)


def test_staging_between_pairs_is_a_list_and_not_a_matrix() -> None:
    run = samples.sound(4)
    staged = tuple(
        replace(r, case=f"host_staging/{a}{b}", operation="staging", gpus=(a, b), chunk_bytes=1 << 20)
        for a in range(3)
        for b in range(3)
        if a != b
        for r in run.results
        if r.case == f"host_copy/host_to_device/gpu0/node0/{samples.SIZES[-1]}B"
    )
    shown = text.group(replace(run, results=staged), "host_staging")
    assert "from\\to" not in shown
    assert shown.count("device→host→device") == 6


def test_a_group_lists_its_troubles_and_counts_the_rest() -> None:
    shown = text.group(samples.troubled(), "host_copy")
    assert shown.count("✗ host_copy/") == 5
    assert re.search(r"^✗ host_copy/\S+ and \d+ more: ", shown, re.MULTILINE)


def test_percent_of_each_generation_is_shown_where_the_page_has_room() -> None:
    shown = text.group(samples.sound(), "host_copy", width=160)
    assert re.search(r"Gen1 +Gen2 +Gen3 +Gen4 +Gen5", shown)
    assert re.search(r"above +90 % +45 %", shown)


def test_host_memory_is_a_matrix_of_nodes() -> None:
    shown = text.group(samples.troubled(), "host_memory")
    assert re.search(r"^ +0 +0 +100 +30.0 ! .*! WARN 1 of 2$", shown, re.MULTILINE)


def test_a_long_reason_in_the_machine_table_is_wrapped_and_not_cut() -> None:
    run = samples.without_gpu()
    reason = "no driver: " + "libnvidia-ml.so.1 was not found " * 5
    shown = _summary(replace(run, machine=replace(run.machine, why_no_gpu=reason)), width=80)
    assert reason.strip() in " ".join(shown.split())


def test_a_result_without_verdict_is_shown_as_not_judged() -> None:
    run = samples.without_gpu()
    bare = replace(run, results=tuple(replace(r, verdict=None) for r in run.results if r.group == "host_memory"))
    assert "not judged" in _summary(bare)


def test_a_run_without_results_is_a_report_too() -> None:
    run = replace(samples.without_gpu(), results=(), complete=False)
    assert "no case was measured" in text.summary(run, (), "Nothing was measured yet.", width=100, colour=False)


@pytest.mark.parametrize(
    ("terminal", "environment", "wanted"),
    [
        (True, {"TERM": "xterm"}, True),
        (False, {"TERM": "xterm"}, False),
        (True, {"NO_COLOR": "1"}, False),
        (True, {"NO_COLOR": ""}, True),
        (True, {"TERM": "dumb"}, False),
    ],
)
def test_colour_is_for_terminals_that_want_it(terminal: bool, environment: dict[str, str], wanted: bool) -> None:
    assert style.wants_colour(terminal, environment) is wanted


def test_a_bar_never_leaves_its_place() -> None:
    assert {len(style.bar(f)) for f in (None, -1.0, 0.0, 0.5, 1.0, 7.0)} == {style.BAR}
    assert style.bar(0.5) == "█████░░░░░"


def test_nvlinks_stand_with_the_machine_and_alike_pairs_share_the_words() -> None:
    links = tuple(NvLink(i, active=True, remote="switch", rate=26.562e9) for i in range(18))
    run = samples.sound(3)
    gpus = tuple(replace(gpu, nvlinks=links) for gpu in run.machine.gpus)
    pairs = tuple(GpuPair(a, b, nvlinks=18) for a, b in ((0, 1), (0, 2), (1, 2)))
    joined = replace(run, machine=replace(run.machine, gpus=gpus, pairs=pairs))
    assert "NVLink      18 links of 26.6 GB/s each way through NVSwitch: every GPU pair" in _summary(joined)
    assert "NVLink" not in _summary(run)
