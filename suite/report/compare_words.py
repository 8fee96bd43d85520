"""What a person wants to hear of a comparison: did the fix work, is it worse, or is there nothing beyond noise?"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

from suite.records.comparison import Call, Change, Comparison, Difference, Missing, Side
from suite.report.compare_conclusion import UNDER_LOAD, conclusion, hops, links
from suite.units import format_bandwidth, format_percent, format_seconds

_FACTOR = 1.5  # from here on '×9.0' reads better than '+800 %'
_NEW_CEILING = 0.01
_ABOUT = 0.8  # changes within a fifth of the largest are told by the plainest case
_LISTED = 20
_GPUS_NAMED = 2
CALLS: dict[Call, str] = {"worse": "worse", "better": "better", "inconclusive": "inconclusive", "same": "no change"}


def headline(comparison: Comparison) -> str:
    """The first line of every comparison."""
    simulated = "SIMULATED: " if comparison.before.simulated or comparison.after.simulated else ""
    forced = "FORCED: " if comparison.forced else ""
    return f"{simulated}{forced}{_gpus_in_short(comparison.gpus)}{_numbers_in_short(comparison)}"


def _gpus_in_short(alone: Sequence[Difference]) -> str:
    """What comes before all numbers: GPUs that only one side has."""
    more = f"{len(alone) - _GPUS_NAMED} more GPUs are on one side only. " if len(alone) > _GPUS_NAMED else ""
    return "".join(f"{difference}. " for difference in alone[:_GPUS_NAMED]) + more


def _numbers_in_short(comparison: Comparison) -> str:
    changed = called(comparison.changes)
    said = sentences(comparison)
    if changed:
        more = f" {_counts(comparison)}." if len(said) > 1 or len(changed) > 1 else ""
        return f"{_quiet_gpus(comparison)}{_mixed(comparison)}{said[0]}{more}"
    if not comparison.changes:
        return "Nothing could be compared: no case has numbers on both sides."
    if doubtful(comparison.changes):
        return f"No change that can be called: {_counts(comparison)}."
    return f"No change beyond noise in {_cases(len(comparison.changes))}."


def _quiet_gpus(comparison: Comparison) -> str:
    """Said first where only processors and host memory changed: a noisy host must not look like a GPU's path."""
    own = [change for change in comparison.changes if change.gpus]
    if not own or called(own):
        return ""
    what = "that can be called" if doubtful(own) else "beyond noise"
    return f"GPU paths: no change {what} in {_cases(len(own))}. On the host: "


def _mixed(comparison: Comparison) -> str:
    """'mixed: 7 worse, 1 better. ' where both are called; the sentence after it is of the gravest of the worse."""
    found = [change.call for change in comparison.changes]
    worse, better = found.count("worse"), found.count("better")
    return f"mixed: {worse} worse, {better} better. " if worse and better else ""


def sentences(comparison: Comparison) -> tuple[str, ...]:
    """One for each set of GPUs with a called change, the gravest first; then links that changed without one."""
    groups: dict[tuple[int, ...], list[Change]] = {}
    for change in called(comparison.changes):
        groups.setdefault(tuple(sorted(change.gpus)), []).append(change)
    ordered = sorted(groups.values(), key=lambda group: _gravity(group, comparison))
    told = [_sentence(group, comparison) for group in ordered]
    return (*told, *_quiet_links(comparison, {gpu for gpus in groups for gpu in gpus}))


def called(changes: Sequence[Change]) -> list[Change]:
    """Changes that are called better or worse."""
    return [change for change in changes if change.call in ("better", "worse")]


def doubtful(changes: Sequence[Change]) -> list[Change]:
    """Changes that could not be called, and might be some."""
    return [change for change in changes if change.call == "inconclusive"]


def size(change: Change) -> float:
    """How large a change is: the factor, whichever way; a case that broke, or works again, is larger than any."""
    return max(change.ratio, 1 / change.ratio) if change.ratio else float("inf")


def value(change: Change, number: float | None) -> str:
    """A number of a case in its unit."""
    return format_bandwidth(number) if change.quantity == "bandwidth" else format_seconds(number)


def ratio(number: float | None) -> str:
    """'×9.0', '+4.2 %' or '−5.1 %'; '–' where there is none."""
    if number is None:
        return "–"
    if number >= _FACTOR:
        return f"×{number:.1f}" if number < 100 else f"×{number:.0f}"
    if number <= 1 / _FACTOR:
        return f"×{number:.2f}" if number >= 0.1 else f"×{number:.2g}"
    percent = f"{abs(number - 1) * 100:.1f} %"
    return percent if percent == "0.0 %" else f"{'+' if number >= 1 else '−'}{percent}"


def interval(change: Change) -> str:
    """'0.94 to 0.97', or '–' where there are too few runs for one."""
    if change.low is None or change.high is None:
        return "–"
    return f"{change.low:.3g} to {change.high:.3g}"


def share(change: Change) -> str:
    """Of the ceiling that holds after: '90 % of the new ceiling'; empty where none is known."""
    if change.quantity != "bandwidth" or not change.limit or change.after is None:
        return ""
    old = change.limit_before
    new = "new " if old and abs(change.limit / old - 1) > _NEW_CEILING else ""
    return f"{format_percent(change.after / change.limit)} of the {new}ceiling"


def side(one: Side) -> str:
    """'before: slot1, 4 runs in 4 boots'; what is not known is not said."""
    runs = f"{one.runs} run{'s' if one.runs != 1 else ''}"
    boots = (
        "" if one.boots is None or one.runs == 1 else f" in {'one boot' if one.boots == 1 else f'{one.boots} boots'}"
    )
    when = f", {_second(one.started[0])}" if one.started else ""
    last = f" to {_second(one.started[-1])}" if len(one.started) > 1 else ""
    return f"{one.name}: {runs}{boots}{when}{last}"


