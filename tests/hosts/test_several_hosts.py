"""Collectives between hosts: plan here, measure under a launcher, judge here. Two network namespaces are two hosts."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec
import psutil
import pytest

from suite.errors import PlanError, StoreError
from suite.measure import launcher, plan_file
from suite.records.case import Plan
from suite.store import runs

ROOT = Path(__file__).resolve().parents[2]
OPTIONS = ("-k", "gloo and not placed", "--world-size=4", "--sizes=8,1MiB", "-q", "-p", "no:cacheprovider")
LINK = "lcveth"
TIMEOUT_S = 240.0


def bench(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """pytest on the shipped allreduce benchmarks, with its run in folder/reports."""
    command = [sys.executable, "-m", "pytest", "benchmarks/test_allreduce.py", *OPTIONS, *options]
    command.append(f"--report-dir={folder / 'reports'}")
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=TIMEOUT_S)


def start(folder: Path, node: int, prefix: Sequence[str], address: str) -> subprocess.Popen[str]:
    """A torchrun agent with two ranks, one of two agents."""
    agent = [sys.executable, "-m", "torch.distributed.run", "--nnodes", "2", "--nproc-per-node", "2"]
    place = ["--node-rank", str(node), "--master-addr", address, "--master-port", "29511"]
    program = ["-m", "suite.measure.ranks", "--plan", str(folder / "plan.json"), "--out", str(folder / "results.jsonl")]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "GLOO_SOCKET_IFNAME": LINK}
    return subprocess.Popen(
        [*prefix, *agent, *place, *program],
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


@pytest.fixture
def hosts() -> Iterator[tuple[str, str]]:
    """Two network namespaces with a veth between them; skips where they cannot be made."""
    if os.geteuid() != 0:
        pytest.skip("network namespaces need root")
    names = tuple(f"lanecheck-{uuid.uuid4().hex[:6]}-{number}" for number in (1, 2))
    try:
        for name in names:
            _ip("netns", "add", name)
    except FileNotFoundError:
        pytest.skip("network namespaces need iproute2")
    except subprocess.CalledProcessError as error:
        pytest.skip(f"network namespaces cannot be made here: {error.stderr.strip()}")
    try:
        _ip("link", "add", LINK, "netns", names[0], "type", "veth", "peer", "name", LINK, "netns", names[1])
        for number, name in enumerate(names, 1):
            _ip("-n", name, "addr", "add", f"10.77.0.{number}/24", "dev", LINK)
            for device in (LINK, "lo"):
                _ip("-n", name, "link", "set", device, "up")
        yield names[0], names[1]
    finally:
        for name in names:
            subprocess.run(["ip", "netns", "del", name], check=False, capture_output=True)


def _ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True, capture_output=True, text=True)


@pytest.fixture(scope="module")
def plan(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The plan that pytest writes for four ranks."""
    folder = tmp_path_factory.mktemp("planned")
    planned = bench(folder, f"--write-plan={folder / 'plan.json'}")
    assert planned.returncode == 0, planned.stdout
    return (folder / "plan.json").read_text()


def test_four_ranks_on_two_hosts_are_one_judged_run(hosts: tuple[str, str], plan: str, tmp_path: Path) -> None:
    (tmp_path / "plan.json").write_text(plan)
    agents = [start(tmp_path, node, ("ip", "netns", "exec", name), "10.77.0.1") for node, name in enumerate(hosts)]
    outputs = [agent.communicate(timeout=TIMEOUT_S)[0] for agent in agents]
    assert [agent.returncode for agent in agents] == [0, 0], "\n".join(outputs)
    judged = bench(tmp_path, f"--allreduce-results={tmp_path / 'results.jsonl'}")
    assert judged.returncode == 0, judged.stdout
    run = runs.read(max((tmp_path / "reports").iterdir(), key=lambda folder: folder.name))
    assert run.complete
    assert len(run.results) == 2 + 4 + 2 + 10
    for result in run.results:
        assert result.verdict is not None
        assert (result.verdict.status, result.verdict.cause) == ("PASS", "correct"), result
        assert result.world_size == 4
        assert result.notes[0] == "4 ranks on 2 hosts, started by torchrun"


def test_a_port_in_use_is_said_in_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "plan.json").write_text('{"schema":1,"plans":[]}')
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        alone = {"SLURM_PROCID": "0", "SLURM_NTASKS": "1", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
        ended = _ranks(tmp_path, alone)
    assert ended.returncode == 2
    assert f"no meeting at 127.0.0.1:{port}: is the port in use by another program?" in ended.stderr
    assert "Traceback" not in ended.stderr


def test_one_rank_under_slurms_variables_measures_and_says_why_it_cannot(plan: str, tmp_path: Path) -> None:
    """The plan is for four ranks: each line says so, and the file is whole."""
    (tmp_path / "plan.json").write_text(plan)
    alone = {"SLURM_PROCID": "0", "SLURM_NTASKS": "1", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port())}
    assert _ranks(tmp_path, alone).returncode == 0
    lines = plan_file.read_results(tmp_path / "results.jsonl")
    assert {line.unavailable for line in lines} == {"planned for 4 ranks and 1 were started"}


