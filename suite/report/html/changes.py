"""Before and after, where a baseline is given: what was said of it, a picture of what changed most, and the tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from suite.records.comparison import Call, Change, Comparison
from suite.records.run import Status
from suite.report import banner, compare, compare_words, style
from suite.report.html import svg
from suite.report.tables.model import Table
from suite.report.tables.words import MARKS

_WIDTH, _ROW, _TOP = 720.0, 30.0, 26.0
_NAME, _LEFT, _RIGHT = 330, 340.0, 650.0  # names end and bars begin; room for the change behind them
_MOST = 12
_MOST_NAME = 48
_STATUS: dict[Call, Status] = {"worse": "FAIL", "better": "PASS", "inconclusive": "INDETERMINATE", "same": "PASS"}


@dataclass(frozen=True)
class Section:
    """headline: the comparison in a sentence. sides: what was compared. machine: what differs in it, in words."""

    headline: str
    status: Status
    sides: tuple[str, ...]
    machine: tuple[str, ...]
    picture: Markup | None
    tables: tuple[Table, ...]


def section(comparison: Comparison) -> Section:
    """All that the page shows of a comparison."""
    sides = tuple(compare_words.side(side) for side in (comparison.before, comparison.after))
    return Section(
        banner.bare(compare_words.headline(comparison)),
        _STATUS[comparison.call],
        (*sides, *comparison.notes),
        tuple(map(str, comparison.machine)),
        picture(comparison.changes),
        tuple(compare.tables(comparison)),
    )


def picture(changes: Sequence[Change]) -> Markup | None:
    """What changed most: a case a row, before as a hollow and after as a filled bar, as shares of the larger one. None
    where no change can be called or doubted."""
    wanted = [c for c in (*compare_words.called(changes), *compare_words.doubtful(changes)) if c.before and c.after]
    if not wanted:
        return None
    shown = sorted(wanted, key=lambda c: (c.call == "inconclusive", -compare_words.size(c)))[:_MOST]
    rows = [_row(change, _TOP + _ROW * place) for place, change in enumerate(shown)]
    title = f"Before and after of {len(shown)} of {len(wanted)} cases that changed, or might have"
    key = svg.text(_LEFT, 14, "hollow: before; filled: after", class_="tick")
    return svg.picture(_WIDTH, _TOP + _ROW * len(shown) + 4, title, key, *rows, class_="picture changes wide")


def _row(change: Change, y: float) -> Markup:
    before, after = change.before or 0.0, change.after or 0.0
    unit = (_RIGHT - _LEFT) / max(before, after)
    status = _STATUS[change.call]
    numbers = f"{compare_words.value(change, change.before)} → {compare_words.value(change, change.after)}"
    name = f"{MARKS[status]} {style.shorten(change.case, _MOST_NAME)}"
    return svg.tag(
        "g",
        svg.tag("title", f"{change.case}: {numbers}, {compare_words.CALLS[change.call]}"),
        svg.text(_NAME, y + 15, name, class_=f"name s-{status}", text_anchor="end"),
        svg.tag("rect", x=_LEFT, y=y + 1, width=max(1.0, before * unit), height=10, class_="before"),
        svg.tag("rect", x=_LEFT, y=y + 12, width=max(1.0, after * unit), height=10, class_=f"after s-{status}"),
        svg.text(_RIGHT + 6, y + 16, compare_words.ratio(change.ratio), class_="small"),
    )
