"""GPUs through NVML: what it answers, what it does not, and when it hangs."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from suite.probe import gpus, lifetime, nvml
from suite.probe.nvml import Answers, Problem
from suite.probe.tree import Tree
from suite.records.machine import Gpu, LinkState, NvLink, PciFunction
from tests.probe import trees
from tests.probe.fake_nvml import FakeNvml, two_gpus

CARD = PciFunction("0000:01:00.0", vendor_id=0x10DE, class_code=0x030200)


def answers(fake: FakeNvml) -> Answers:
    *_, last = nvml.read_with(fake)
    return last


def test_what_nvml_does_not_support_is_unknown_never_zero() -> None:
    gpu = answers(two_gpus()).gpus[0]
    assert (gpu.name, gpu.address, gpu.pci_device_id) == ("NVIDIA H200", "0000:01:00.0", 0x2335)
    assert (gpu.link, gpu.link_max, gpu.link_device) == (LinkState(2.5, 16), LinkState(32.0, 16), LinkState(32.0))
    unknown = (gpu.bar1_bytes, gpu.processes, gpu.throttle, gpu.replays, gpu.mig, gpu.power_w, gpu.utilization)
    assert unknown == (None,) * 7
    assert gpu.nvlinks == ()


def test_every_state_of_a_gpu_is_translated_to_base_units_and_words() -> None:
    said = {
        "DeviceGetPerformanceState": 8,
        "DeviceGetPowerUsage": 75_500,
        "DeviceGetTemperature": 41,
        "DeviceGetCurrentClocksEventReasons": 0x5,
        "DeviceGetBAR1MemoryInfo": SimpleNamespace(bar1Total=256 << 20),
        "DeviceGetMigMode": [1, 1],
        "DeviceGetComputeMode": 2,
        "DeviceGetVirtualizationMode": 1,
        "DeviceGetComputeRunningProcesses": [SimpleNamespace(pid=7, usedGpuMemory=100)],
        "DeviceGetGraphicsRunningProcesses": [SimpleNamespace(pid=7, usedGpuMemory=100)],
        "DeviceGetUtilizationRates": SimpleNamespace(gpu=37),
    }
    gpu = answers(two_gpus(**said)).gpus[1]
    assert (gpu.performance_state, gpu.power_w, gpu.temperature_c, gpu.utilization) == (8, 75.5, 41.0, 0.37)
    assert gpu.throttle == ("idle", "software power cap")
    assert (gpu.bar1_bytes, gpu.mig, gpu.compute_mode, gpu.virtualization) == (
        256 << 20,
        True,
        "prohibited",
        "passthrough",
    )
    assert (gpu.processes, gpu.processes_bytes) == (1, 100)


def test_an_unknown_performance_state_is_not_a_number() -> None:
    assert answers(two_gpus(DeviceGetPerformanceState=32)).gpus[0].performance_state is None


def test_pairs_have_topology_and_the_worse_of_both_directions() -> None:
    def p2p(one: int, two: int, index: int) -> int:
        assert isinstance(index, int)
        return {0: 0, 1: 3 if one > two else 0, 3: 5}[index]

    (pair,) = answers(two_gpus(DeviceGetTopologyCommonAncestor=50, DeviceGetP2PStatus=p2p)).pairs
    assert (pair.first, pair.second, pair.topology_nvml) == (0, 1, "SYS")
    assert (pair.p2p_read, pair.p2p_write, pair.p2p_atomics) == ("OK", "TNS", "NS")


def test_nvlinks_have_rates_remotes_and_count_between_gpus() -> None:
    def fields(_handle: int, _wanted: list[tuple[int, int]]) -> list[Any]:
        return [SimpleNamespace(nvmlReturn=0, value=SimpleNamespace(uiVal=26562))]

    said = {
        "DeviceGetNvLinkState": lambda _, i: 1 if i < 4 else (_ for _ in ()).throw(FakeNvml.NVMLError(3)),
        "DeviceGetNvLinkRemoteDeviceType": 0,
        "DeviceGetNvLinkRemotePciInfo": lambda h, _: SimpleNamespace(busId=f"00000000:0{2 - h}:00.0"),
        "DeviceGetNvLinkVersion": 6,  # NVML_NVLINK_VERSION_4_0
        "DeviceGetFieldValues": fields,
    }
    one, two = answers(two_gpus(**said)).gpus
    assert len(one.nvlinks) == 4
    assert one.nvlinks[0] == NvLink(0, True, 4, "gpu", "0000:02:00.0", 26562e6)
    assert gpus.nvlinks_between(one, two) == 4


def test_links_into_a_switch_count_for_every_pair_and_unknown_ends_for_none() -> None:
    def card(index: int, links: int, remote: Any = "switch") -> Gpu:
        return Gpu(index, "x", nvlinks=tuple(NvLink(i, True, remote=remote) for i in range(links)))

    assert gpus.nvlinks_between(card(0, 18), card(1, 12)) == 12
    assert gpus.nvlinks_between(card(0, 2, None), card(1, 2)) is None
    assert gpus.nvlinks_between(card(0, 0), card(1, 0)) == 0


@pytest.mark.parametrize(
    ("code", "problem"), [(9, "no_driver"), (12, "no_library"), (18, "mismatch"), (4, "no_permission"), (999, "error")]
)
def test_the_reason_why_nvml_does_not_start_is_kept(code: int, problem: str) -> None:
    assert answers(FakeNvml({}, start_error=code)).problem == problem


def test_a_driver_without_gpus_says_so() -> None:
    assert answers(FakeNvml({"DeviceGetCount": 0})).problem == "no_gpus"


def test_sysfs_adds_the_node_and_the_gpus_own_width() -> None:
    card = PciFunction("0000:01:00.0", numa_node=1, link_max=LinkState(16.0, 16))
    (joined,) = gpus.join(Answers(gpus=(Gpu(0, "x", "0000:01:00.0", link_device=LinkState(32.0)),)), [card])
    assert (joined.numa_node, joined.link_device) == (1, LinkState(32.0, 16))


@pytest.mark.parametrize(
    ("problem", "driver", "functions", "words"),
    [
        ("no_library", False, [], "libnvidia-ml.so.1 was not found"),
        ("no_library", False, [CARD], "no driver is loaded"),
        ("no_binding", False, [CARD], "no driver is loaded"),
        ("no_binding", True, [CARD], "nvidia-ml-py is not installed"),
        ("no_driver", False, [], "no NVIDIA GPU is seen"),
        ("mismatch", True, [CARD], "different versions"),
        ("timeout", True, [CARD], "did not answer"),
        ("no_permission", True, [CARD], "/dev/nvidia"),
        ("not_recorded", False, [CARD], "only sysfs"),
    ],
)
def test_why_there_is_no_gpu_is_one_sentence_of_its_own(
    tmp_path: Path, problem: Problem, driver: bool, functions: list[PciFunction], words: str
) -> None:
    tree = Tree(trees.write(tmp_path, {"proc/driver/nvidia/version": "x"} if driver else {"proc/x": ""}))
    sentence = gpus.why_none(Answers(problem=problem), functions, tree)
    assert words in sentence
    assert "\n" not in sentence


def test_the_last_whole_line_counts_when_the_child_is_ended_in_the_middle() -> None:
    lines = [msgspec.json.encode(Answers(driver=d)) for d in ("1", "2")]
    assert gpus.last_answers(lines[0] + b"\n" + lines[1] + b"\n" + lines[0][:20]).driver == "2"
    assert gpus.last_answers(b"") == Answers()
    assert gpus.last_answers(b"[[[[\n\xff\n") == Answers()


def child_that(code: str) -> Any:
    def start(*_: str) -> subprocess.Popen[bytes]:
        return subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    return start


def test_a_hanging_nvml_costs_its_deadline_and_keeps_what_was_said(monkeypatch: pytest.MonkeyPatch) -> None:
    line = msgspec.json.encode(Answers(driver="580", gpus=(Gpu(0, "x"),))).decode()
    monkeypatch.setattr(lifetime, "start", child_that(f"print({line!r}, flush=True); import time; time.sleep(60)"))
    began = time.monotonic()
    found = gpus.ask(1.0)
    assert time.monotonic() - began < 10
    assert (found.driver, len(found.gpus), found.problem) == ("580", 1, "timeout")


def test_a_crashing_nvml_is_a_problem_not_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lifetime, "start", child_that("import os; os.abort()"))
    assert gpus.ask(20.0).problem == "crash"


def test_an_nvml_child_that_cannot_be_started_is_a_problem_not_a_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    answers = gpus.ask(timeout_s=1)
    assert (answers.problem, answers.problem_text) == ("crash", "it cannot be started: No such file or directory")
