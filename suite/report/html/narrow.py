"""The machine as a picture for a narrow page: one box below the other, indented, so that no GPU is off the screen."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from markupsafe import Markup

from suite.records.run import Run
from suite.report.html import svg
from suite.report.html.machine import box_kind, box_title, edge_class, edge_words, named, remark_class, title
from suite.report.html.tree import Edge, Place, build
from suite.report.style import shorten

_WIDTH, _ROW, _HEIGHT, _INDENT = 360, 46, 36, 20
_EDGE = 150  # room at the right of a box for what its link does
_MOST_NAME = 20

Spot = tuple[Place, int, int]  # a place, its level, its row


def draw(run: Run) -> Markup | None:
    """The picture; None where there is nothing to draw."""
    spots = list(_spots(build(run), 0))
    if not spots:
        return None
    rows = [(place, level, row) for row, (place, level) in enumerate(spots)]
    lines = [_rail(rows, at) for at in range(len(rows))]
    boxes = [_row(place, level, row) for place, level, row in rows]
    return svg.picture(_WIDTH, _ROW * len(rows) + 8, title(run), *lines, *boxes, class_="picture machine narrow")


def _spots(places: Sequence[Place], level: int) -> Iterator[tuple[Place, int]]:
    for place in places:
        yield place, level
        yield from _spots(place.children, level + 1)


def _left(level: int) -> int:
    return 4 + _INDENT * level


def _middle(row: int) -> float:
    return 4 + _ROW * (row + 0.5)


def _rail(rows: Sequence[Spot], at: int) -> Markup:
    """The line from a place up to the one above it."""
    place, level, row = rows[at]
    if level == 0:
        return Markup("")
    above = next(other for _, depth, other in reversed(rows[:at]) if depth == level - 1)
    x = _left(level - 1) + 10
    start = _middle(above) + _HEIGHT / 2
    path = f"M{x} {start:.0f}V{_middle(row):.0f}H{_left(level)}"
    return svg.tag("path", d=path, class_=f"link {edge_class(place.edge)}")


def _row(place: Place, level: int, row: int) -> Markup:
    x, y = _left(level), _middle(row)
    width = _WIDTH - x - (_EDGE if place.edge else 4)
    parts = [
        svg.tag("title", box_title(place)),
        svg.tag("rect", x=x, y=y - _HEIGHT / 2, width=width, height=_HEIGHT, rx=6, class_=box_kind(place)),
        svg.text(x + 8, y - 3, named(place), class_="name"),
        svg.text(x + 8, y + 12, shorten(place.detail, min(_MOST_NAME, (width - 12) // 7)), class_="small"),
    ]
    return svg.tag("g", *parts, *(_edge(place.edge, y) if place.edge else ()))


def _edge(edge: Edge, y: float) -> Iterator[Markup]:
    """What the link above a place does, beside its box."""
    first, *rest = edge_words(edge)
    x = _WIDTH - _EDGE + 8
    yield svg.text(x, y - 3 if rest else y + 4, first, class_=f"label {edge_class(edge)}")
    if rest:
        yield svg.text(x, y + 12, ", ".join(rest), class_=remark_class(rest[-1]))
