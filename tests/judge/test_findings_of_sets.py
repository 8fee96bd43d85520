"""Findings about several GPUs together: the number of one set of GPUs is never said of another set."""

from __future__ import annotations

from itertools import combinations

from suite.judge.findings import findings
from suite.judge.view import gpu_words, say
from suite.records.case import Operation
from suite.records.machine import Gpu, Machine
from suite.records.run import Finding, Result, Run, Settings
from tests.judge.small import result

EIGHT = Machine(gpus=tuple(Gpu(index, "RTX PRO 6000") for index in range(8)))
BOTH: tuple[Operation, ...] = ("all_gpus_host_to_device", "all_gpus_device_to_host")


def shared(gpus: tuple[int, ...], rate: float, operation: Operation = BOTH[0]) -> Result:
    who = gpu_words(gpus)
    verdict = say("shared_uplink", who=who, measured=f"{rate} GB/s", path=f"the uplink of {who}", alone="108 GB/s")
    return result(operation, rate, case=f"host_copy/{operation}/{who}", gpus=gpus, verdict=verdict)


def unknown(gpus: tuple[int, ...], rate: float) -> Result:
    verdict = say("limit_unknown", who=gpu_words(gpus, " → "), measured=f"{rate} GB/s", why="", like="")
    return result("peer_write", rate, case=f"peer_copy/{gpus}", gpus=gpus, verdict=verdict)


def found(*results: Result) -> list[Finding]:
    run = Run(EIGHT, Settings(), results, len(results), complete=True)
    return [finding for finding in findings(run) if finding.cases]


def test_two_sets_of_gpus_behind_two_uplinks_are_two_findings() -> None:
    said = {f.subject: f for f in found(shared((0, 1), 52.2), shared((2, 3), 26.1), shared((2, 3), 25.9, BOTH[1]))}
    assert set(said) == {"GPU0, GPU1", "GPU2, GPU3"}
    assert "52.2 GB/s" in said["GPU0, GPU1"].sentence
    assert "26.1 GB/s" in said["GPU2, GPU3"].sentence
    assert {subject: len(f.cases) for subject, f in said.items()} == {"GPU0, GPU1": 1, "GPU2, GPU3": 2}


def test_a_pair_and_the_same_pair_the_other_way_round_are_one_set() -> None:
    (one,) = found(unknown((0, 1), 20.0), unknown((1, 0), 19.0))
    assert one.subject == "GPU0, GPU1"
    assert "2 cases are like this, 19.0 GB/s to 20.0 GB/s" in one.sentence


def test_what_is_unknown_of_two_pairs_is_not_one_number() -> None:
    said = {f.subject: f.sentence for f in found(unknown((0, 1), 20.0), unknown((2, 3), 10.0))}
    assert "20.0 GB/s" in said["GPU0, GPU1"]
    assert "10.0 GB/s" in said["GPU2, GPU3"]
    assert "20.0" not in said["GPU2, GPU3"]


def test_all_pairs_of_a_large_machine_take_one_finding_and_the_range_of_their_rates() -> None:
    pairs = list(combinations(range(8), 2))
    (one,) = found(*(unknown(pair, 10.0 + number) for number, pair in enumerate(pairs)))
    assert one.subject == "GPU0 to GPU7"
    assert "28 cases are like this, 10.0 GB/s to 37.0 GB/s" in one.sentence