def _second(started: str) -> str:
    """'2026-01-02 03:04:05 UTC' of ISO 8601 with fractions; what is no such text stays as it is."""
    try:
        return datetime.fromisoformat(started).astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    except ValueError:
        return started


def missing(rows: Sequence[Missing], most: int | None = _LISTED) -> Iterator[str]:
    """Cases that were not compared, by reason; most: how many are named of each."""
    groups: dict[str, list[str]] = {}
    for row in rows:
        groups.setdefault(row.why, []).append(row.case)
    for why, cases in groups.items():
        named = cases if most is None else cases[:most]
        more = f" and {len(cases) - len(named)} more" if len(named) < len(cases) else ""
        yield f"Not compared, {why}: {', '.join(named)}{more}."


def confirm(comparison: Comparison) -> str | None:
    """What to do before a called change is believed; None where it was done, or nothing is called."""
    changes = called(comparison.changes)
    if not changes or all(change.repeated for change in changes):
        return None
    return (
        "A called change must repeat: measure the called cases once more and give that run with --again "
        "(`pytest benchmarks/ --baseline` does it by itself)."
    )


def _counts(comparison: Comparison) -> str:
    found = [change.call for change in comparison.changes]
    counts = [f"{found.count(call)} {CALLS[call]}" for call in CALLS if found.count(call)]
    return f"Of {_cases(len(found))}: {', '.join(counts)}"


def _cases(count: int) -> str:
    return "1 case" if count == 1 else f"{count} cases"


def _sentence(group: Sequence[Change], comparison: Comparison) -> str:
    """'GPU1 Gen1 x16 → Gen4 x16 under load; host_to_device 2.90 GB/s → 26.1 GB/s (×9.0, …): the fix worked.'"""
    best = min(_gravest(group), key=_spokesman)
    links = "; ".join(_changed_links(comparison, best.gpus))
    subject = links or (_gpus(best.gpus) if best.gpus else "")
    joint = "; " if links else ": " if subject else ""
    more = f", and {len(group) - 1} more case{'s' if len(group) > 2 else ''}" if len(group) > 1 else ""
    repeated = ", measured again" if all(change.repeated for change in group) else ""
    return f"{subject}{joint}{_numbers(best)}{more}{repeated}: {conclusion(group, comparison)}."


def _gravest(group: Sequence[Change]) -> Sequence[Change]:
    """Of changes some of which are worse: those that lost about as much as the one that lost most."""
    worse = [change for change in group if change.call == "worse"]
    most = max(map(size, worse), default=0.0)
    return [change for change in worse if size(change) >= _ABOUT * most] or group


def _numbers(change: Change) -> str:
    name = change.operation if change.gpus else change.case
    if change.ratio is None:
        measured = value(change, change.after if change.after is not None else change.before)
        cause = change.cause_after if change.call == "worse" else change.cause_before
        broken = (cause or "no numbers").replace("_", " ")
        return f"{name} {measured} → {broken}" if change.call == "worse" else f"{name} {broken} → {measured}"
    inside = ", ".join(part for part in (ratio(change.ratio), share(change)) if part)
    return f"{name} {value(change, change.before)} → {value(change, change.after)} ({inside})"


def _spokesman(change: Change) -> tuple[int, bool, int, float]:
    """The case whose numbers are said: the plain copy, the largest, the fastest."""
    plain = ("host_to_device", "device_to_host", "peer_write", "link_under_load", "allreduce")
    rank = plain.index(change.operation) if change.operation in plain else len(plain)
    return rank, change.ratio is None, -change.bytes, -(change.after or 0.0)


def _gravity(group: Sequence[Change], comparison: Comparison) -> tuple[bool, bool, float, int, float]:
    """Worse first; then the GPU whose link changed, the largest change, single GPUs before sets of them."""
    worse = any(change.call == "worse" for change in group)
    gpus = group[0].gpus
    most = max(map(size, _gravest(group)))
    return not worse, not (len(gpus) == 1 and _links(comparison, gpus)), -_steps(most), len(gpus) or 99, -most


def _steps(factor: float) -> float:
    """How large a change is in coarse steps, so that nearly equal ones are ordered by what they are of."""
    return math.floor(math.log(factor, _FACTOR)) if math.isfinite(factor) else factor


def _links(comparison: Comparison, gpus: tuple[int, ...]) -> list[Difference]:
    """Changes under load of the link of one GPU; sets of GPUs have none of their own."""
    return links(comparison, gpus) if len(gpus) == 1 else []


def _changed_links(comparison: Comparison, gpus: tuple[int, ...]) -> list[str]:
    """Of one GPU its own link; where that is as before, the hops above it."""
    own = [_link(difference) for difference in _links(comparison, gpus)]
    above = hops(comparison, gpus) if len(gpus) == 1 else []
    return own or [f"GPU{gpus[0]}, {d.what.removesuffix(' under load')} {_states(d)}" for d in above]


def _quiet_links(comparison: Comparison, told: set[int]) -> Iterator[str]:
    for difference in comparison.machine:
        if difference.gpu is not None and difference.what.endswith(UNDER_LOAD) and difference.gpu not in told:
            yield f"{_link(difference)}; the numbers of this GPU show no change beyond noise."


def _link(difference: Difference) -> str:
    return f"GPU{difference.gpu} {_states(difference)}"


def _states(difference: Difference) -> str:
    return f"{difference.before or 'unknown'} → {difference.after or 'unknown'} under load"


def _gpus(gpus: tuple[int, ...]) -> str:
    return ", ".join(f"GPU{gpu}" for gpu in gpus) if len(gpus) <= 3 else f"GPU{gpus[0]} to GPU{gpus[-1]}"
