"""A pool of worker processes, one a rank, that runs one plan at a time with a deadline. Copies are a pool of one."""

from __future__ import annotations

import errno
import os
import selectors
import shutil
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, NoReturn

import msgspec

from suite.errors import FailureKind, MeasureError, Unavailable
from suite.measure import leftover, processes
from suite.measure.answer import Answer, Rank, Setup
from suite.measure.channel import SIGN_OF_LIFE, Channel
from suite.records.case import Plan

KILL_GRACE_S = 3.0  # SIGKILL ends a process within milliseconds, unless it is stuck in the kernel
QUIT_GRACE_S = 1.0
DEATH_GRACE_S = 0.3  # from the end of a channel to the end of its process
AGREE_GRACE_S = 2.0  # from one rank's "unavailable" to the others'
LONGEST_WAIT_S = 86400.0  # the kernel's timeouts are 32-bit milliseconds
ROOT = Path(__file__).resolve().parents[2]
# Worst first: the rank that holds up the others is the one that is stopped or stuck.
_SUSPICION = ("gone", "ended", "stopped", "stopped by a debugger", "stuck in the kernel", "running")


class _Patience:
    """How long the parent waits: so many seconds, and anew from every sign of life."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._end = time.monotonic() + seconds
        self.renewed = False

    def left(self) -> float:
        """Seconds, 0 where it is over."""
        return max(0.0, self._end - time.monotonic())

    def renew(self) -> None:
        """A worker got on."""
        self._end = time.monotonic() + self._seconds
        self.renewed = True

    def shorten(self, seconds: float) -> None:
        """No longer than so many seconds from now."""
        self._end = min(self._end, time.monotonic() + seconds)


@dataclass
class _Worker:
    rank: int
    process: processes.Process
    channel: Channel
    log: Path


class Pool:
    """Workers that each get every plan. Any failure ends the whole pool (`alive` is then False).

    first: the plan that they prepare for; it also says how many ranks, on which CPUs, with which environment.
    ranks: those that run on this host, where others are elsewhere (default: all). folder: for the workers' output, one
    file a rank, named after `name`. handlers: 'module:function' by operation,
    beside the built-in ones. start_s: within this and the first plan's deadline all must be ready.
    Raises MeasureError or Unavailable where it cannot be started. Start it from the main thread: the signal that ends
    workers with their parent follows the thread that started them.
    """

    def __init__(
        self,
        first: Plan,
        folder: Path,
        name: str,
        *,
        handlers: Mapping[str, str] | None = None,
        start_s: float = 60.0,
        ranks: Sequence[Rank] | None = None,
    ) -> None:
        if threading.current_thread() is not threading.main_thread():
            raise RuntimeError("start worker pools from the main thread")
        self.lost: tuple[int, ...] = ()  # ranks that not even SIGKILL ended
        self._plan = first
        self._workers: list[_Worker] = []
        self._rendezvous = leftover.new_folder()
        with self._ended_on_failure():
            for rank in ranks or self._all_ranks():
                self._workers.append(self._start(rank, folder / f"{name}-rank{rank.rank}.log", handlers or {}))
            allowed = first.deadline_s + start_s
            words = (
                f"not ready within {allowed:g} s (the deadline of {first.deadline_s:g} s and {start_s:g} s to start)"
            )
            _refuse_unavailable(self._exchange(first, allowed, words))

    @property
    def alive(self) -> bool:
        """It can take a plan."""
        return bool(self._workers)

    def call(self, plan: Plan) -> tuple[Answer, ...]:
        """Every rank's answer, in rank order. It is a hang where for the plan's deadline no rank answered or got on.
        Raises MeasureError or Unavailable."""
        self._plan = plan
        with self._ended_on_failure():
            return self._exchange(plan, plan.deadline_s, f"no answer within {plan.deadline_s:g} s")

    def said(self) -> tuple[str, ...]:
        """The last line that each rank wrote, in rank order; empty text where it wrote none."""
        return tuple(_last_line(worker.log) for worker in self._workers)

    def close(self) -> None:
        """Ends every worker. One that not even SIGKILL ends is left behind and noted in `lost`. Safe to call twice."""
        for worker in self._workers:
            worker.channel.close()
        processes.ended([w.process for w in self._workers], QUIT_GRACE_S)
        self._end()

    def _end(self) -> None:
        """Ends every worker at once."""
        workers, self._workers = self._workers, []
        for worker in workers:
            worker.channel.close()
            processes.kill(worker.process)
        gone = processes.ended([w.process for w in workers], KILL_GRACE_S)
        self.lost += tuple(w.rank for w in workers if w.process not in gone)
        for worker in workers:
            _remove_if_empty(worker.log)
        shutil.rmtree(self._rendezvous, ignore_errors=True)

    @contextmanager
    def _ended_on_failure(self) -> Iterator[None]:
        """A pool in the middle of a plan can take no other one: whatever is raised, Ctrl-C too, ends it."""
        try:
            yield
        except BaseException:
            self._end()
            raise

    def _all_ranks(self) -> list[Rank]:
        count, store = self._plan.processes, str(self._rendezvous / "store")
        return [Rank(rank, count, store, rank) for rank in range(count)]

    def _start(self, who: Rank, log: Path, handlers: Mapping[str, str]) -> _Worker:
        ours, theirs = socket.socketpair()
        cpus = self._plan.rank_cpus[who.rank] if self._plan.rank_cpus else ()
        setup = Setup(theirs.fileno(), os.getpid(), who, cpus, dict(handlers))
        log.parent.mkdir(parents=True, exist_ok=True)
        with theirs, log.open("ab") as output:
            process = _spawn(setup, output, environment(self._plan, os.environ, between_hosts=who.between_hosts))
        return _Worker(who.rank, process, Channel(ours), log)

    def _exchange(self, plan: Plan, deadline_s: float, missing: str) -> tuple[Answer, ...]:
        patience = _Patience(deadline_s)
        answers: dict[int, Answer] = {}
        self._send(msgspec.json.encode(plan))
        with selectors.DefaultSelector() as selector:
            for worker in self._workers:
                selector.register(worker.channel, selectors.EVENT_READ, worker)
            while len(answers) < len(self._workers):
                late = not patience.left()
                ready = selector.select(min(patience.left(), LONGEST_WAIT_S))
                # What is there counts, however late this process comes to read it: it may have been stopped itself.
                if not patience.left() and (late or not ready):
                    self._fail_missing(answers, missing + (" of the last sign of life" if patience.renewed else ""))
                for key, _ in ready:
                    if self._take(key.data, answers, patience):
                        selector.unregister(key.fileobj)
                if any(a.unavailable for a in answers.values()):
                    patience.shorten(AGREE_GRACE_S)
        return tuple(answers[worker.rank] for worker in self._workers)

    def _send(self, message: bytes) -> None:
        for worker in self._workers:
            try:
                worker.channel.send(message)
            except OSError:
                self._fail_dead(worker)

    def _take(self, worker: _Worker, answers: dict[int, Answer], patience: _Patience) -> bool:
        """Reads what a worker sent; True where its answer is whole."""
        try:
            message = worker.channel.receive()
        except EOFError:
            self._fail_dead(worker)
        if message == SIGN_OF_LIFE:
            patience.renew()
        if not message:
            return False
        answer = msgspec.json.decode(message, type=Answer)
        if answer.error:
            self._fail_answered(worker, answer.error)
        answers[worker.rank] = answer
        return True

    def _fail_missing(self, answers: Mapping[int, Answer], what: str) -> NoReturn:
        reason = next((a.unavailable for a in answers.values() if a.unavailable), None)
        if reason:
            raise Unavailable(reason)
        states = [(processes.state(w.process.pid), w.rank) for w in self._workers if w.rank not in answers]
        states.sort(key=lambda s: _SUSPICION.index(s[0]) if s[0] in _SUSPICION else len(_SUSPICION))
        self._fail("hang", f"{what}: " + ", ".join(f"rank {rank} is {state}" for state, rank in states))

    def _fail_dead(self, first: _Worker) -> NoReturn:
        """A channel ended: names the ranks that are dead, the one that was noticed first."""
        processes.any_ended([first.process], DEATH_GRACE_S)
        order = [first, *(w for w in self._workers if w is not first)]
        dead = [f"rank {w.rank} {processes.how_it_ended(w.process)}" for w in order if w.process.poll() is not None]
        self._fail("crash", ", ".join(dead) or f"rank {first.rank} closed its channel")

    def _fail_answered(self, worker: _Worker, text: str) -> NoReturn:
        """An error was answered. Where another rank has died, that is the cause and the error what followed from it."""
        others = [w for w in self._workers if w is not worker]
        if processes.any_ended([w.process for w in others], DEATH_GRACE_S):
            self._fail_dead(next(w for w in others if w.process.poll() is not None))
        self._fail("error", f"rank {worker.rank}: {text}")

    def _fail(self, kind: FailureKind, text: str) -> NoReturn:
        said = self.said()
        self._end()
        raise MeasureError(kind, text, said, _lost_gpus(self._plan, self.lost))


def _spawn(setup: Setup, output: BinaryIO, variables: Mapping[str, str]) -> processes.Process:
    command = [sys.executable, "-m", "suite.measure.worker", msgspec.json.encode(setup).decode()]
    try:
        return subprocess.Popen(
            command,
            pass_fds=[setup.channel],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            env=variables,
            start_new_session=True,
        )
    except OSError as error:
        # Of this process's surroundings, not of what is measured: no verdict on the machine follows from it.
        raise Unavailable(f"a worker process could not be started: {_reason(error)}; {_remedy(error)}") from error


def _reason(error: OSError) -> str:
    return (error.strerror or str(error)).lower()


def _remedy(error: OSError) -> str:
    if error.errno in (errno.EAGAIN, errno.ENOMEM):
        return "free memory or processes (ulimit -u, the container's limits), then run it again"
    return f"run it as a user who may execute {sys.executable}"


def environment(plan: Plan, inherited: Mapping[str, str], *, between_hosts: bool = False) -> dict[str, str]:
    """The workers' environment: ours, this package's folder to import from, and the plan's variables, which win."""
    path = [str(ROOT), *filter(None, [inherited.get("PYTHONPATH")])]
    ours = {
        "CUDA_DEVICE_ORDER": "PCI_BUS_ID",  # the order of NVML's indices
        "PYTHONPATH": os.pathsep.join(path),
        "PYTHONUNBUFFERED": "1",  # the last line before a crash must reach the log
    }
    if plan.backend == "gloo" and "GLOO_SOCKET_IFNAME" not in inherited and not between_hosts:
        ours["GLOO_SOCKET_IFNAME"] = "lo"  # else gloo resolves the host's name, which containers often cannot
    return {**inherited, **ours, **dict(plan.variables)}


def _refuse_unavailable(answers: tuple[Answer, ...]) -> None:
    for answer in answers:
        if answer.unavailable:
            raise Unavailable(answer.unavailable)


def _lost_gpus(plan: Plan, ranks: tuple[int, ...]) -> tuple[int, ...]:
    """GPUs of the ranks that could not be ended; a single worker drives all of its plan's."""
    if plan.processes == 1:
        return plan.gpus if ranks else ()
    return tuple(plan.gpus[rank] for rank in ranks if rank < len(plan.gpus))


def _last_line(log: Path, limit: int = 300) -> str:
    try:
        with log.open("rb") as file:
            file.seek(max(0, log.stat().st_size - 4096))
            text = file.read().decode(errors="replace")
    except OSError:
        return ""
    return text.strip().rpartition("\n")[2][:limit]


def _remove_if_empty(log: Path) -> None:
    try:
        if log.stat().st_size == 0:
            log.unlink()
    except FileNotFoundError:
        return
