"""Collectives between hosts: one process a rank, started by torchrun, srun or mpirun, measures the plans of a file.

    torchrun --nnodes 2 --nproc-per-node 8 … -m suite.measure.ranks --plan PLAN --out FILE

Each of these processes keeps one worker, the real rank, so that a hang costs a deadline and not the job. They agree
over a TCP store: who answered what, and whether the pool goes on. Rank 0 writes one line a case.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import msgspec

from suite.errors import MeasureError, StoreError, SuiteError, Unavailable
from suite.measure import merge, plan_file
from suite.measure.answer import Answer, Rank
from suite.measure.launcher import Member, member
from suite.measure.nccl import buffers as nccl_buffers
from suite.measure.nccl import log as nccl_log
from suite.measure.plan_file import Line
from suite.measure.pool import Pool
from suite.measure.workers import START_S, pool_key
from suite.records.case import Plan

AGREE_S = 10.0  # beyond a deadline, for the other ranks' answers to arrive
MEET_S = 300.0  # until the last host's processes have started


class _Answered(msgspec.Struct):
    """What one rank made of one plan. logs: NCCL's log of an untimed pass."""

    answer: Answer | None = None
    unavailable: str | None = None
    kind: str | None = None
    message: str = ""
    said: str = ""
    logs: tuple[str, ...] = ()


@dataclass
class _Group:
    """This process among all ranks. generation: counts pools, so that no store key is used twice."""

    who: Member
    store: Any
    folder: Path
    pool: Pool | None = None
    key: tuple[Any, ...] = ()
    generation: int = 0

    def measure(self, plan: Plan) -> _Answered:
        """This rank's own part, within its deadline."""
        try:
            return _Answered(answer=self._pool_for(plan).call(plan)[0])
        except Unavailable as reason:
            return _Answered(unavailable=str(reason))
        except MeasureError as error:
            return _Answered(kind=error.kind, message=str(error), said="".join(error.said[:1]))

    def agreed(self, number: str, own: _Answered, plan: Plan) -> list[_Answered]:
        """Every rank's part, in rank order. All ranks end their workers where one of them did not answer."""
        self.store.set(f"{number}/{self.who.rank}", msgspec.json.encode(own))
        answers = [self._of(number, rank, plan) for rank in range(self.who.world_size)]
        if any(one.answer is None for one in answers):
            self.close()
        return answers

    def close(self) -> None:
        """Ends the worker."""
        if self.pool is not None:
            self.pool.close()
        self.pool = None

    def _of(self, number: str, rank: int, plan: Plan) -> _Answered:
        key = f"{number}/{rank}"
        try:
            self.store.wait([key], timedelta(seconds=plan.deadline_s + START_S + AGREE_S))
        except RuntimeError:
            return _Answered(kind="hang", message=f"rank {rank} did not report within its deadline")
        return msgspec.json.decode(self.store.get(key), type=_Answered)

    def _pool_for(self, plan: Plan) -> Pool:
        if self.pool is None or not self.pool.alive or pool_key(plan) != self.key:
            self.close()
            self.generation += 1
            meeting = f"tcp://{self.who.host}:{self.who.port}/pool{self.generation}"
            rank = Rank(self.who.rank, self.who.world_size, meeting, self.who.local)
            name = f"{self.generation:02d}-{plan.backend}"
            self.pool = Pool(plan, self.folder, name, start_s=START_S, ranks=[rank])
            self.key = pool_key(plan)
        return self.pool


def main(arguments: Sequence[str], environment: Mapping[str, str]) -> int:
    """Measures; 0 where every case was measured or is unavailable."""
    options = _parser().parse_args(arguments)
    try:
        who = member(environment)
        plans = plan_file.read_plans(options.plan)
        return _run(who, plans, options.out)
    except SuiteError as error:
        print(f"lanecheck ranks: {error}", file=sys.stderr)
        return 2


def _run(who: Member, plans: Sequence[Plan], out: Path) -> int:
    failed = 0
    with tempfile.TemporaryDirectory(prefix="lanecheck-ranks-") as folder:
        group = _Group(who, _store(who), Path(folder))
        note = _note(group)
        if who.rank == 0:
            plan_file.start_results(out)
        try:
            for number, plan in enumerate(plans):
                line = _case(group, str(number), plan)
                failed += line.error is not None
                if who.rank == 0:
                    plan_file.append(out, _noted(line, note))
                    print(f"lanecheck ranks: {number + 1} of {len(plans)}: {plan.case}: {line.words}", flush=True)
        finally:
            group.close()
            _part(group)
    return 1 if failed else 0


def _case(group: _Group, number: str, plan: Plan) -> Line:
    """One plan's line. The same on every rank, as all see all answers."""
    if plan.world_size != group.who.world_size:
        return Line(plan, unavailable=f"planned for {plan.world_size} ranks and {group.who.world_size} were started")
    said, failure = _log(group, f"{number}/log", plan)
    if failure is not None:
        return failure
    answers = group.agreed(number, group.measure(plan), plan)
    line = _line(plan, answers)
    if line.samples is None or said is None:
        return line
    log, notes = said
    taken = log.transport(plan.operation, plan.bytes)
    return replace(line, samples=replace(line.samples, transport=taken, notes=(*line.samples.notes, *notes)))


