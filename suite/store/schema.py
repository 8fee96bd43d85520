"""Which files are ours: the schema version is looked at before anything else is believed."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import msgspec

from suite.errors import StoreError
from suite.records.run import SCHEMA

Record = TypeVar("Record")


@dataclass(frozen=True)
class Peek:
    """A file's schema version; None where it does not say one."""

    schema: int | None = None


def check(path: Path, peek: Peek) -> None:
    """Raises StoreError where this lanecheck does not know the schema."""
    if peek.schema is None:
        raise foreign(path)
    if peek.schema > SCHEMA:
        raise StoreError(
            f"{path} was written by a newer lanecheck (schema {peek.schema}, this one reads {SCHEMA}): update lanecheck"
        )
    if peek.schema < 1:
        raise StoreError(f"{path} says schema {peek.schema}, which no lanecheck ever wrote: take the original file")


def decode(path: Path, data: bytes, kind: type[Record]) -> Record:
    """The record in JSON text that says a known schema. Raises StoreError where a field does not fit."""
    try:
        return msgspec.json.decode(data, type=kind)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise StoreError(
            f"{path} does not have the fields of a run ({error}): was it edited by hand? Take the original file"
        ) from error


def foreign(path: Path, error: Exception | None = None) -> StoreError:
    """The sentence for a file that is not lanecheck's."""
    why = f" ({error})" if error else ""
    return StoreError(f"{path} is not a run of lanecheck{why}: give a run's folder, its run.json or its run.jsonl")


def cannot_read(path: Path, error: Exception) -> StoreError:
    """The sentence for a failed read: of the system's, or of a compressed file that is torn."""
    reason = (getattr(error, "strerror", None) or str(error)).lower()
    return StoreError(f"cannot read {path} ({reason}): give a run's folder, its run.json or its run.jsonl")