def _ranks(folder: Path, variables: dict[str, str]) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "suite.measure.ranks", "--plan", str(folder / "plan.json")]
    command += ["--out", str(folder / "results.jsonl")]
    environment = {**os.environ, **variables}
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=TIMEOUT_S)


TORCHRUN = {"RANK": "5", "WORLD_SIZE": "8", "LOCAL_RANK": "1", "GROUP_RANK": "1"}
SRUN = {"SLURM_PROCID": "5", "SLURM_NTASKS": "8", "SLURM_LOCALID": "1", "SLURM_NODEID": "1"}
MPIRUN = {"OMPI_COMM_WORLD_RANK": "5", "OMPI_COMM_WORLD_SIZE": "8", "OMPI_COMM_WORLD_LOCAL_RANK": "1"}


@pytest.mark.parametrize(("launched", "by"), [(TORCHRUN, "torchrun"), (SRUN, "srun"), (MPIRUN, "mpirun")])
def test_every_launchers_variables_say_the_same(launched: dict[str, str], by: str) -> None:
    found = launcher.member({**launched, "MASTER_ADDR": "node0", "MASTER_PORT": "1234"})
    assert (found.rank, found.world_size, found.local, found.host, found.port) == (5, 8, 1, "node0", 1234)
    assert found.launcher == by


def test_mpirun_within_a_slurm_job_counts_by_mpirun() -> None:
    """A batch script's own step has SLURM_PROCID 0 of SLURM_NTASKS."""
    both = {**MPIRUN, "SLURM_PROCID": "0", "SLURM_NTASKS": "8", "MASTER_ADDR": "node0"}
    assert launcher.member(both).rank == 5


@pytest.mark.parametrize(
    ("environment", "sentence"),
    [({}, "start this with torchrun, srun or mpirun"), (SRUN, "set MASTER_ADDR to the host of rank 0")],
)
def test_what_is_missing_is_said(environment: dict[str, str], sentence: str) -> None:
    with pytest.raises(PlanError, match=sentence):
        launcher.member(environment)


@pytest.mark.parametrize("text", ["", "nonsense", '{"schema":9,"plans":[]}', '{"plans":[]}'])
def test_a_file_that_is_no_plan_is_refused_in_one_sentence(tmp_path: Path, text: str) -> None:
    (tmp_path / "plan").write_text(text)
    with pytest.raises(StoreError, match="plan"):
        plan_file.read_plans(tmp_path / "plan")


def test_cases_that_were_not_measured_keep_their_reasons(plan: str, tmp_path: Path) -> None:
    results = tmp_path / "results.jsonl"
    (tmp_path / "plan.json").write_text(plan)
    plan_file.start_results(results)
    for planned in plan_file.read_plans(tmp_path / "plan.json")[:1]:
        plan_file.append(results, plan_file.Line(planned, unavailable="it was switched off"))
    with results.open("a") as file:
        file.write('{"plan": {"case": "torn')
    judged = bench(tmp_path, f"--allreduce-results={results}", "-rs")
    assert "it was switched off" in judged.stdout
    assert "results.jsonl does not have this case" in judged.stdout


def test_a_stopped_rank_costs_one_case_its_deadline_and_the_job_goes_on(tmp_path: Path) -> None:
    """Two ranks as srun starts them, on this host; the worker of rank 1 is stopped after the first case."""
    cases = [_gloo_plan(number) for number in range(80)]
    encoded = msgspec.json.encode({"schema": 1, "plans": cases})
    (tmp_path / "plan.json").write_bytes(encoded)
    results = tmp_path / "results.jsonl"
    port = str(free_port())
    shared = {"SLURM_NTASKS": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "GLOO_SOCKET_IFNAME": "lo"}
    command = [
        sys.executable,
        "-m",
        "suite.measure.ranks",
        "--plan",
        str(tmp_path / "plan.json"),
        "--out",
        str(results),
    ]
    ranks = [
        subprocess.Popen(command, cwd=ROOT, env={**os.environ, **shared, "SLURM_PROCID": str(rank)}) for rank in (0, 1)
    ]
    end = time.monotonic() + TIMEOUT_S
    while not results.exists() or results.read_bytes().count(b"\n") < 2:
        assert time.monotonic() < end, "no case ended"
        time.sleep(0.002)
    stopped = psutil.Process(ranks[1].pid).children()[0]
    stopped.suspend()
    assert [rank.wait(timeout=TIMEOUT_S) for rank in ranks] == [1, 1]
    lines = plan_file.read_results(results)
    assert len(lines) == len(cases)
    failed = [line for line in lines if line.error is not None]
    assert [line.kind for line in failed] == ["hang"]
    assert "rank 1 is stopped" in (failed[0].error or "") or "rank 0 is " in (failed[0].error or "")
    assert lines[-1].samples is not None
    assert lines[-1].samples.verified is True
    assert not psutil.pid_exists(stopped.pid)


def _gloo_plan(number: int) -> Plan:
    return Plan(
        case=f"allreduce/gloo/2ranks/{number}",
        operation="allreduce",
        bytes=8,
        backend="gloo",
        engine="gloo",
        world_size=2,
        deadline_s=3.0,
        rounds=2,
    )
