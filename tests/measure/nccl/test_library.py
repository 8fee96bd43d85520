"""NCCL's C library: which version is loaded decides what is possible."""

from __future__ import annotations

import ctypes
from typing import Any

import pytest

from suite.errors import MeasureError, Unavailable
from suite.measure.nccl import library as nccl


class Library:
    """Answers as libnccl.so.2 does."""

    def __init__(self, code: int, status: int = 0) -> None:
        self.code, self.status = code, status

    def ncclGetVersion(self, where: Any) -> int:  # noqa: N802 - NCCL's name
        ctypes.cast(where, ctypes.POINTER(ctypes.c_int))[0] = self.code
        return self.status

    def ncclGetErrorString(self, _code: int) -> bytes:  # noqa: N802 - NCCL's name
        return b"unhandled system error"


@pytest.mark.parametrize(("code", "allowed"), [(22809, False), (23002, False), (23003, True), (23203, True)])
def test_ranks_share_a_gpu_from_2_30_3_on(monkeypatch: pytest.MonkeyPatch, code: int, allowed: bool) -> None:
    monkeypatch.setattr(nccl, "library", lambda: Library(code))
    if allowed:
        nccl.require_shared_gpu()
        return
    with pytest.raises(
        Unavailable, match=rf"2\.30\.3 or newer .*; NCCL {code // 10000}\.{code // 100 % 100}\.{code % 100} is"
    ):
        nccl.require_shared_gpu()


def test_an_error_code_is_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nccl, "library", lambda: Library(0, status=2))
    with pytest.raises(MeasureError, match=r"NCCL: unhandled system error \(ncclResult 2\)"):
        nccl.version()


def test_an_error_without_nccls_own_words_stays_as_it_is() -> None:
    assert nccl.last_error("Connection closed by peer") is None
