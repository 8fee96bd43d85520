"""The catalogue as Markdown: docs/verdicts.md is this text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from suite.judge.cause import Cause
from suite.judge.thresholds import DEFAULT, table

HEAD = """# Verdicts

Made by `python -m suite.judge.catalogue > docs/verdicts.md`; a test keeps the two equal.

| status | meaning | the pytest case |
|---|---|---|
| PASS | the path does what it can do | passes |
| WARN | it works, and something about it is worth a look | passes and is listed; fails with `--strict-verdicts` |
| FAIL | something is wrong: the verdict says what was measured, what the limit is, why, and what to do | fails |
| INDETERMINATE | what was seen does not tell | passes and is listed; fails with `--strict-verdicts` |
| UNAVAILABLE | this cannot be measured here, with the reason | is skipped |
| NOT_SAMPLED | another case, named, stands for this one | is skipped |

A case's status is final when the case ends. Findings group the cases of a run by their root cause and change no status.
Words in braces are filled in from the case.
"""


def render(groups: Sequence[tuple[str, Sequence[Cause]]]) -> str:
    """The whole document, with a newline at its end."""
    return "\n".join([HEAD, *_causes(groups), *_thresholds()]) + "\n"


def _causes(groups: Sequence[tuple[str, Sequence[Cause]]]) -> Iterator[str]:
    for title, causes in groups:
        yield f"## {title}\n"
        for cause in causes:
            yield from _cause(cause)


def _cause(cause: Cause) -> Iterator[str]:
    yield f"### {cause.name}: {cause.status}\n"
    yield f"- fires when {cause.fires}"
    yield f"- says: {cause.finding}"
    if cause.advice:
        yield f"- advice: {cause.advice}"
    if cause.confirm:
        yield f"- confirmed by: {cause.confirm}"
    yield ""


def _thresholds() -> Iterator[str]:
    yield "## Thresholds\n"
    yield "| name | value | reason | source |"
    yield "|---|---|---|---|"
    for name, value, reason, source in table(DEFAULT):
        yield f"| {name} | {value} | {reason} | {source} |"
