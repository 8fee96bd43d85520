"""The seam to hardware: everything that measures stands behind this protocol."""

from __future__ import annotations

from typing import Protocol

from suite.records.case import Plan, Samples


class Engine(Protocol):
    """Measures one plan at a time. Engines keep worker processes alive between calls; `close` ends them."""

    def measure(self, plan: Plan) -> Samples:
        """What was measured. Raises MeasureError (hang, crash, error) or Unavailable (with the reason)."""
        ...

    def close(self) -> None:
        """Ends every worker. Safe to call twice."""
        ...
