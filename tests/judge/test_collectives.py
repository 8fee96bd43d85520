"""Verdicts of collectives: transports, tuning, launch cost; on simulated machines over every transport."""

from __future__ import annotations

from dataclasses import replace

import pytest

from suite.judge.findings import findings
from suite.judge.rules import judge
from suite.limits import case as limits_of
from suite.measure.simulated.engine import SimulatedEngine
from suite.records.case import Transport
from suite.records.run import Result, Run, Settings, Verdict
from suite.records.scenario import Scenario
from suite.session import assemble
from suite.units import MIB
from tests.data.machines import build
from tests.judge.pipeline import plan, run
from tests.judge.small import last, limits, result

SCENARIOS = build.scenarios()


def allreduce(rate: float, tuning: str | None = None, **fields: object) -> Result:
    """Eight GPUs on PCIe, 256 MiB."""
    given = {"gpus": tuple(range(8)), "world_size": 8, "backend": "nccl", "bytes": 256 * MIB, "limits": limits(45.8)}
    return result("allreduce", rate, case=f"allreduce/nccl/{tuning}", tuning=tuning, **{**given, **fields})


def test_a_setting_that_nearly_doubles_the_rate_is_tuning_and_no_fault_of_the_hardware() -> None:
    plain, tuned = allreduce(22.0), allreduce(39.0, "min_channels_8")
    verdict = last(build.eight_pcie(), plain, tuned)
    assert (verdict.status, verdict.cause) == ("PASS", "tuning_helps")
    assert verdict.evidence[0] == (
        "GPU0 to GPU7: min_channels_8 gives 39.0 GB/s at 256MiB, NCCL's own choice 22.0 GB/s: tuning, not hardware."
    )
    done = (replace(plain, verdict=last(build.eight_pcie(), plain)), replace(tuned, verdict=verdict))
    found = findings(Run(build.eight_pcie(), Settings(), done, 2, complete=True))
    assert "tuning_helps" in {one.cause for one in found}


def test_a_setting_that_changes_nothing_is_judged_as_any_other_row() -> None:
    verdict = last(build.eight_pcie(), allreduce(40.0), allreduce(41.0, "min_channels_8"))
    assert verdict.cause == "healthy"


def test_a_setting_is_not_compared_with_another_transport_or_dtype() -> None:
    for other in ({"transport": "shm"}, {"dtype": "float16"}, {"graph": True}):
        verdict = last(build.eight_pcie(), allreduce(22.0, **other), allreduce(39.0, "min_channels_8"))
        assert verdict.cause != "tuning_helps"


@pytest.mark.parametrize(("graph", "cause"), [(True, "collective_latency"), (False, "small_message")])
def test_an_eager_call_may_take_what_its_launch_takes_and_a_replayed_one_not(graph: bool, cause: str) -> None:
    took = (60e-6,) * 5
    small = allreduce(0.1, bytes=8, samples_s=took, graph=graph, gpus=(0, 1), world_size=2, limits=limits(450.0))
    assert last(build.nvswitch(), small).cause == cause


def test_shared_memory_where_peers_were_asked_for_is_unexpected() -> None:
    taken = Transport("SHM", "Ring", "Simple")
    verdict = last(build.eight_pcie(), allreduce(40.0, transport="p2p", transport_taken=taken))
    assert (verdict.status, verdict.cause) == ("WARN", "transport_unexpected")
    assert "NCCL took SHM, expected P2P" in verdict.evidence[0]


def over(scenario: Scenario, transport: str, size: int = 64 * MIB) -> tuple[Result, Verdict]:
    """One simulated allreduce of all GPUs, after their links were watched."""
    machine = scenario.machine
    engine = SimulatedEngine(scenario, lambda m, p: limits_of.ideal_seconds(m, p))
    links = run(scenario, groups=("link",)).run.results
    given = {"backend": "nccl", "world_size": len(machine.gpus), "transport": transport, "bytes": size}
    planned = plan(machine, f"allreduce/nccl/{transport}", "allreduce", **given)
    samples = engine.measure(planned)
    measured = assemble.result(planned, samples)
    limited = assemble.with_limits(measured, limits_of.of(machine, planned, samples, links))
    return limited, judge(limited, machine, links)


@pytest.mark.parametrize(
    ("name", "transport", "ceiling", "binding"),
    [
        ("8xpcie-switches", "shm", 22.91, "0000:11:00.0"),  # a switch's uplink, which two GPUs share
        ("8xpcie-switches", "default", 45.83, None),
        ("8xpcie-switches", "p2p", 53.07, None),
        ("8xnvswitch", "default", 450.0, "18 NVLinks"),
        ("8xnvswitch", "shm", 45.83, None),
        ("2xpcie-no-p2p", "default", 22.91, None),
    ],
)
def test_each_transport_of_a_healthy_machine_reaches_its_own_ceiling(
    name: str, transport: str, ceiling: float, binding: str | None
) -> None:
    measured, verdict = over(SCENARIOS[name], transport)
    assert measured.limits is not None
    assert measured.limits.now == pytest.approx(ceiling * 1e9, rel=0.001)
    assert verdict.status == "PASS", verdict
    assert binding is None or binding in (measured.limits.binding or "")


def test_forced_peers_that_the_driver_denies_are_simulated_as_shared_memory() -> None:
    measured, _ = over(SCENARIOS["2xpcie-no-p2p"], "p2p")
    assert measured.transport_taken is not None
    assert measured.transport_taken.name == "SHM"


def test_the_network_on_one_host_has_no_limit_and_no_fast_simulation() -> None:
    measured, verdict = over(SCENARIOS["8xpcie-switches"], "net")
    assert measured.bandwidth is not None
    assert measured.bandwidth < 12e9
    assert (verdict.status, verdict.cause) == ("PASS", "correct")
