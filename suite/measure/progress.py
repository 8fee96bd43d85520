"""Signs of life: a worker says when it got on, so that a long case on a slow path is not taken for a hang."""

from __future__ import annotations

import time
from collections.abc import Callable

OFTEN_ENOUGH_S = 0.2

_say: Callable[[], object] | None = None
_last = 0.0


def goes_to(say: Callable[[], object]) -> None:
    """Signs of life go there from now on. Where nobody was named, as in a test of a handler, they go nowhere."""
    global _say
    _say = say


def step() -> None:
    """A part of the case is done. Call it between timed parts, never within one."""
    global _last
    now = time.monotonic()
    if _say is not None and now - _last >= OFTEN_ENOUGH_S:
        _last = now
        _say()
