"""Copies between GPUs on simulated machines, through the shipped benchmarks: the right verdict for each pair."""

from __future__ import annotations

import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from suite.records.run import Result, Run
from suite.store import runs
from tests.plugin.conftest import ROOT
from tests.plugin.test_catalogue import ENVIRONMENT, MACHINES

FILES = ("benchmarks/test_link.py", "benchmarks/test_peer_copy.py")


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory):
    """(the run, what pytest printed) of a shipped machine, each measured once."""

    @cache
    def on(machine: str) -> tuple[Run, str]:
        folder: Path = tmp_path_factory.mktemp("reports")
        given = [*FILES, f"--machine={MACHINES / machine}.json", f"--report-dir={folder}", "-rs"]
        command = [sys.executable, "-m", "pytest", *given]
        done = subprocess.run(command, cwd=ROOT, env=ENVIRONMENT, capture_output=True, text=True, check=False)
        (report,) = folder.iterdir()
        return runs.read(report), done.stdout

    return on


def direct(run: Run, way: str = "write") -> dict[tuple[int, ...], Result]:
    """Every pair's copy with P2P on, at the one size."""
    return {r.gpus: r for r in run.results if re.fullmatch(rf"peer_copy/direct/gpu\d+_gpu\d+/{way}", r.case)}


def verdict(result: Result) -> tuple[str, str]:
    assert result.verdict is not None, result.case
    return result.verdict.status, result.verdict.cause


def test_every_pair_of_sixteen_gpus_gets_its_own_verdict(measured) -> None:
    run, _ = measured("16xpcie-three-faults")
    found = direct(run)
    assert len(found) == 240
    behind_first_switch = {(a, b) for a in range(4) for b in range(4) if a != b}
    expected = {
        **dict.fromkeys(found, ("PASS", "healthy")),
        **dict.fromkeys(behind_first_switch, ("FAIL", "p2p_redirected")),
        **dict.fromkeys(((5, 9), (9, 5)), ("FAIL", "wrong_data")),
        **dict.fromkeys(((12, 14), (14, 12)), ("FAIL", "p2p_slower_than_staging")),
    }
    assert {pair: verdict(result) for pair, result in found.items()} == expected


def test_the_findings_name_the_pairs_and_the_ports(measured) -> None:
    run, text = measured("16xpcie-three-faults")
    redirected = direct(run)[0, 1].verdict
    assert redirected is not None
    assert "0000:12:00.0, 0000:12:01.0" in redirected.evidence[0]
    assert "iommu=pt" in (redirected.advice or "")
    assert direct(run)[5, 9].bandwidth is None
    flat = " ".join(text.split())
    assert "GPU5 → GPU9: wrong data" in flat
    assert "GPU12 → GPU14: peer copies reach" in flat


def test_a_pair_is_bound_by_the_narrowest_hop_of_its_own_path(measured) -> None:
    run, _ = measured("16xpcie-three-faults")
    addresses = {gpu.index: gpu.address for gpu in run.machine.gpus}
    for pair, result in direct(run).items():
        assert result.limits is not None
        ends = (addresses[pair[0]], addresses[pair[1]])
        above = {f.address for end in ends for f in run.machine.ancestors(end)}
        assert any(address in (result.limits.binding or "") for address in above), result.case


def test_pairs_that_disagree_are_swept_and_the_others_are_represented(measured) -> None:
    run, _ = measured("16xpcie-three-faults")
    sizes = [r for r in run.results if r.case.startswith("peer_copy/sizes/")]
    swept = {r.gpus for r in sizes if r.represented_by is None}
    assert {(5, 9), (9, 5), (12, 14), (14, 12)} <= swept
    # One of each class stays: below one switch the first agreeing pair is behind the second switch.
    assert {(4, 5), (0, 4), (0, 8)} <= swept
    assert len(swept) < 30
    names = {r.case for r in run.results}
    assert all(r.represented_by in names for r in run.results if r.represented_by)
    assert next(r for r in sizes if r.gpus == (8, 10)).represented_by.startswith("peer_copy/sizes/write/gpu4_gpu5/")


def test_bridged_pairs_are_judged_by_nvlink_and_the_others_by_pcie(measured) -> None:
    run, _ = measured("4xnvlink-bridges")
    found = direct(run)
    assert {verdict(r)[0] for r in found.values()} == {"PASS"}
    assert "NVLinks" in (found[0, 1].limits.binding or "")  # type: ignore[union-attr]
    assert found[0, 1].limits.now == pytest.approx(56.25e9)  # type: ignore[union-attr]
    assert "NVLinks" not in (found[1, 2].limits.binding or "")  # type: ignore[union-attr]
    assert found[1, 2].limits.now == pytest.approx(28.8e9, rel=0.01)  # type: ignore[union-attr]


