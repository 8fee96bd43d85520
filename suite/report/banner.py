"""What every report says on top before anything else: simulated, incomplete, of an old schema, not wholly readable."""

from __future__ import annotations

from suite.records.run import SCHEMA, Run


def titled(run: Run, headline: str) -> str:
    """The headline with SIMULATED and INCOMPLETE before it, where it does not say so itself."""
    words = [("SIMULATED", run.simulated), ("INCOMPLETE", not run.complete)]
    return ": ".join([*(word for word, so in words if so and word not in headline), headline])


def lines(run: Run) -> list[str]:
    """A sentence for each thing that a reader must know before believing the report."""
    said = []
    if run.simulated:
        said.append("SIMULATED: no hardware was measured; every number comes from a model of the machine.")
    if not run.complete:
        said.append(f"INCOMPLETE: {len(run.results)} of {run.planned} planned cases are here; the run was broken off.")
    if run.schema < SCHEMA:
        said.append(f"OLD: written with schema {run.schema}; this lanecheck writes {SCHEMA}.")
    return said + [f"NOTE: {note}" for note in run.notes]
