"""What a set of changes comes to: did the fix work, is it worse, and how sure is that?"""

from __future__ import annotations

import re
from collections.abc import Sequence

from suite.records.comparison import Change, Comparison, Difference

UNDER_LOAD = "link under load"
_LINK = re.compile(r"Gen(\d+) x(\d+)")
_NOT_RIGHT = ("FAIL", "WARN")


def conclusion(group: Sequence[Change], comparison: Comparison) -> str:
    """Of called changes of one set of GPUs, without a full stop."""
    calls = {change.call for change in group}
    probably = _probably(group, comparison)
    if calls == {"worse"}:
        named = {f" GPU{gpu} " for change in group for gpu in change.gpus}
        busy = [sentence for sentence in comparison.busy if any(name in sentence for name in named)]
        return "; ".join([f"{probably}worse", *busy])
    if len(calls) > 1:
        worse = sum(1 for change in group if change.call == "worse")
        return f"{probably}mixed, {worse} of {len(group)} are worse"
    if any(change.status_after not in ("PASS", None) for change in group) or _bad_link(group, comparison):
        return "better, but not all of it is right yet"
    repaired = any(change.status_before in _NOT_RIGHT for change in group)
    return "the fix worked" if repaired else f"{probably}better"


def links(comparison: Comparison, gpus: Sequence[int]) -> list[Difference]:
    """Changes under load of the own links of some GPUs."""
    return [d for d in comparison.machine if d.gpu in gpus and d.what.endswith(UNDER_LOAD)]


def hops(comparison: Comparison, gpus: Sequence[int]) -> list[Difference]:
    """Changes under load of links further up, which some GPUs share."""
    return [d for d in comparison.machine if set(d.below) & set(gpus) and d.what.endswith(" under load")]


def _probably(group: Sequence[Change], comparison: Comparison) -> str:
    """'probably ' where numbers alone speak, of one run on a side, and were not measured again."""
    single = all(min(change.runs_before, change.runs_after) == 1 for change in group)
    sure = any(change.repeated for change in group) or _explained(group, comparison)
    return "probably " if single and not sure else ""


def _explained(group: Sequence[Change], comparison: Comparison) -> bool:
    """A link under load is read, not measured: where it changed the same way as all the numbers, it is why."""
    better = {change.call == "better" for change in group}
    gpus = group[0].gpus
    gains = (_gain(difference) for difference in (*links(comparison, gpus), *hops(comparison, gpus)))
    return len(better) == 1 and any(gain is not None and {gain} == better for gain in gains)


def _gain(difference: Difference) -> bool | None:
    """Whether a link carries more than before; None where that cannot be told."""
    old, new = (_LINK.fullmatch(text or "") for text in (difference.before, difference.after))
    rates = [2 ** int(link[1]) * int(link[2]) for link in (old, new) if link]
    return rates[1] > rates[0] if len(rates) == 2 and rates[0] != rates[1] else None


def _bad_link(group: Sequence[Change], comparison: Comparison) -> bool:
    """The link of one of these GPUs is not right after: numbers that are right for it are no repair."""
    gpus = {gpu for change in group for gpu in change.gpus}
    seen = (c for c in comparison.changes if c.operation == "link_under_load" and gpus & set(c.gpus))
    return any(change.status_after in _NOT_RIGHT for change in seen)
