"""Latency cases, room for buffers, and patterns."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from suite.errors import Unavailable
from suite.measure.cuda import copy, latency, room
from suite.measure.cuda.verify import POISON, Pattern
from suite.units import GIB, MIB
from tests.measure.cuda import fake_api
from tests.measure.cuda.plans import fake_session, plan


@pytest.fixture(autouse=True)
def _no_warm_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("suite.measure.cuda.timing.WARM_UP_S", 0.0)


@pytest.mark.parametrize("operation", ["host_to_device_latency", "device_to_host_latency"])
def test_a_small_copy_is_timed_by_the_host_one_at_a_time(operation: str) -> None:
    session, api = fake_session()
    answer = copy.measured(session, plan(operation, 8, iterations=10))
    assert answer.clock == "host-monotonic"
    assert answer.verified is True
    assert len(answer.seconds) == 2
    assert answer.on_device_s == pytest.approx(fake_api.OVERHEAD_S, rel=0.01)
    assert api.names().count("memcpyAsync") >= 20


def test_the_pointer_chase_visits_every_multiprocessor_and_ends_where_the_chain_says(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(latency, "CHASE_LOADS", 7)
    session, api = fake_session(multiprocessors=3)
    answer = copy.measured(session, plan("host_device_load_latency", 8))
    chosen = [int(args[4]) for name, _, args in api.calls if name == "launch chase"][-3:]
    assert chosen == [0, 1, 2]
    assert answer.seconds == pytest.approx([1e-6, 1e-6])
    assert answer.engine == "load-store"


def test_the_chain_goes_round_the_whole_buffer_in_steps() -> None:
    memory = np.zeros(1024, dtype=np.uint8)
    latency.write_chain(memory, 4096, stride=128)
    words = memory.view(np.uint64)
    seen, at = [], 4096
    for _ in range(8):
        seen.append(at)
        at = int(words[(at - 4096) // 8])
    assert seen == [4096 + 128 * i for i in range(8)]
    assert at == 4096


def test_load_latency_without_kernels_is_unavailable() -> None:
    session, _ = fake_session(why_no_kernels="NVRTC is missing")
    with pytest.raises(Unavailable, match="NVRTC is missing"):
        copy.measured(session, plan("host_device_load_latency", 8))


def test_a_pattern_sees_one_wrong_byte_a_shift_and_a_stale_block() -> None:
    pattern = Pattern(3 * MIB + 100)
    memory = np.empty(pattern.nbytes, dtype=np.uint8)
    pattern.write(memory)
    assert pattern.difference(memory) is None
    broken = memory.copy()
    broken[2 * MIB + 5] ^= 1
    assert f"byte {2 * MIB + 5} of {pattern.nbytes}" in (pattern.difference(broken) or "")
    assert pattern.difference(np.roll(memory, 8)) is not None
    swapped = memory.copy()
    swapped[:MIB], swapped[MIB : 2 * MIB] = memory[MIB : 2 * MIB], memory[:MIB]
    assert pattern.difference(swapped) is not None
    assert Pattern(pattern.nbytes).difference(memory) is not None


def test_bytes_that_were_never_written_are_called_so() -> None:
    pattern = Pattern(MIB)
    memory = np.full(MIB, POISON, dtype=np.uint8)
    assert "is 0xa5 (never written)" in (pattern.difference(memory) or "") or pattern.block(0)[0] == POISON


def test_a_buffer_that_does_not_fit_the_machine_is_refused(tmp_path: Path) -> None:
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc/meminfo").write_text("MemTotal: 999999999 kB\nMemAvailable: 1048576 kB\n")
    room.need_host(512 * MIB, tmp_path)
    with pytest.raises(Unavailable, match=r"only 1\.0 GiB are available on this machine: end other programs"):
        room.need_host(GIB, tmp_path)


@pytest.mark.parametrize(
    ("group", "folder", "limit", "used"),
    [
        ("0::/box/inner", "sys/fs/cgroup/box", "memory.max", "memory.current"),
        ("4:memory:/box", "sys/fs/cgroup/memory/box", "memory.limit_in_bytes", "memory.usage_in_bytes"),
    ],
)
def test_a_buffer_that_does_not_fit_the_container_is_refused(
    tmp_path: Path, group: str, folder: str, limit: str, used: str
) -> None:
    (tmp_path / "proc/self").mkdir(parents=True)
    (tmp_path / "proc/self/cgroup").write_text(group + "\n")
    place = tmp_path / folder
    place.mkdir(parents=True)
    (place / limit).write_text(f"{GIB}\n")
    (place / used).write_text(f"{GIB // 2}\n")
    (place / "memory.stat").write_text(f"anon 5\ninactive_file {GIB // 4}\n")
    assert room.cgroup_free(tmp_path) == 3 * GIB // 4
    with pytest.raises(Unavailable, match="left by the container's memory limit: raise the container's limit"):
        room.need_host(GIB, tmp_path)


def test_a_container_without_a_limit_refuses_nothing(tmp_path: Path) -> None:
    (tmp_path / "proc/self").mkdir(parents=True)
    (tmp_path / "proc/self/cgroup").write_text("0::/\n")
    (tmp_path / "sys/fs/cgroup").mkdir(parents=True)
    (tmp_path / "sys/fs/cgroup/memory.max").write_text("max\n")
    assert room.cgroup_free(tmp_path) is None
    room.need_host(1 << 50, tmp_path)
