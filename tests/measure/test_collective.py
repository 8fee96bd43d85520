"""Collectives on gloo: every operation, dtype and odd size arrives right, and wrong data are seen."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import pytest
import torch

from suite.errors import Unavailable
from suite.measure import collective
from suite.measure import collective_data as data
from suite.measure.workers import WorkerEngine
from suite.records.case import COLLECTIVES, Operation
from tests.measure.conftest import plan

Make = Callable[..., WorkerEngine]
GLOO: dict[str, Any] = {"backend": "gloo", "world_size": 2, "engine": "gloo", "iterations": 2}


@pytest.fixture(scope="module")
def gloo(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """One engine for all tests of this file: its pool of two ranks lives across them."""
    engine = WorkerEngine(None, tmp_path_factory.mktemp("gloo"))
    yield engine
    engine.close()


@pytest.mark.parametrize("operation", COLLECTIVES)
@pytest.mark.parametrize("in_place", [True, False])
def test_every_collective_is_timed_and_verified(gloo: WorkerEngine, operation: Operation, in_place: bool) -> None:
    samples = gloo.measure(plan(operation, **{**GLOO, "bytes": 40 << 10, "in_place": in_place}))
    assert samples.verified is True
    assert samples.wrong is None
    assert len(samples.seconds) == len(samples.mean_seconds) == 2
    assert all(slow >= mean > 0 for slow, mean in zip(samples.seconds, samples.mean_seconds, strict=True))
    assert samples.engine == "gloo"


@pytest.mark.parametrize("size", [8, 10 << 10, 1 << 20, 5 << 22])
@pytest.mark.parametrize("dtype", list(data.EXACT))
def test_every_dtype_is_exact_at_every_size(gloo: WorkerEngine, size: int, dtype: str) -> None:
    assert gloo.measure(plan("allreduce", **{**GLOO, "bytes": size, "dtype": dtype})).verified is True


def test_a_message_with_less_than_an_element_a_rank_says_what_was_moved(gloo: WorkerEngine) -> None:
    samples = gloo.measure(plan("all_gather", **{**GLOO, "bytes": 4}))
    assert samples.verified is True
    assert "8 bytes were moved" in samples.notes[0]


def test_an_unknown_dtype_and_graphs_on_the_cpu_are_unavailable(gloo: WorkerEngine) -> None:
    with pytest.raises(Unavailable, match="int3 cannot be verified"):
        gloo.measure(plan("allreduce", **GLOO, dtype="int3"))
    with pytest.raises(Unavailable, match="CUDA graphs need the nccl backend"):
        gloo.measure(plan("allreduce", **GLOO, graph=True))
    assert gloo.measure(plan("allreduce", **GLOO)).verified is True


def test_where_calls_take_long_there_are_fewer_of_them_and_then_fewer_rounds() -> None:
    asked = plan("allreduce", rounds=10, iterations=20)
    assert collective.paced(asked, 1e-3) == asked
    slow = collective.paced(asked, 40e-3)
    assert (slow.rounds, slow.iterations) == (10, 5)
    slower = collective.paced(asked, 0.4)
    assert (slower.rounds, slower.iterations) == (5, 1)
    slowest = collective.paced(asked, 15.0)
    assert (slowest.rounds, slowest.iterations) == (3, 1)


def test_ranks_agree_on_fewer_calls_and_the_samples_say_how_many(gloo: WorkerEngine) -> None:
    samples = gloo.measure(plan("allreduce", **{**GLOO, "bytes": 16 << 20, "iterations": 10_000, "rounds": 4}))
    assert samples.verified is True
    assert samples.iterations is not None
    assert samples.iterations < 10_000


def test_ranks_run_on_their_cpu_sets(engine_with: Make) -> None:
    cpus = tuple(sorted(os.sched_getaffinity(0)))
    engine = engine_with()
    placed = plan("allreduce", **GLOO, rank_cpus=(cpus, cpus[:1]))
    assert engine.measure(placed).verified is True


@pytest.mark.skipif(torch.cuda.is_available(), reason="a GPU is here")
def test_nccl_without_a_gpu_is_unavailable_in_a_sentence(engine_with: Make) -> None:
    with pytest.raises(Unavailable, match=r"torch (has no NCCL|finds no usable GPU)"):
        engine_with().measure(plan("allreduce", backend="nccl", world_size=2, gpus=(0, 1), engine="nccl"))


def test_a_graph_that_ran_before_its_capture_sums_no_value_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    """In place, a warm-up call on the values to be verified would make them wrong; so would a call that is left out."""
    from suite.measure import collective

    wanted = plan("allreduce", bytes=4096, world_size=2, graph=True)
    mine, other = (data.message(wanted, rank, torch.device("cpu")) for rank in (0, 1))
    buffers = collective._buffers(wanted, mine)

    def adds_the_other_rank(buffer: Any) -> None:
        theirs = torch.empty_like(buffer)
        data.fill(theirs, other, collective._calls)
        buffer += theirs

    monkeypatch.setattr(collective.dist, "all_reduce", adds_the_other_rank)
    monkeypatch.setattr(collective, "_graph", lambda run, _times: (run(), run)[1])
    assert collective._verify(wanted, mine, buffers) is None
    monkeypatch.setattr(collective, "_graph", lambda run, _times: run)
    assert collective._verify(wanted, mine, buffers) is None
    monkeypatch.setattr(collective, "_graph", lambda _run, _times: lambda: None)
    assert collective._verify(wanted, mine, buffers) is not None


def test_the_pass_for_nccls_log_calls_every_operation_and_measures_nothing(gloo: WorkerEngine) -> None:
    assert gloo.measure(plan("allreduce", **{**GLOO, "rounds": 0})).seconds == ()


def sent(operation: Operation = "allreduce", rank: int = 0, **fields: Any) -> data.Message:
    wanted = plan(operation, **{"bytes": 4096, "world_size": 4, **fields})
    return data.message(wanted, rank, torch.device("cpu"))


def reduced(call: int, dtype: str = "float32", ranks: Any = range(4)) -> Any:
    """The sum that an allreduce of some ranks' values gives."""
    parts = []
    for rank in ranks:
        message = sent(rank=rank, dtype=dtype)
        parts.append(torch.empty(message.source, dtype=message.dtype))
        data.fill(parts[-1], message, call)
    return torch.stack(parts).sum(dim=0)


