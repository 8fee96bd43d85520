"""A small benchmark folder in a pytest of its own, on a machine and with measurements that the test makes up."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import msgspec
import pytest

import suite.session  # noqa: F401 - before any inner pytest, whose imports are forgotten after it
from suite.records.case import Plan, Samples
from suite.records.machine import Cpu, Gpu, LinkState, Machine, NumaNode, Software
from suite.records.run import Result, Run, Verdict
from suite.records.scenario import Scenario
from suite.store import runs
from suite.units import GIB

ROOT = Path(__file__).parents[2]
PASS = Verdict("PASS", "healthy")

COPY = """
def test_host_to_device(check, gpu, node, size):
    check("host_to_device", gpus=(gpu,), memory_node=node, bytes=size)
"""
MEMORY = """
def test_copy(check, node):
    check("host_memory_copy", memory_node=node, target_node=node)
"""
GLOO = """
def test_gloo(check, world_size, message):
    check("allreduce", backend="gloo", world_size=world_size, bytes=message)
"""

MACHINE = Machine(
    nodes=(
        NumaNode(0, cpus=(0, 1), memory_bytes=8 * GIB, free_bytes=4 * GIB, distances=(10, 21)),
        NumaNode(1, cpus=(2, 3), memory_bytes=8 * GIB, free_bytes=4 * GIB, distances=(21, 10)),
    ),
    cpu=Cpu(model="Example CPU", packages=2),
    gpus=(
        Gpu(0, "Example GPU", address="0000:17:00.0", numa_node=0, link_max=LinkState(16.0, 16)),
        Gpu(1, "Example GPU", address="0000:b1:00.0", numa_node=1, link_max=LinkState(16.0, 16)),
    ),
    software=Software(driver="580.95", cuda_driver="13.0", torch="2.13", torch_cuda="13.0", cupy="14", cupy_cuda="13"),
)
NO_GPU = replace(MACHINE, gpus=(), why_no_gpu="no NVIDIA driver is loaded")


def samples(*seconds: float, **fields: Any) -> Samples:
    """What an engine measured; five rounds of 1 ms where nothing is said."""
    given = {"clock": "simulated", "engine": "simulated", "verified": True, **fields}
    return Samples(seconds or (0.001,) * 5, **given)


@dataclass
class Engine:
    """Answers with what was scripted for a case's name, or with five good rounds."""

    answers: dict[str, Samples | BaseException]
    plans: list[Plan] = field(default_factory=list)
    closed: bool = False

    def measure(self, plan: Plan) -> Samples:
        self.plans.append(plan)
        answer = self.answers.get(plan.case, samples())
        if isinstance(answer, BaseException):
            raise answer
        return answer

    def close(self) -> None:
        self.closed = True


@dataclass
class Bench:
    """A folder with benchmarks/ in it. answers, verdicts: by case; what is not named is measured well and passes."""

    pytester: pytest.Pytester
    machine: Machine = MACHINE
    answers: dict[str, Samples | BaseException] = field(default_factory=dict)
    verdicts: dict[str, Verdict] = field(default_factory=dict)
    probed: int = 0
    engine: Engine | None = None

    def write(self, **files: str) -> None:
        """Adds benchmarks/test_NAME.py with a text."""
        for name, text in files.items():
            (self.path / "benchmarks" / f"test_{name}.py").write_text(text)

    def run(self, *arguments: str) -> pytest.RunResult:
        """`pytest benchmarks/ …` in this process."""
        return self.pytester.runpytest_inprocess("-p", "suite.plugin", "benchmarks/", *arguments, no_reraise_ctrlc=True)

    def spawn(self, *arguments: str, simulated: bool = True, **variables: str) -> subprocess.Popen[str]:
        """`pytest benchmarks/ …` as a process of its own: on the test's machine simulated, or on the real one."""
        if simulated:
            (self.path / "machine.json").write_bytes(msgspec.json.encode(Scenario(self.machine)))
            arguments = ("--machine=machine.json", *arguments)
        path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
        return subprocess.Popen(
            [sys.executable, "-m", "pytest", "-p", "suite.plugin", "benchmarks/", *arguments],
            cwd=self.path,
            env={**os.environ, "PYTHONPATH": path, **variables},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    @property
    def path(self) -> Path:
        return self.pytester.path

    @property
    def report(self) -> Run:
        """The run that was written last, read back."""
        return runs.read(self.folders[-1])

    @property
    def folders(self) -> list[Path]:
        """Folders of runs, oldest first."""
        return sorted((self.path / "reports").glob("*"), key=lambda path: path.stat().st_mtime_ns)

    @property
    def cases(self) -> list[str]:
        """Cases in the order in which they ran; links that were watched unasked, because copies were, are left out."""
        asked = (self.path / "benchmarks" / "test_link.py").exists()
        return [r.case for r in self.report.results if asked or r.operation != "link_under_load"]

    def json(self, name: str = "out.json") -> dict[str, dict[str, Any]]:
        """pytest-benchmark's file: its benchmarks by case."""
        data = json.loads((self.path / name).read_text())
        return {bench["extra_info"]["case"]: bench for bench in data["benchmarks"]}


@pytest.fixture
def bench(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Bench:
    """Two nodes, two GPUs, one copy benchmark of two sizes unless the test says otherwise."""
    made = Bench(pytester)
    (made.path / "benchmarks").mkdir()
    (made.path / "benchmarks" / "__init__.py").touch()
    made.write(host_copy=COPY)
    # hypothesis' plugin imports all of hypothesis at the end of every inner pytest.
    monkeypatch.setenv("PYTEST_ADDOPTS", "-p no:cacheprovider -p no:hypothesispytest")
    # py-cpuinfo starts processes of its own.
    monkeypatch.setattr(
        "pytest_benchmark.plugin.get_cpu_info", lambda: {"brand_raw": "Example CPU", "hz_actual": [1, 0]}
    )
    monkeypatch.setattr("suite.session.probe", _probe(made))
    monkeypatch.setattr("suite.session.engine_for", _engine(made))
    monkeypatch.setattr("suite.judge.rules.judge", _judge(made))
    return made


def _probe(made: Bench) -> Callable[[], Machine]:
    def probe() -> Machine:
        made.probed += 1
        return made.machine

    return probe


def _engine(made: Bench) -> Callable[[object, Path], Engine]:
    def engine_for(_scenario: object, _folder: Path) -> Engine:
        made.engine = Engine(made.answers)
        return made.engine

    return engine_for


def _judge(made: Bench) -> Callable[..., Verdict]:
    def judge(result: Result, *_others: object) -> Verdict:
        if result.error or result.verified is False:
            cause = result.error.kind if result.error else "wrong_bytes"
            return Verdict("FAIL", cause, advice="look at the IOMMU and ACS settings")
        return made.verdicts.get(result.case, PASS)

    return judge
