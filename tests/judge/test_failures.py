"""Cases that did not end well: whose advice is given, and how many words 64 ranks take."""

from __future__ import annotations

from suite.judge.failures import ranks_in_short
from suite.records.run import Failure, Result
from tests.data.machines import build
from tests.judge.small import last, result

PCIE = build.two_pcie()


def hung(ranks: int, **fields: object) -> Result:
    states = ", ".join(f"rank {rank} is running" for rank in range(ranks))
    error = Failure("hang", f"no answer within 30 s: {states}", ("in barrier",) * ranks)
    given = {"world_size": ranks, "backend": "gloo", "gpus": (), "case": "allreduce/gloo", **fields}
    return result("allreduce", None, error=error, **given)  # type: ignore[arg-type]


def test_ranks_without_gpus_get_advice_for_processors_and_memory() -> None:
    verdict = last(PCIE, hung(64))
    assert (verdict.status, verdict.cause) == ("FAIL", "host_hang")
    assert verdict.advice is not None
    assert "fewer ranks" in verdict.advice
    assert not any(word in verdict.advice for word in ("iommu", "ACS", "Xid"))


def test_ranks_with_gpus_keep_the_advice_for_gpus() -> None:
    assert last(PCIE, hung(2, backend="nccl", gpus=(0, 1))).cause == "hang"


def test_64_ranks_of_which_the_same_is_said_take_one_clause() -> None:
    verdict = last(PCIE, hung(64))
    assert "no answer within 30 s: ranks 0–63 are running" in verdict.evidence[0]
    assert "ranks 0–63 last said: in barrier" in verdict.evidence


def test_ranks_that_differ_are_said_apart_the_first_one_first() -> None:
    message = "no answer within 5 s: rank 2 is stopped, rank 0 is running, rank 1 is running, rank 4 is running"
    assert ranks_in_short(message) == "no answer within 5 s: rank 2 is stopped, ranks 0, 1, 4 are running"


def test_a_message_of_one_rank_stays_as_it_is() -> None:
    assert ranks_in_short("no answer within 5 s from rank 1") == "no answer within 5 s from rank 1"
    assert ranks_in_short("rank 1 ended by signal 9") == "rank 1 ended by signal 9"
