"""The catalogue as data, and the document that is made from it."""

from __future__ import annotations

from pathlib import Path

from suite.judge.catalogue import CAUSES, GROUPS, document
from suite.judge.thresholds import DEFAULT, table

DOCUMENT = Path(__file__).parents[2] / "docs" / "verdicts.md"


def test_the_document_is_the_catalogue() -> None:
    """After a change: python -m suite.judge.catalogue > docs/verdicts.md"""
    assert DOCUMENT.read_text(encoding="utf-8") == document()


def test_every_cause_has_one_name() -> None:
    assert len(CAUSES) == sum(len(causes) for _, causes in GROUPS)


def test_everything_that_needs_action_says_what_to_do_and_what_would_confirm_it() -> None:
    for cause in CAUSES.values():
        if cause.status in ("FAIL", "WARN", "INDETERMINATE"):
            assert cause.advice, cause.name
            assert cause.confirm, cause.name


def test_every_threshold_gives_its_reason_and_source() -> None:
    for name, value, reason, source in table(DEFAULT):
        assert all((name, value, reason, source))
        assert "|" not in reason + source, f"{name} would break the table"
