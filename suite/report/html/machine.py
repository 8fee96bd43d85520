"""The machine as a picture: sockets, NUMA nodes, root ports, switches, GPUs; each link as it is and as it could be."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from markupsafe import Markup

from suite.records.run import Run
from suite.report.html import nvlinks, svg
from suite.report.html.tree import Edge, Place, build, depth, everything, leaves
from suite.report.style import shorten
from suite.report.tables.words import MARKS

Key = tuple[str, object]
NARROWEST = "▲ narrowest"
Spot = tuple[Place, float, float]  # a box, its left edge, its middle
_ROW = 54
_BOX = {"node": 132, "port": 104, "switch": 104, "gpu": 190}
_HEIGHT = 38
_NEAR, _FAR = 36, 150  # the gap inside the processor, and one with a link and its label
_MARGIN, _TOP = 14, 30
_SOCKET = 58  # room for the socket's name at the right edge
_MOST_NAME = 26


def draw(run: Run) -> Markup | None:
    """The picture; None where the machine says nothing of its nodes and has no GPU."""
    places = build(run)
    if not places:
        return None
    deepest = max(depth(place) for place in places)
    spots = dict(_spots(places, deepest))
    height = _TOP + _ROW * sum(map(leaves, places)) + _MARGIN
    right = max(x + _BOX[place.kind] for place, x, _ in spots.values())
    width = right + nvlinks.room(run.machine) + 2 * _MARGIN + _SOCKET
    sockets = list(_sockets(places, width))
    lines = [_link(place, spots) for place in everything(places) if place.children]
    boxes = [_box(place, x, y) for place, x, y in spots.values()]
    middles = {place.gpu: y for place, _, y in spots.values() if place.gpu is not None}
    bridges = nvlinks.draw(run.machine, middles, right)
    return svg.picture(width, height, title(run), *sockets, *lines, *boxes, *bridges, class_="picture machine wide")


def title(run: Run) -> str:
    """What the picture is called."""
    return f"The machine: {len(run.machine.gpus)} GPUs, {len(run.machine.nodes)} NUMA nodes and the links between them"


def _spots(places: Sequence[Place], deepest: int) -> Iterator[tuple[Key, Spot]]:
    """Each place with its left edge and its middle."""
    row = 0
    for place in places:
        yield from _spots_below(place, row, 0, deepest)
        row += leaves(place)


def _spots_below(place: Place, row: int, level: int, deepest: int) -> Iterator[tuple[Key, Spot]]:
    column = deepest if place.kind == "gpu" else level  # all GPUs stand in the last column
    yield place.key, (place, _left(column, deepest), _TOP + _ROW * (row + leaves(place) / 2))
    for child in place.children:
        yield from _spots_below(child, row, level + 1, deepest)
        row += leaves(child)


def _left(level: int, deepest: int) -> float:
    """The left edge of a column: nodes, root ports, then switches, the GPUs last."""
    if level == 0:
        return 2 * _MARGIN
    first = 2 * _MARGIN + _BOX["node"] + (_NEAR if deepest > 1 else _FAR)
    return first + (level - 1) * (_BOX["port"] + _FAR)


def _sockets(places: Sequence[Place], width: float) -> Iterator[Markup]:
    """A frame around the nodes of each socket, where the machine says which those are."""
    row = 0
    for package, nodes in groupby(places, key=lambda place: place.package):
        first = row
        row += sum(map(leaves, nodes))
        if package is not None:
            yield _frame(f"socket {package}", first, row, width)


def _frame(name: str, first: int, end: int, width: float) -> Markup:
    top = _TOP + _ROW * first
    frame = svg.tag(
        "rect", x=_MARGIN, y=top + 1, width=width - 2 * _MARGIN, height=_ROW * (end - first) - 2, rx=8, class_="socket"
    )
    return frame + svg.text(width - _MARGIN - 8, top + 16, name, class_="small", text_anchor="end")


def _box(place: Place, x: float, y: float) -> Markup:
    return svg.tag(
        "g",
        svg.tag("title", box_title(place)),
        svg.tag("rect", x=x, y=y - _HEIGHT / 2, width=_BOX[place.kind], height=_HEIGHT, rx=6, class_=box_kind(place)),
        svg.text(x + 8, y - 3, named(place), class_="name"),
        svg.text(x + 8, y + 12, shorten(place.detail, _MOST_NAME if place.kind == "gpu" else 18), class_="small"),
    )


def named(place: Place) -> str:
    """A place's name with the mark of its verdict."""
    return f"{MARKS[place.status]} {place.label}" if place.status else place.label


def box_title(place: Place) -> str:
    """What a box says at the pointer: all that it is, in words."""
    return ", ".join(part for part in (f"{place.label}: {place.detail}", place.status) if part)


def box_kind(place: Place) -> str:
    """The classes of a box."""
    return f"box {place.kind}" + (f" s-{place.status}" if place.status else "")


def _link(place: Place, spots: dict[Key, Spot]) -> Markup:
    """The lines from a place to each of its children, with their labels."""
    _, x, y = spots[place.key]
    right = x + _BOX[place.kind]
    return svg.joined(_line(right, y, spots[child.key], child.edge) for child in place.children)


def _line(x: float, y: float, end: Spot, edge: Edge | None) -> Markup:
    _, left, middle = end
    turn = x + 14
    path = svg.tag("path", d=f"M{x:.0f} {y:.1f}H{turn:.0f}V{middle:.1f}H{left:.0f}", class_=f"link {edge_class(edge)}")
    if edge is None:
        return path
    near = left - 6
    first, *rest = edge_words(edge)
    label = svg.text(near, middle - 5, first, class_=f"label {edge_class(edge)}", text_anchor="end")
    below = [
        svg.text(near, middle + 13 + 12 * row, words, class_=remark_class(words), text_anchor="end")
        for row, words in enumerate(rest)
    ]
    return svg.joined([path, label, *below])


def edge_class(edge: Edge | None) -> str:
    """The class of a link's line; 'inside' within the processor."""
    return "inside" if edge is None else edge.health


def remark_class(words: str) -> str:
    """The hop that binds a path stands out from what else is said below a link."""
    return "binding" if words == NARROWEST else "small"


def edge_words(edge: Edge) -> list[str]:
    """What the link does, with a mark that needs no colour; then what else there is to say of it, a line each."""
    mark = {"full": "✓ ", "short": "! ", "below": "✗ ", "idle": "idle ", "unknown": "? "}[edge.health]
    now = str(edge.now) if edge.health != "unknown" or edge.now.known else "not visible"
    could = [f"could be {edge.possible}"] if edge.health in ("below", "idle") else []
    return [mark + now, *could, *([NARROWEST] if edge.narrowest else [])]
