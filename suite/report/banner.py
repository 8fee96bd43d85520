"""What every report says on top before anything else: simulated, incomplete, of an old schema, not wholly readable."""

from __future__ import annotations

from suite.records.run import SCHEMA, Run


def tags(run: Run) -> list[str]:
    """The words that go before the headline."""
    words = ["SIMULATED"] if run.simulated else []
    return [*words, "INCOMPLETE"] if not run.complete else words


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
