"""Bandwidth and latency over sizes, log-log, with the ceilings as lines and each point shaped by its verdict."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from suite import units
from suite.records.case import COLLECTIVES, LATENCIES, Operation
from suite.records.run import Result, Run, Status
from suite.report.html import svg
from suite.report.tables import collective, groups, words
from suite.report.tables.model import worst

Value = Callable[[Result], float | None]
Words = Callable[[float], str]
_WIDTH, _HEIGHT = 720.0, 420.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 84.0, 535.0, 14.0, 364.0
_TICK = 58.0  # least distance of two sizes along the axis
_LINE = 16.0  # least distance of two labels
_MOST_LABELS = 12
_LEAST_SIZES = 3
_LEAST, _MOST = 1e-12, 1e18  # seconds or bytes per second
_CEILINGS = ("now", "platform", "device")
_ALL = "all ceilings"


@dataclass(frozen=True)
class Curve:
    """One path over its sizes. points: (bytes, value, verdict, case), ascending."""

    name: str
    points: tuple[tuple[int, float, Status | None, str], ...]


@dataclass(frozen=True)
class Chart:
    """One picture. named: the curves that its labels name, in words for a page that is too narrow for labels."""

    title: str
    caption: str
    picture: Markup
    named: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Scale:
    """Values onto pixels, logarithmic."""

    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        span = math.log(self.high / self.low) or 1.0
        return self.start + (self.end - self.start) * math.log(max(value, self.low) / self.low) / span


def charts(run: Run) -> list[Chart]:
    """One chart for each operation that was measured at three sizes or more; for collectives one of latency too."""
    made = []
    for group in groups.names(run):
        for (operation, backend), results in _by_operation(groups.members(run, group)).items():
            title = _title(group, operation, backend)
            what = "busbw" if operation in COLLECTIVES else "bandwidth"
            made += _of(f"{title}, {what}", results, lambda r: r.bandwidth, units.format_bandwidth, _CEILINGS)
            if operation in COLLECTIVES:
                made += _of(f"{title}, latency", results, lambda r: r.latency_s, units.format_seconds, ())
    return made


def _of(title: str, results: Sequence[Result], value: Value, shown: Words, ceilings: Sequence[str]) -> list[Chart]:
    """The chart of the paths that have a value at three sizes or more; none where no path has."""
    paths = _paths(results, value)
    if not paths:
        return []
    curves = [Curve(name, tuple(_point_of(r, value) for r in row)) for name, row in paths.items()]
    drawn = [r for row in paths.values() for r in row]
    return [_chart(title, curves, _ceilings(drawn, ceilings), shown)]


def _title(group: str, operation: Operation, backend: str | None) -> str:
    """'Host copies: both ways'; a collective says what it is by itself: 'All gather, nccl'."""
    what = words.operation(operation)
    parts = [what[:1].upper() + what[1:] if operation in COLLECTIVES else f"{groups.title(group)}: {what}", backend]
    return ", ".join(part for part in parts if part)


def _by_operation(results: Iterable[Result]) -> dict[tuple[Operation, str | None], list[Result]]:
    found: dict[tuple[Operation, str | None], list[Result]] = {}
    for result in results:
        if result.operation not in LATENCIES:
            found.setdefault((result.operation, result.backend), []).append(result)
    return found


def _paths(results: Sequence[Result], value: Value) -> dict[str, list[Result]]:
    """The results of each path with a value at three sizes or more, ascending by size."""
    paths: dict[str, list[Result]] = {}
    for result in sorted(results, key=lambda r: r.bytes):
        if result.bytes > 0 and _can_be_drawn(value(result)):
            paths.setdefault(_name(result), []).append(result)
    return {name: row for name, row in paths.items() if len({r.bytes for r in row}) >= _LEAST_SIZES}


def _can_be_drawn(value: float | None) -> bool:
    """Whether a value has a place on a logarithmic axis that people can read; a file from elsewhere may hold any."""
    return value is not None and _LEAST < value < _MOST


def _point_of(result: Result, value: Value) -> tuple[int, float, Status | None, str]:
    return result.bytes, value(result) or 0.0, words.status(result), result.case


def _name(result: Result) -> str:
    """What tells this path apart from the others of its operation."""
    if result.backend is not None:
        return collective.configuration(result)
    parts = [
        f"GPU {words.gpus(result)}" if result.gpus else None,
        f"node {result.memory_node}" if result.memory_node is not None else None,
        words.how(result),
        {True: "P2P", False: "P2P off", None: None}[result.p2p],
        result.transport,
        f"chunks of {units.format_bytes(result.chunk_bytes)}" if result.chunk_bytes else None,
    ]
    return ", ".join(part for part in parts if part)


def _ceilings(results: Sequence[Result], names: Sequence[str]) -> tuple[tuple[str, float], ...]:
    """The ceilings of all paths; equal ones (to three digits) share a line and its label."""
    named: dict[str, tuple[dict[str, None], float]] = {}
    for name in names:
        for result in results:
            value = getattr(result.limits, name) if result.limits else None
            if value is not None and _can_be_drawn(value):
                named.setdefault(f"{value:.3g}", ({}, value))[0][name] = None
    lines = [(_ALL if len(names) == len(_CEILINGS) else ", ".join(names), v) for names, v in named.values()]
    return tuple(sorted(lines, key=lambda line: -line[1])[:_MOST_LABELS])


def _chart(title: str, curves: Sequence[Curve], ceilings: Sequence[tuple[str, float]], shown: Words) -> Chart:
    sizes = [size for curve in curves for size, *_ in curve.points]
    values = [value for curve in curves for _, value, *_ in curve.points] + [value for _, value in ceilings]
    across = _Scale(min(sizes), max(sizes), _LEFT, _RIGHT)
    up = _Scale(min(values) / 1.3, max(values) * 1.3, _BOTTOM, _TOP)
    parts = [
        *_grid_across(across, sorted(set(sizes))),
        *_grid_up(up, shown),
        *(_ceiling(name, value, up) for name, value in ceilings),
        *(_line(curve, across, up) for curve in curves),
        *(_points(curve, across, up, shown) for curve in curves),
        *_labels(curves, ceilings, up, shown),
    ]
    drawn = svg.picture(_WIDTH, _HEIGHT, title, *parts, class_="picture chart")
    named = tuple(f"{_label(curve)}: {shown(curve.points[-1][1])}" for curve in _named(curves))
    return Chart(title, _caption(curves, ceilings, shown), drawn, named)


def _grid_across(across: _Scale, sizes: Sequence[int]) -> Iterator[Markup]:
    """A vertical line and a label for the largest size and for all below it that leave room for their labels."""
    right = _RIGHT + _TICK
    for size in reversed(sizes):
        x = across(size)
        if right - x < _TICK:
            continue
        right = x
        yield svg.tag("line", x1=x, x2=x, y1=_TOP, y2=_BOTTOM, class_="grid")
        yield svg.text(x, _BOTTOM + 18, units.format_bytes(size), class_="tick", text_anchor="middle")
    yield svg.text((_LEFT + _RIGHT) / 2, _HEIGHT - 8, "size of one operation", class_="tick", text_anchor="middle")


def _grid_up(up: _Scale, shown: Words) -> Iterator[Markup]:
    """Lines at 1, 2 and 5 of every decade; only the powers of ten where there are many decades."""
    decades = math.log10(up.high / up.low)
    decade = 10.0 ** math.floor(math.log10(up.low))
    while decade <= up.high:
        for factor in (1, 2, 5) if decades < 3.5 else (1,):
            value = decade * factor
            if up.low <= value <= up.high:
                y = up(value)
                yield svg.tag("line", x1=_LEFT, x2=_RIGHT, y1=y, y2=y, class_="grid")
                yield svg.text(_LEFT - 6, y + 4, shown(value * (1 + 1e-12)), class_="tick", text_anchor="end")
        decade *= 10


def _ceiling(name: str, value: float, up: _Scale) -> Markup:
    y = up(value)
    kind = "platform" if name.startswith("platform") else "device" if name.startswith("device") else "now"
    return svg.tag("line", x1=_LEFT, x2=_RIGHT, y1=y, y2=y, class_=f"ceiling {kind}")


def _line(curve: Curve, across: _Scale, up: _Scale) -> Markup:
    points = " ".join(f"{across(size):.1f},{up(value):.1f}" for size, value, *_ in curve.points)
    return svg.tag("polyline", svg.tag("title", curve.name), points=points, class_="curve")


def _points(curve: Curve, across: _Scale, up: _Scale, shown: Words) -> Markup:
    return svg.joined(
        _point(across(size), up(value), status, f"{case}: {shown(value)}, {status or 'not judged'}")
        for size, value, status, case in curve.points
    )


def _point(x: float, y: float, status: Status | None, title: str) -> Markup:
    """PASS a small disc, WARN a triangle, FAIL a cross, anything else a square: told apart without colour."""
    said = svg.tag("title", title)
    shape = f"point s-{status or 'NONE'}"
    if status == "PASS":
        return svg.tag("circle", said, cx=x, cy=y, r=2.5, class_=shape)
    if status == "FAIL":
        path = f"M{x - 4.5:.1f} {y - 4.5:.1f}l9 9m0 -9l-9 9"
    elif status == "WARN":
        path = f"M{x:.1f} {y - 5:.1f}l5 9h-10z"
    else:
        path = f"M{x - 4:.1f} {y - 4:.1f}h8v8h-8z"
    return svg.tag("path", said, d=path, class_=shape)


def _labels(
    curves: Sequence[Curve], ceilings: Sequence[tuple[str, float]], up: _Scale, shown: Words
) -> Iterator[Markup]:
    """Words at the right edge for ceilings and curves, moved apart where they would overlap."""
    wanted = [(up(value), f"{name} {shown(value)}", "ceiling-label") for name, value in ceilings]
    wanted += [(up(curve.points[-1][1]), _label(curve), "curve-label") for curve in _named(curves)]
    for y, words_, kind in _apart(wanted):
        yield svg.text(_RIGHT + 12, y + 4, words_, class_=kind)


def _named(curves: Sequence[Curve]) -> list[Curve]:
    """Of many curves only those that are not in order are named; all others are at the pointer."""
    if len(curves) <= 4:
        return list(curves)
    return [curve for curve in curves if _worst(curve) not in (None, "PASS")][:_MOST_LABELS]


def _label(curve: Curve) -> str:
    status = _worst(curve)
    return f"{words.MARKS[status]} {curve.name}" if status else curve.name


def _worst(curve: Curve) -> Status | None:
    return worst(status for _, _, status, _ in curve.points)


def _apart(labels: Sequence[tuple[float, str, str]]) -> list[tuple[float, str, str]]:
    """Labels from top to bottom, each at least a line below the one before, all within the picture."""
    placed: list[tuple[float, str, str]] = []
    for y, text, kind in sorted(labels):
        placed.append((max(y, placed[-1][0] + _LINE) if placed else max(y, _TOP), text, kind))
    over = placed[-1][0] - _BOTTOM if placed else 0.0
    return [(y - max(0.0, over), text, kind) for y, text, kind in placed]


def _caption(curves: Sequence[Curve], ceilings: Sequence[tuple[str, float]], shown: Words) -> str:
    """The picture in a sentence: what it comes to at the largest size, and the ceilings."""
    largest = max(size for curve in curves for size, *_ in curve.points)
    last = sorted(value for curve in curves for size, value, *_ in curve.points if size == largest)
    span = (
        shown(last[0])
        if len(last) == 1 or shown(last[0]) == shown(last[-1])
        else f"{shown(last[0])} to {shown(last[-1])}"
    )
    paths = "1 path" if len(curves) == 1 else f"{len(curves)} paths"
    limits = "; ".join(f"{name if name == _ALL else f'ceiling {name}'} {shown(value)}" for name, value in ceilings)
    return f"{paths}; {span} at {units.format_bytes(largest)}" + (f"; {limits}" if limits else "") + "."