@pytest.mark.parametrize("dtype", list(data.EXACT))
def test_the_right_sum_is_right_in_every_dtype(dtype: str) -> None:
    assert data.difference(reduced(1, dtype), sent(dtype=dtype), 1) is None


def test_a_rank_that_is_lost_or_counted_twice_is_seen() -> None:
    assert data.difference(reduced(1, ranks=[0, 1, 2]), sent(), 1) is not None
    assert data.difference(reduced(1, ranks=[0, 1, 2, 2]), sent(), 1) is not None


def test_swapped_chunks_are_seen_at_every_power_of_two() -> None:
    right = reduced(1)
    for length in (1, 2, 4, 8, 16, 32, 64, 128, 256, 512):
        swapped = right.clone()
        swapped[:length], swapped[length : 2 * length] = right[length : 2 * length], right[:length].clone()
        assert data.difference(swapped, sent(), 1) is not None, length


def test_a_buffer_of_the_call_before_is_seen() -> None:
    assert data.difference(reduced(1), sent(), 2) is not None


def test_a_wrong_element_is_named() -> None:
    wrong = reduced(1)
    value = float(wrong[700])
    wrong[700] += 1
    assert data.difference(wrong, sent(), 1) == (
        f"1 of 1024 elements are wrong; element 700 is {value + 1:g}, not {value:g}"
    )


def test_untouched_poison_is_seen() -> None:
    poisoned = torch.full((1024,), float("nan"))
    assert (data.difference(poisoned, sent(), 1) or "").startswith("1024 of 1024 elements are wrong")


def test_gathered_chunks_in_the_wrong_order_are_seen() -> None:
    message = sent("all_gather")
    parts = []
    for rank in (0, 2, 1, 3):
        parts.append(torch.empty(message.chunk))
        data.fill(parts[-1], sent("all_gather", rank), 1)
    assert data.difference(torch.cat([parts[0], parts[2], parts[1], parts[3]]), message, 1) is None
    assert data.difference(torch.cat(parts), message, 1) is not None


@pytest.mark.parametrize("world_size", [2, 8, 64])
def test_sums_stay_exact_in_the_narrowest_dtype(world_size: int) -> None:
    largest = 0.0
    for rank in range(world_size):
        message = sent(rank=rank, dtype="bfloat16", world_size=world_size)
        buffer = torch.empty(message.source, dtype=message.dtype)
        data.fill(buffer, message, 1)
        largest += float(buffer.max())
    assert largest <= data.EXACT["bfloat16"]