_said: dict[tuple[Any, ...], tuple[nccl_log.Log, tuple[str, ...]]] = {}


def _log(group: _Group, number: str, plan: Plan) -> tuple[tuple[nccl_log.Log, tuple[str, ...]] | None, Line | None]:
    """What NCCL says that it takes, once a pool, from one untimed pass; or why that pass failed."""
    key = pool_key(plan)
    if plan.backend != "nccl" or key in _said:
        return _said.get(key), None
    with tempfile.TemporaryDirectory(prefix="lanecheck-nccl-") as folder:
        logged = nccl_log.logging(plan, folder)
        own = group.measure(logged)
        own.logs = tuple(file.read_text(errors="replace") for file in sorted(Path(folder).iterdir()))
    answers = group.agreed(number, own, logged)
    failure = _line(plan, answers, timed=False)
    if failure.error is not None or failure.unavailable is not None:
        return None, failure
    log = nccl_log.parse(*(text for one in answers for text in one.logs))
    seen = (note for one in answers if one.answer for note in one.answer.notes)
    _said[key] = log, nccl_buffers.only_once((*seen, *nccl_buffers.logged(log.host_buffers)))
    return _said[key], None


def _line(plan: Plan, answers: Sequence[_Answered], *, timed: bool = True) -> Line:
    """All ranks' parts as one line: unavailable, an error (a crash before a hang: the others wait for the dead), or
    samples."""
    reason = next((one.unavailable for one in answers if one.unavailable), None)
    if reason:
        return Line(plan, unavailable=reason)
    order = {"crash": 0, "error": 1, "hang": 2}
    failed = [(order.get(one.kind, 3), rank, one) for rank, one in enumerate(answers) if one.kind]
    if failed:
        _, _, worst = min(failed, key=lambda one: one[:2])
        said = tuple(one.said for one in answers)
        return Line(plan, error=worst.message, kind=worst.kind, said=said)
    if not timed:
        return Line(plan)
    try:
        return Line(plan, samples=merge.samples(plan, [one.answer for one in answers if one.answer is not None]))
    except MeasureError as error:
        return Line(plan, error=str(error), kind=error.kind)
    except Unavailable as error:
        return Line(plan, unavailable=str(error))


def _store(who: Member) -> Any:
    """The TCP store: torchrun's own, else one that rank 0 serves. Raises StoreError where the port is in use or nobody
    answers there."""
    import torch.distributed as dist

    serves = who.rank == 0 and not who.served
    try:
        client = dist.TCPStore(
            who.host, who.port, None, is_master=serves, timeout=timedelta(seconds=MEET_S), wait_for_workers=False
        )
    except RuntimeError as error:
        what = (
            "is the port in use by another program?" if serves else "do MASTER_ADDR and MASTER_PORT name rank 0's host?"
        )
        first = str(error).splitlines()[0]
        raise StoreError(f"no meeting at {who.host}:{who.port}: {what} ({first})") from error
    return dist.PrefixStore("lanecheck", client)


def _note(group: _Group) -> str:
    """Says on how many hosts the ranks are; waits until all are there."""
    group.store.set(f"node/{group.who.rank}", group.who.node)
    keys = [f"node/{rank}" for rank in range(group.who.world_size)]
    try:
        group.store.wait(keys, timedelta(seconds=MEET_S))
    except RuntimeError as error:
        raise StoreError(f"not all {group.who.world_size} ranks started within {MEET_S:g} s") from error
    nodes = {group.store.get(key) for key in keys}
    hosts = "1 host" if len(nodes) == 1 else f"{len(nodes)} hosts"
    return f"{group.who.world_size} ranks on {hosts}, started by {group.who.launcher}"


def _part(group: _Group) -> None:
    """The server of the store leaves last: ranks that still read from it would fail."""
    if group.who.rank != 0:
        group.store.set(f"left/{group.who.rank}", "")
        return
    others = [f"left/{rank}" for rank in range(1, group.who.world_size)]
    try:
        group.store.wait(others, timedelta(seconds=AGREE_S))
    except RuntimeError as error:
        print(f"lanecheck ranks: not every rank ended: {str(error).splitlines()[0]}", file=sys.stderr)


def _noted(line: Line, note: str) -> Line:
    if line.samples is None:
        return line
    return replace(line, samples=replace(line.samples, notes=(note, *line.samples.notes)))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m suite.measure.ranks", description="Measures a plan between hosts.")
    parser.add_argument("--plan", type=Path, required=True, help="what `pytest benchmarks/ --write-plan` wrote")
    parser.add_argument("--out", type=Path, required=True, help="rank 0 writes one line a case here")
    return parser


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], os.environ))
