"""Physical faults in simulated machines, judged through the real limits: the right cause is named."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from suite.records.scenario import Fault, Scenario
from tests.data.machines import build
from tests.judge.pipeline import run
from tests.judge.small import link

SCENARIOS = build.scenarios()
HEALTHY = ("2xpcie", "2xpcie-no-p2p", "1xpcie-4-nodes", "1xvm-h200", "8xpcie-switches", "8xnvswitch")
COPIES = ("link", "host_memory", "host_copy")
EVERYTHING = (*COPIES, "peer_copy", "allreduce")
GPU1 = {"2xpcie": "0000:a1:00.0", "8xpcie-switches": "0000:14:00.0", "8xnvswitch": "0000:11:00.0"}


@pytest.mark.parametrize("name", HEALTHY)
def test_a_healthy_machine_passes(name: str) -> None:
    judged = run(SCENARIOS[name], groups=EVERYTHING)
    assert judged.statuses() <= {"PASS", "UNAVAILABLE"}
    passed = sum(1 for r in judged.run.results if r.verdict and r.verdict.status == "PASS")
    assert judged.headline == f"SIMULATED: This machine is right: all {passed} cases pass."


@settings(max_examples=60, deadline=None)
@given(
    name=st.sampled_from(["2xpcie", "1xpcie-4-nodes", "1xvm-h200"]),
    efficiency=st.floats(0.80, 0.97),
    seed=st.integers(0, 10_000),
)
def test_healthy_machines_anywhere_in_the_range_never_fail(name: str, efficiency: float, seed: int) -> None:
    judged = run(replace(SCENARIOS[name], efficiency=efficiency, noise=0.03, seed=seed), groups=COPIES)
    assert "FAIL" not in judged.statuses()


def test_healthy_machines_hardly_ever_warn() -> None:
    """Less than 1 % of the cases of 40 runs at the lower end of what is healthy."""
    warned = cases = 0
    for seed in range(40):
        judged = run(replace(SCENARIOS["1xvm-h200"], efficiency=0.80, noise=0.03, seed=seed), groups=COPIES)
        warned += sum(1 for r in judged.run.results if r.verdict and r.verdict.status == "WARN")
        cases += len(judged.run.results)
    assert warned < 0.01 * cases


# Which fault is observable on which machine, fixed beforehand: (fault on GPU1, the cause that must come first).
FAULTS: dict[str, tuple[Fault, str]] = {
    "speed": (Fault("link_state", gpu=1, link=link(1, 16)), "downtrained_speed"),
    "one generation down": (Fault("link_state", gpu=1, link=link(4, 16)), "downtrained_speed"),
    "width": (Fault("link_state", gpu=1, link=link(5, 8)), "width_fault"),
    "reads": (Fault("outstanding_reads", gpu=1, rate=24e9), "one_direction_weak"),
    "far node": (Fault("node_to_gpu_capacity", gpu=1, node=0, rate=12e9), "numa_far_slow"),
    "wrong bytes": (Fault("wrong_bytes", gpu=1, group="host_copy"), "wrong_data"),
    "hang": (Fault("hang", gpu=1, group="host_copy"), "hang"),
    "crash": (Fault("crash", gpu=1, group="host_copy"), "crash"),
    "latency": (Fault("latency", gpu=1, seconds=3e-5), "latency_out_of_family"),
}
NEAR_NODE = {"2xpcie": 1, "8xpcie-switches": 0, "8xnvswitch": 0}


@pytest.mark.parametrize("name", list(GPU1))
@pytest.mark.parametrize("fault", list(FAULTS))
def test_the_right_cause_comes_first(name: str, fault: str) -> None:
    physical, cause = FAULTS[fault]
    if physical.node is not None:
        physical = replace(physical, node=1 - NEAR_NODE[name])
    judged = run(replace(SCENARIOS[name], faults=(physical,)), groups=COPIES)
    assert judged.found[0].cause == cause, judged.found
    assert judged.found[0].subject == "GPU1"
    others = [r for r in judged.run.results if 1 not in r.gpus]
    assert {r.verdict.status for r in others if r.verdict} == {"PASS"}


@pytest.mark.parametrize("name", list(GPU1))
def test_a_hop_that_carries_less_than_its_link_says_is_an_outlier_or_slow(name: str) -> None:
    fault = Fault("hop_capacity", address=GPU1[name], rate=20e9)
    judged = run(replace(SCENARIOS[name], faults=(fault,)), groups=COPIES)
    assert judged.found[0].status == "FAIL"
    assert judged.found[0].subject == "GPU1"
    assert judged.verdict(f"host_copy/host_to_device/gpu1/node{NEAR_NODE[name]}/256MiB").cause == "outlier"


def test_a_slow_pair_below_one_switch_is_no_faster_than_staging() -> None:
    fault = Fault("pair_capacity", gpu=0, peer=1, rate=9.9e9)
    judged = run(replace(SCENARIOS["8xpcie-switches"], faults=(fault,)), groups=EVERYTHING)
    assert (judged.found[0].cause, judged.found[0].subject) == ("p2p_slower_than_staging", "GPU0, GPU1")
    assert "allreduce/nccl/default/256MiB" in judged.found[0].cases


def test_one_slow_link_explains_the_peer_copies_and_the_allreduce_too() -> None:
    judged = run(SCENARIOS["2xpcie-gpu1-gen1"], groups=EVERYTHING)
    assert judged.found[0].subject == "GPU1"
    assert {case.partition("/")[0] for case in judged.found[0].cases} == {"link", "host_copy", "peer_copy", "allreduce"}
    assert any(
        "is all that this link carries" in text for text in judged.verdict("allreduce/nccl/default/256MiB").evidence
    )


def test_link_errors_are_said_before_what_they_cause() -> None:
    judged = run(SCENARIOS["2xpcie-link-errors"], groups=COPIES)
    assert judged.found[0].cause == "signal_integrity"
    assert judged.found[0].subject == "GPU1"


def test_one_link_explains_all_findings_of_its_gpu() -> None:
    judged = run(SCENARIOS["2xpcie-gpu1-gen1"], groups=COPIES)
    assert len([f for f in judged.found if f.status == "FAIL"]) == 1
    troubled = [r.case for r in judged.run.results if r.verdict and r.verdict.status == "FAIL"]
    assert sorted(judged.found[0].cases) == sorted(troubled)
    assert f"explains all {len(troubled)} cases not in order" in judged.found[0].sentence
    assert judged.headline.startswith("SIMULATED: This machine is not right")


def test_the_shipped_scenarios_are_those_that_the_script_builds() -> None:
    """After a change: python -m tests.data.machines.build"""
    on_disk = {path.stem: path.read_text(encoding="utf-8") for path in build.HERE.glob("*.json")}
    assert on_disk == {name: build.text(scenario) for name, scenario in SCENARIOS.items()}


def test_a_scenario_reads_back_as_it_was_built() -> None:
    import msgspec

    for scenario in SCENARIOS.values():
        assert msgspec.json.decode(build.text(scenario), type=Scenario) == scenario
