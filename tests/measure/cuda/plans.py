"""Plans and sessions for the tests of the CUDA modules."""

from __future__ import annotations

from suite.measure.cuda.session import Session
from suite.records.case import Plan
from suite.units import MIB
from tests.measure.cuda import fake_kernels
from tests.measure.cuda.fake_api import FakeApi, Gpu


def plan(operation: str, size: int = MIB, *, gpus: int = 1, **fields: object) -> Plan:
    """A small plan for the first GPUs of fake_session."""
    given = {
        "gpus": tuple(range(gpus)),
        "addresses": tuple(f"0000:0{i + 1}:00.0" for i in range(gpus)),
        "rounds": 2,
        "iterations": 4,
        **fields,
    }
    return Plan(case="a case", operation=operation, bytes=size, **given)  # type: ignore[arg-type]


def fake_session(
    gpus: int = 1, *, peers: bool = True, why_no_kernels: str | None = None, **fields: object
) -> tuple[Session, FakeApi]:
    """A session on pretended GPUs, all of which reach each other (peers) or not."""
    pretended = [Gpu(address=f"0000:0{i + 1}:00.0", **fields) for i in range(gpus)]  # type: ignore[arg-type]
    pairs = [(a, b) for a in range(gpus) for b in range(gpus) if a != b] if peers else []
    runtime, api = fake_kernels.runtime(*pretended, peers=pairs, why_no_kernels=why_no_kernels)
    return Session(runtime), api
