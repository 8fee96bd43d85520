"""What every report says on top before anything else: simulated, incomplete, of an old schema, not wholly readable."""

from __future__ import annotations

from suite.records.run import SCHEMA, Run

_SIMULATED = "SIMULATED"
_INCOMPLETE = "INCOMPLETE"


def titled(run: Run, headline: str) -> str:
    """The headline with SIMULATED and INCOMPLETE before it, each once."""
    words = [(_SIMULATED, run.simulated), (_INCOMPLETE, not run.complete)]
    return ": ".join([*(word for word, so in words if so), bare(headline)])


def bare(headline: str) -> str:
    """The headline without the word that `titled` puts before it."""
    return headline.removeprefix(f"{_SIMULATED}: ")


def lines(run: Run) -> list[str]:
    """A sentence for each thing that a reader must know before believing the report, to stand below the title."""
    return [sentence for _, sentence in _said(run)]


def warnings(run: Run) -> list[str]:
    """The same where no title says it: 'SIMULATED: no hardware was measured …'."""
    return [f"{word}: {sentence[0].lower()}{sentence[1:]}" if word else sentence for word, sentence in _said(run)]


def _said(run: Run) -> list[tuple[str | None, str]]:
    said: list[tuple[str | None, str]] = []
    if run.simulated:
        said.append((_SIMULATED, "No hardware was measured; every number comes from a model of the machine."))
    if not run.complete:
        here = f"Only {len(run.results)} of {run.planned} planned cases are here; the run was broken off."
        said.append((_INCOMPLETE, here))
    if run.schema < SCHEMA:
        said.append((None, f"OLD: written with schema {run.schema}; this lanecheck writes {SCHEMA}."))
    return said + [(None, f"NOTE: {note}") for note in run.notes]
