"""CSV, Prometheus text and JUnit XML: other programs read them, so they are read here by such programs."""

from __future__ import annotations

import csv
import io
import re
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import replace
from xml.etree import ElementTree

import pytest

from suite.records.run import Finding, Run
from suite.report import flat, junit, prometheus
from tests.report import samples

RUNS = (samples.sound, samples.troubled, samples.without_gpu, samples.incomplete, samples.hostile)
SERIES = re.compile(r'[a-z_]+(?:\{(?:[a-z_]+="(?:[^"\\]|\\["\\])*",?)*\})? [0-9.e+-]+')


def _rows(run: Run) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(flat.render(run), newline="")))


@pytest.mark.parametrize("make", RUNS)
def test_csv_has_one_whole_row_a_result(make: Callable[[], Run]) -> None:
    run = make()
    rows = _rows(run)
    assert len(rows) == len(run.results)
    assert all(None not in row and None not in row.values() for row in rows)


def test_csv_keeps_base_units_and_leaves_the_unknown_empty() -> None:
    row = _rows(samples.troubled())[2]
    assert (row["case"], row["status"], row["cause"]) == ("link/gpu2", "FAIL", "downtrained_speed")
    assert float(row["bandwidth_bytes_per_s"]) == 6.4e9
    assert (row["link_load_speed_gts"], row["link_load_width"], row["link_replays"]) == ("2.5", "16", "0")
    assert (row["latency_s"], row["memory_node"]) == ("", "")


def test_csv_says_on_every_row_that_a_run_is_simulated_and_incomplete() -> None:
    assert {(r["run_simulated"], r["run_complete"]) for r in _rows(samples.incomplete())} == {("true", "false")}


def test_csv_text_is_no_formula_for_a_spreadsheet() -> None:
    run = samples.sound()
    evil = replace(run.results[0], case="=HYPERLINK(1)")
    assert _rows(replace(run, results=(evil,)))[0]["case"] == "'=HYPERLINK(1)"


@pytest.mark.parametrize("make", RUNS)
def test_prometheus_text_is_well_formed_and_has_no_series_twice(make: Callable[[], Run]) -> None:
    run = make()
    lines = prometheus.render(replace(run, results=(*run.results, *run.results))).splitlines()
    series = [line for line in lines if not line.startswith("#")]
    assert all(SERIES.fullmatch(line) for line in series)
    assert len({line.rpartition(" ")[0] for line in series}) == len(series)
    families = [line.split()[2] for line in lines if line.startswith("# TYPE")]
    assert len(set(families)) == len(families)


def test_prometheus_marks_every_series_of_a_simulated_run() -> None:
    series = [line for line in prometheus.render(samples.incomplete()).splitlines() if not line.startswith("#")]
    assert all('simulated="true"' in line for line in series)
    assert "simulated" not in prometheus.render(samples.troubled())


def test_prometheus_names_the_link_in_base_units() -> None:
    shown = prometheus.render(samples.troubled())
    assert 'lanecheck_link_speed_transfers_per_second{gpu="2",when="load"} 2500000000.0' in shown
    assert 'lanecheck_run_cases{status="FAIL"} 22.0' in shown


@pytest.mark.skipif(not shutil.which("promtool"), reason="promtool (Debian: prometheus) is not installed")
@pytest.mark.parametrize("make", RUNS)
def test_promtool_finds_nothing_to_complain_about(make: Callable[[], Run]) -> None:
    done = subprocess.run(
        ["promtool", "check", "metrics"], input=prometheus.render(make()), text=True, capture_output=True
    )
    assert (done.returncode, done.stdout + done.stderr) == (0, "")


@pytest.mark.parametrize("make", RUNS)
def test_junit_counts_what_it_holds(make: Callable[[], Run]) -> None:
    run = make()
    root = ElementTree.fromstring(junit.render(run))
    for suite in root.iter("testsuite"):
        assert int(suite.attrib["tests"]) == len(suite.findall("testcase"))
        assert int(suite.attrib["failures"]) == len(suite.findall("testcase/failure"))
        assert int(suite.attrib["skipped"]) == len(suite.findall("testcase/skipped"))
    assert (root.find("testsuite[@name='run']") is None) == run.complete


def test_junit_failures_say_what_is_wrong_and_what_to_do() -> None:
    root = ElementTree.fromstring(junit.render(samples.troubled()))
    hang = root.find("testsuite[@name='allreduce']/testcase/failure")
    assert hang is not None
    assert hang.attrib["message"] == "no answer within 30 s; rank 0 is waiting in allreduce"
    assert "Boot with iommu=pt." in (hang.text or "")
    assert "rank 1: waiting in allreduce" in (hang.text or "")


def test_junit_tests_stand_in_their_group_whatever_their_names() -> None:
    root = ElementTree.fromstring(junit.render(samples.hostile()))
    assert [s.attrib["name"] for s in root] == ["host_copy", "peer_copy"]
    assert "\x1b" not in junit.render(samples.hostile())


def test_what_is_said_of_the_machine_as_a_whole_is_a_suite_of_its_own_and_a_series() -> None:
    absent = Finding(
        "FAIL", "numa_not_as_expected", "0000:ff:00.0", "0000:ff:00.0: no GPU is there.", "Check the slot."
    )
    small = Finding("WARN", "small_bar1", "GPU0", "GPU0: BAR1 maps 256 MiB.")
    of_case = Finding("FAIL", "slow_path", "GPU0", "slow", cases=("a",))
    root = ElementTree.fromstring(junit.render(samples.sound(), [absent, small, of_case]))
    suite = root.find("testsuite[@name='machine']")
    assert suite is not None
    assert (suite.attrib["tests"], suite.attrib["failures"], root.attrib["failures"]) == ("2", "1", "1")
    text = prometheus.render(samples.sound(), [absent, absent, small, of_case])
    lines = [line for line in text.splitlines() if line.startswith("lanecheck_machine_finding{")]
    assert len(lines) == 2
    assert all(SERIES.fullmatch(line) for line in lines)
    assert 'status="FAIL",cause="numa_not_as_expected",subject="0000:ff:00.0"' in lines[0]
