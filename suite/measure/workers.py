"""The engine that really measures: worker pools, kept alive across cases and rebuilt after a failure."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from suite.errors import MeasureError, Unavailable
from suite.measure import merge, watch
from suite.measure.nccl import buffers as nccl_buffers
from suite.measure.nccl import log as nccl_log
from suite.measure.pool import Pool
from suite.records.case import LinkReading, Plan, Samples

# Beyond a case's deadline, for the case whose ranks must start first: importing torch and making a process group takes
# seconds, on a cold disk many.
START_S = 30.0


@dataclass(frozen=True)
class _Said:
    """What NCCL's log says, and where its buffers lie."""

    log: nccl_log.Log
    notes: tuple[str, ...]


class WorkerEngine:
    """Measures on this machine. One pool is alive at a time, so that idle ranks do not disturb the others.

    watcher: samples the links where a plan asks for it; None where nothing can. folder: for the workers' output.
    handlers: 'module:function' by operation, beside the worker's own. start_s: a pool must be ready within this and its
    first case's deadline.
    """

    def __init__(
        self,
        watcher: watch.Watcher | None,
        folder: Path,
        *,
        handlers: Mapping[str, str] | None = None,
        start_s: float = START_S,
    ) -> None:
        self._watcher = watcher
        self._folder = folder / "workers"
        self._handlers = dict(handlers or {})
        self._start_s = start_s
        self._pool: Pool | None = None
        self._key: tuple[Any, ...] = ()
        self._pools_started = 0
        self._lost: dict[int, str] = {}
        self._logs: dict[tuple[Any, ...], _Said] = {}

    def measure(self, plan: Plan) -> Samples:
        """What was measured. Raises MeasureError (hang, crash, error) or Unavailable (with the reason)."""
        self._refuse_lost(plan)
        try:
            if plan.watch and self._watcher is not None and plan.addresses:
                return self._watched(plan, self._watcher)
            if plan.backend != "nccl":
                return merge.samples(plan, self._pool_for(plan).call(plan))
            said = self._said(plan)
            measured = merge.samples(plan, self._pool_for(plan).call(plan))
            taken = said.log.transport(plan.operation, plan.bytes) or measured.transport
            return replace(measured, transport=taken, notes=(*measured.notes, *said.notes))
        except MeasureError as error:
            self._lost.update(dict.fromkeys(error.lost_gpus, plan.case))
            raise

    def close(self) -> None:
        """Ends every worker. Safe to call twice."""
        if self._pool is not None:
            self._pool.close()
        self._pool = None

    def _pool_for(self, plan: Plan) -> Pool:
        key = pool_key(plan)
        if self._pool is None or not self._pool.alive or key != self._key:
            self.close()
            self._pools_started += 1
            name = f"{self._pools_started:02d}-{plan.backend or 'copies'}"
            self._pool = Pool(plan, self._folder, name, handlers=self._handlers, start_s=self._start_s)
            self._key = key
        return self._pool

    def _watched(self, plan: Plan, watcher: watch.Watcher) -> Samples:
        """Measures with the links watched, and keeps what the first GPU's link did in the transfer.

        The watch starts before the pool: a worker that opens the GPU wakes its link.
        """
        readings: dict[str, tuple[LinkReading, ...]] = {}
        watcher.start(plan.addresses)
        try:
            answers = self._pool_for(plan).call(plan)
        finally:
            readings = watcher.stop()
        seen = watch.summarise(readings.get(plan.addresses[0], ()), merge.window(answers))
        return merge.samples(plan, answers, seen)

    def _said(self, plan: Plan) -> _Said:
        """What NCCL says that it takes, from one untimed pass over all collectives and sizes by workers of their own.

        NCCL reads its debug variables once in a process, and writing the log slows every call.
        """
        key = pool_key(plan)
        if key not in self._logs:
            # Not in the run's folder: the log names hosts and addresses.
            with tempfile.TemporaryDirectory(prefix="lanecheck-nccl-") as folder:
                logged = nccl_log.logging(plan, folder)
                answers = self._pool_for(logged).call(logged)
                merge.refuse(answers)
                texts = [file.read_text(errors="replace") for file in sorted(Path(folder).iterdir())]
            log = nccl_log.parse(*texts)
            seen = (note for answer in answers for note in answer.notes)
            notes = nccl_buffers.only_once((*seen, *nccl_buffers.logged(log.host_buffers)))
            self._logs[key] = _Said(log, notes)
        return self._logs[key]

    def _refuse_lost(self, plan: Plan) -> None:
        for gpu in plan.gpus:
            if gpu in self._lost:
                raise Unavailable(
                    f"GPU{gpu} was given up after {self._lost[gpu]}: "
                    "its worker could not be ended; reset the GPU or reboot"
                )


def pool_key(plan: Plan) -> tuple[Any, ...]:
    """What a pool is made for; plans that agree in it share one. Peer access, once enabled, stays: it is part of it."""
    ranks = (plan.gpus, plan.addresses, plan.rank_cpus) if plan.backend else (plan.rank_cpus,)
    return (plan.backend, plan.world_size, *ranks, plan.variables, plan.p2p, plan.ranks_as)
