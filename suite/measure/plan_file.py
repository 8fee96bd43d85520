"""Plans that are measured elsewhere, and what came of them: two files between pytest and the ranks of other hosts."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, TypeVar, cast

import msgspec

from suite.errors import FailureKind, MeasureError, StoreError, Unavailable
from suite.measure.engine import Engine
from suite.records.case import COLLECTIVES, Plan, Samples
from suite.units import format_seconds

SCHEMA = 1
_T = TypeVar("_T")


class _Plans(msgspec.Struct):
    """The file of --write-plan."""

    schema: int
    plans: tuple[Plan, ...]


class _Header(msgspec.Struct):
    """The first line of the ranks' --out."""

    schema: int
    lanecheck: Literal["allreduce-results"] = "allreduce-results"


@dataclass(frozen=True)
class Line:
    """What came of one plan: samples, or an error of a kind with what each rank last said, or why it is unavailable."""

    plan: Plan
    samples: Samples | None = None
    error: str | None = None
    kind: str | None = None
    said: tuple[str, ...] = ()
    unavailable: str | None = None

    @property
    def words(self) -> str:
        """In a few words, for the one who waits."""
        if self.samples is not None and self.samples.seconds:
            right = "values right" if self.samples.verified else f"WRONG VALUES: {self.samples.wrong}"
            return f"{format_seconds(min(self.samples.seconds))} at best, {right}"
        return self.error or f"unavailable: {self.unavailable}"


def read_plans(path: Path) -> tuple[Plan, ...]:
    """Raises StoreError with one sentence where the file is missing or not one of these."""
    found = _decode(path, _read(path), _Plans)
    _known(path, found.schema)
    return found.plans


def start_results(path: Path) -> None:
    """An empty file of results. Raises StoreError."""
    try:
        path.write_bytes(msgspec.json.encode(_Header(SCHEMA)) + b"\n")
    except OSError as error:
        raise StoreError(f"{path} cannot be written ({error.strerror}): name another --out") from error


def append(path: Path, line: Line) -> None:
    """Adds one case. Raises StoreError."""
    try:
        with path.open("ab") as file:
            file.write(msgspec.json.encode(line) + b"\n")
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise StoreError(f"{path} cannot be written ({error.strerror})") from error


def read_results(path: Path) -> tuple[Line, ...]:
    """Every whole line; one that was torn off at the end is left out. Raises StoreError."""
    first, *rest = _read(path).split(b"\n")
    _known(path, _decode(path, first, _Header).schema)
    return tuple(_decode(path, line, Line) for line in rest[:-1] if line)


class PlanWriter:
    """Engine that measures nothing: it keeps the collectives' plans and writes them at the end."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._plans: list[Plan] = []
        self._closed = False

    def measure(self, plan: Plan) -> Samples:
        """Always raises Unavailable."""
        if plan.operation not in COLLECTIVES:
            raise Unavailable("--write-plan plans collectives only")
        # Placed by what starts the ranks, on the GPUs of their own hosts.
        self._plans.append(replace(plan, gpus=(), addresses=(), rank_cpus=()))
        raise Unavailable(f"planned in {self._path.name}")

    def close(self) -> None:
        """Writes the file. Raises StoreError."""
        if self._closed:
            return
        self._closed = True
        try:
            self._path.write_bytes(msgspec.json.encode(_Plans(SCHEMA, tuple(self._plans))) + b"\n")
        except OSError as error:
            raise StoreError(f"{self._path} cannot be written ({error.strerror})") from error


class ResultsReader:
    """Engine that takes collectives from a file of results, and everything else from another engine."""

    def __init__(self, path: Path, otherwise: Engine) -> None:
        self._path = path
        self._lines = {line.plan.case: line for line in read_results(path)}
        self._otherwise = otherwise

    def measure(self, plan: Plan) -> Samples:
        """As the ranks wrote it. Raises MeasureError and Unavailable as they did."""
        if plan.operation not in COLLECTIVES:
            return self._otherwise.measure(plan)
        line = self._lines.get(plan.case)
        if line is None:
            raise Unavailable(f"{self._path.name} does not have this case")
        differing = _differing(plan, line.plan)
        if differing:
            raise Unavailable(
                f"{self._path.name} has this case with another {differing}: give the options of --write-plan"
            )
        if line.unavailable is not None:
            raise Unavailable(line.unavailable)
        if line.samples is None:
            kind = cast(FailureKind, line.kind or "error")
            raise MeasureError(kind, line.error or "the ranks wrote no samples", line.said)
        return line.samples

    def close(self) -> None:
        """Ends the other engine."""
        self._otherwise.close()


def _differing(one: Plan, other: Plan) -> str | None:
    """The first field in which two plans of one case differ, where it changes what is measured."""
    measured = ("operation", "bytes", "backend", "world_size", "dtype", "in_place", "graph", "transport", "tuning")
    return next((name for name in measured if getattr(one, name) != getattr(other, name)), None)


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise StoreError(f"{path} cannot be read ({error.strerror})") from error


def _decode(path: Path, text: bytes, kind: type[_T]) -> _T:
    try:
        return msgspec.json.decode(text, type=kind)
    except msgspec.MsgspecError as error:
        raise StoreError(f"{path} is not what was expected here ({error})") from error


def _known(path: Path, schema: int) -> None:
    if schema != SCHEMA:
        raise StoreError(
            f"{path} has schema {schema}, this lanecheck reads {SCHEMA}: use the same version on all hosts"
        )
