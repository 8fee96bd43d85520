"""Host copies on simulated machines of the field's cases, from a physical fault to the verdict and pytest's status."""

from __future__ import annotations

from pathlib import Path

import pytest

from suite.records.run import Result
from suite.store import runs
from tests.plugin.test_catalogue import pytest_on

LINK_AND_COPIES = ("-k", "under_load or test_host_to_device[", "--sizes=64MiB")


def measured(machine: str, reports: Path, status: int) -> list[Result]:
    """The results of the link and of copies from every node; pytest ends with this status."""
    done = pytest_on(machine, reports, *LINK_AND_COPIES)
    assert done.returncode == status, done.stdout
    (folder,) = reports.iterdir()
    return list(runs.read(folder).results)


def causes(results: list[Result], group: str) -> set[tuple[str, str, bool]]:
    """(status, cause, whether memory is on the GPU's first node) of a group's cases."""
    return {(r.verdict.status, r.verdict.cause, r.memory_node == 0) for r in results if r.verdict and r.group == group}


def test_3_a_far_node_at_a_quarter_of_the_near_ones_rate_fails_and_its_link_does_not(tmp_path: Path) -> None:
    found = measured("1xpcie-far-node.json", tmp_path, pytest.ExitCode.TESTS_FAILED)
    assert {status for status, _, _ in causes(found, "link")} == {"PASS"}
    assert causes(found, "host_copy") == {("PASS", "healthy", True), ("FAIL", "numa_far_slow", False)}


def test_4_a_far_node_over_coherent_links_fails_and_nothing_is_said_of_pcie(tmp_path: Path) -> None:
    found = measured("2xc2c.json", tmp_path, pytest.ExitCode.TESTS_FAILED)
    copies = [r for r in found if r.group == "host_copy" and r.verdict]
    failed = [r for r in copies if r.verdict and r.verdict.status == "FAIL"]
    assert {(r.gpus[0], r.memory_node) for r in failed} == {(0, 1), (1, 0)}
    assert {r.verdict.cause for r in failed if r.verdict} == {"numa_far_slow"}
    for r in failed:
        said = " ".join(r.verdict.evidence) if r.verdict else ""
        assert "Gen" not in said
        assert "PCIe" not in said
        assert r.limits is not None
        assert r.limits.now is None


def test_5_the_same_rate_on_every_node_raises_no_alarm(tmp_path: Path) -> None:
    found = measured("1xpcie-4-nodes.json", tmp_path, pytest.ExitCode.OK)
    assert len([r for r in found if r.group == "host_copy"]) == 4
    assert {r.verdict.status for r in found if r.verdict} == {"PASS"}


def test_9_the_x4_hop_above_one_of_two_gpus_is_named(tmp_path: Path) -> None:
    found = measured("2xpcie-x4-hop.json", tmp_path, pytest.ExitCode.OK)
    link = next(r for r in found if r.group == "link" and r.gpus == (1,))
    assert link.verdict is not None
    assert (link.verdict.status, link.verdict.binding) == ("WARN", "0000:00:1c.0 – 0000:02:00.0")
    assert "Gen4 x4" in link.verdict.evidence[0]
    slow = next(r for r in found if r.group == "host_copy" and r.gpus == (1,))
    assert slow.limits is not None
    assert "0000:02:00.0" in (slow.limits.binding or "")


def test_link_cases_that_ran_besides_are_counted_aloud(tmp_path: Path) -> None:
    done = pytest_on("2xpcie.json", tmp_path, "-k", "test_host_to_device[ and gpu0", "--sizes=64MiB")
    assert "1 link case ran besides, to know what the links carry under load" in done.stdout
    whole = pytest_on("2xpcie.json", tmp_path / "whole", *LINK_AND_COPIES)
    assert "ran besides" not in whole.stdout
