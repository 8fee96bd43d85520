"""What can go wrong, as sentences a person can act on. Every error keeps its cause (`raise … from`)."""

from __future__ import annotations

from typing import Literal

FailureKind = Literal["hang", "crash", "error"]


class SuiteError(Exception):
    """Any error that lanecheck explains itself: its text is one sentence that says what to do next."""


class ProbeError(SuiteError):
    """The machine, or a recording of one, cannot be read."""


class PlanError(SuiteError):
    """The settings ask for something that this machine does not have."""


class StoreError(SuiteError):
    """A run or a baseline cannot be read or written."""


class Unavailable(SuiteError):  # noqa: N818 - a state of the machine, not a fault
    """This cannot be measured here; the text is the reason."""


class MeasureError(SuiteError):
    """A measurement was started and did not end well.

    kind: 'hang' (for the deadline no answer and no sign of life), 'crash' (a worker ended), 'error' (a worker answered
    with an error).
    said: the last line that each rank wrote, in rank order; empty text where it wrote none.
    lost_gpus: NVML indices of GPUs whose worker could not be ended, not even by SIGKILL.
    """

    def __init__(
        self, kind: FailureKind, text: str, said: tuple[str, ...] = (), lost_gpus: tuple[int, ...] = ()
    ) -> None:
        super().__init__(text)
        self.kind = kind
        self.said = said
        self.lost_gpus = lost_gpus