def test_nvswitch_carries_every_pattern_at_the_rate_of_all_gpus(measured) -> None:
    run, _ = measured("8xnvswitch")
    limits = {r.transport: r.limits.now for r in run.results if r.operation == "peer_pattern" and r.limits}
    assert limits == {
        "disjoint_pairs": 4 * 450e9, "one_to_all": 450e9, "all_to_one": 450e9, "ring": 8 * 450e9, "all_to_all": 3600e9,
    }  # fmt: skip
    assert {verdict(r)[0] for r in run.results} <= {"PASS", "NOT_SAMPLED"}


def test_a_pattern_is_bound_by_the_uplink_that_its_flows_share(measured) -> None:
    """Two GPUs a switch: one GPU's link carries all of its flows; a ring crosses each uplink once each way."""
    run, _ = measured("8xpcie-switches")
    patterns = {r.transport: r for r in run.results if r.operation == "peer_pattern"}
    assert {verdict(r)[0] for r in patterns.values()} == {"PASS"}
    assert {r.transport: r.verified for r in patterns.values()} == dict.fromkeys(patterns, True)
    one = patterns["one_to_all"].limits
    ring = patterns["ring"].limits
    assert one is not None
    assert one.now == pytest.approx(57.6e9, rel=0.01)
    assert ring is not None
    assert ring.now == pytest.approx(8 * 57.6e9, rel=0.01)


def test_a_pair_that_hangs_costs_one_deadline(measured) -> None:
    run, _ = measured("8xpcie-hung-pair")
    failed = [r.case for r in run.results if verdict(r)[0] == "FAIL"]
    assert failed == ["peer_copy/direct/gpu2_gpu5/write"]
    others = [r for r in run.results if set(r.gpus) == {2, 5} and r.p2p and r.case not in failed]
    assert others == []  # neither the way back nor the read was tried
    given_up = [r for r in run.results if verdict(r)[0] == "UNAVAILABLE"]
    assert all("not tried again after peer_copy/direct/gpu2_gpu5/write" in r.verdict.evidence[0] for r in given_up)


def test_p2p_that_the_driver_denies_is_said_once_with_its_meaning_and_what_is_used_instead(measured) -> None:
    run, text = measured("2xpcie-no-p2p")
    denied = direct(run)[0, 1]
    assert verdict(denied) == ("UNAVAILABLE", "p2p_unavailable")
    assert denied.verdict is not None
    assert "GNS" in denied.verdict.evidence[0]
    assert "through host memory" in denied.verdict.evidence[0]
    assert denied.verdict.evidence[1].startswith("staged by the driver, GPU0 → GPU1 copies at ")
    staged = [r for r in run.results if r.p2p is False and r.operation == "peer_write"]
    assert {verdict(r)[0] for r in staged} == {"PASS"}
    assert " ".join(text.split()).count("Peer copies: not measured: no P2P (GNS") == 1


def test_p2p_slower_than_staging_across_sockets_warns(measured) -> None:
    run, text = measured("2xpcie-far-slow")
    assert verdict(direct(run)[0, 1]) == ("WARN", "p2p_far")
    assert "keep NCCL's default" in " ".join(text.split())


def test_wrong_bytes_fail_while_the_staged_copy_of_the_same_pair_is_right(measured) -> None:
    run, _ = measured("2xpcie-wrong-bytes")
    assert verdict(direct(run)[0, 1]) == ("FAIL", "wrong_data")
    assert direct(run)[0, 1].bandwidth is None
    staged = next(r for r in run.results if r.case == "peer_copy/staged/gpu0_gpu1")
    assert verdict(staged)[0] == "PASS"


def test_one_gpu_copies_within_itself_and_between_processes_and_the_rest_is_unavailable(measured) -> None:
    run, _ = measured("1xvm-h200")
    peers = [r for r in run.results if r.group == "peer_copy"]
    done = {r.operation: verdict(r)[0] for r in peers if r.samples_s}
    assert done == {"device_local_copy": "PASS", "ipc_copy": "PASS"}
    reasons = {r.verdict.evidence[0] for r in peers if not r.samples_s and r.verdict}
    assert reasons == {"needs two GPUs and one is there", "needs three GPUs and one is there"}
    assert all(r.limits and r.limits.now == 2400e9 for r in peers if r.samples_s)
    assert all("functional-only" in r.verdict.evidence[-1] for r in peers if r.samples_s and r.verdict)
