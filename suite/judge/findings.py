"""Root causes over a run: results that agree on one cause are said once, the gravest first. No status changes."""

from __future__ import annotations

from collections.abc import Sequence

from suite.judge import failures, losses, thresholds
from suite.judge.machine import of_machine
from suite.judge.view import gpu_words
from suite.records.run import STATUSES, Finding, Result, Run, Status, Verdict
from suite.units import format_bandwidth, format_seconds

# Causes that explain others on the same GPU, the strongest first: a link that errs also retrains, runs slow, and so on.
ROOTS = (
    "wrong_data", "hang", "host_hang", "crash", "worker_error", "signal_integrity", "not_as_expected",
    "downtrained_speed",
    "width_fault", "link_below_baseline", "configured_speed", "downtrained_width", "slower_than_card", "retraining",
    "link_errors", "upstream_hop_uneven", "slot_uneven",
    "nvlink_slow", "p2p_redirected", "p2p_slower_than_staging", "numa_far_slow", "numa_node_suspect",
    "memory_node_slow",
    "host_limited", "one_direction_weak", "outlier",
)  # fmt: skip
# Roots that explain only cases of their own kind: a wrong copy says nothing of a slow one.
_ALONE = (
    "wrong_data",
    "hang",
    "host_hang",
    "crash",
    "worker_error",
    "numa_far_slow",
    "memory_node_slow",
)
# A far node is the cause of what is made of copies with its memory.
_BUT = (("numa_far_slow", "as_its_copies"),)
# What a root cause may explain: causes that only say that something is slow.
_SYMPTOMS = (
    "slow_path", "below_expected", "collective_below_limit", "latency_out_of_family", "latency_high",
    "one_direction_weak", "outlier",
    "both_ways_collapse", "below_floor", "noisy", "host_limited", "retraining", "link_errors", "transport_unexpected",
    "p2p_slower_than_staging", "numa_far_weak", "worse_than_baseline", "as_its_copies",
    "as_the_slowest",
)  # fmt: skip
_LINK_ROOTS = (
    "signal_integrity",
    "not_as_expected",
    "downtrained_speed",
    "width_fault",
    "link_below_baseline",
    "configured_speed",
    "downtrained_width",
)
# Causes that say little more than the rate of one GPU: another GPU's rate is another finding.
_OF_ONE_GPU = ("limit_unknown", "link_not_run", "below_equal_gpu", "mps_assumed", "above_ceiling", "numa_far_weak")
# As many sets of GPUs have findings of their own: the pairs of four GPUs, and all four together.
_MOST_SETS = 7
_TROUBLE: tuple[Status, ...] = ("FAIL", "WARN", "INDETERMINATE")
_EXPLAINS = "; this explains "
# Passing causes that are worth a sentence all the same.
_SAID = ("platform_limited", "upstream_hop_narrower", "shared_uplink", "tuning_helps")


def findings(run: Run) -> tuple[Finding, ...]:
    """What is wrong or worth knowing, gravest first; each case is explained by one finding at most."""
    troubled = [r for r in run.results if r.verdict is not None and r.verdict.status in _TROUBLE]
    grouped = [_finding(group, len(troubled)) for group in _groups(troubled)]
    passing = [r for r in run.results if r.verdict is not None and r.verdict.cause in _SAID]
    said = [_finding(group, 0) for group in _by_subject(passing)]
    shown = of_machine(run.machine, thresholds.of(run.thresholds), run.expected, run.gone)
    return tuple(sorted([*grouped, *said, *shown], key=_gravity))


def failing(found: Sequence[Finding], strict: bool = False) -> list[Finding]:
    """Findings of the machine that make a run fail although no case carries them; strict: those worth a look too."""
    return [f for f in found if not f.cases and f.status in (_TROUBLE if strict else ("FAIL",))]


def headline(run: Run, found: Sequence[Finding]) -> str:
    """Is this machine right? One sentence, the first of every report."""
    prefix = "SIMULATED: " if run.simulated else ""
    ended = f" The run is incomplete: {len(run.results)} of {run.planned} cases ended." if not run.complete else ""
    return prefix + _answer(run, found) + ended


def _answer(run: Run, found: Sequence[Finding]) -> str:
    counts = {status: sum(1 for r in run.results if r.verdict and r.verdict.status == status) for status in STATUSES}
    measured = sum(counts[s] for s in ("FAIL", "WARN", "INDETERMINATE", "PASS"))
    where = "" if run.machine.gpus else f" No GPU path was measured: {_in_short(run.machine.why_no_gpu)}."
    if counts["FAIL"] or failing(found):
        return _bad(counts, measured, found) + where
    if not measured:
        return f"Nothing was measured{_why_nothing(run)}."
    return _good(run, counts, measured, found) + where


def _why_nothing(run: Run) -> str:
    """A run that was broken off says nothing of what would have come after it."""
    if not run.complete and len(run.results) < run.planned:
        return " before the run was broken off"
    return f": {(run.machine.why_no_gpu or 'no case ended').rstrip('.')}"


def _in_short(why: str | None) -> str:
    """Why there is no GPU up to the first colon or bracket; the table of the machine has the whole sentence."""
    short = (why or "no GPU").rstrip(".").partition(": ")[0].partition(" (")[0]
    return short[:1].lower() + short[1:]


def _cause_in_short(finding: Finding) -> str:
    """A finding's sentence without how many cases it explains: the headline has counted them."""
    return finding.sentence.partition(_EXPLAINS)[0].rstrip(".")


def _bad(counts: dict[Status, int], measured: int, found: Sequence[Finding]) -> str:
    causes = [f for f in found if f.status == "FAIL"]
    others = "1 more cause" if len(causes) == 2 else f"{len(causes) - 1} more causes"
    first = f": {_cause_in_short(causes[0])}{f' ({others} below)' if len(causes) > 1 else ''}" if causes else ""
    if not counts["FAIL"]:
        return f"This machine is not right{first}; {_no_case_fails(counts, measured)}."
    fail = "fails" if counts["FAIL"] == 1 else "fail"
    return f"This machine is not right: {counts['FAIL']} of {measured} cases {fail}{first}."


def _no_case_fails(counts: dict[Status, int], measured: int) -> str:
    """What the cases say where only the machine itself is wrong."""
    if not measured:
        return "nothing was measured"
    return _passing(measured) if counts["PASS"] == measured else f"none of {measured} cases fails"


def _passing(measured: int) -> str:
    return f"all {measured} cases pass" if measured > 1 else "the one case passes"


def _good(run: Run, counts: dict[Status, int], measured: int, found: Sequence[Finding]) -> str:
    look = [f for f in found if f.status == "WARN" and not f.cases]
    if counts["WARN"]:
        first = next((_cause_in_short(f) for f in found if f.status == "WARN" and f.cases), "")
        more = f"; {_things(look, 'more ')} below" if look else ""
        return f"This machine works, with {counts['WARN']} of {measured} cases worth a look: {first}{more}."
    more = f"; {_things(look)}: {_cause_in_short(look[0])}" if look else ""
    if counts["INDETERMINATE"] == measured:
        return f"Whether this machine is right cannot be told from what was seen in {measured} cases{more}."
    if counts["INDETERMINATE"]:
        return f"No fault found, but {counts['INDETERMINATE']} of {measured} cases could not be judged{more}."
    if not run.machine.gpus:
        return f"What was measured is right: {_passing(measured)}{more}."
    return f"This machine {'works' if look else 'is right'}: {_passing(measured)}{more}."


def _things(look: Sequence[Finding], more: str = "") -> str:
    """Of the machine itself, since cases are counted apart."""
    return f"{len(look)} {more}thing{'s' if len(look) > 1 else ''} to look at"


def _groups(troubled: Sequence[Result]) -> list[list[Result]]:
    """Troubled results by root cause, in order; each result goes to the strongest root that explains it."""
    roots: dict[tuple[str, tuple[int, ...]], list[Result]] = {}
    left = list(troubled)
    for cause in ROOTS:
        for one in [r for r in left if _cause(r) == cause]:
            key = (cause, _culprits(one, roots, cause))
            roots.setdefault(key, []).append(one)
            left.remove(one)
    for one in list(left):
        for (cause, gpus), group in roots.items():
            if _explains(cause, gpus, one):
                group.append(one)
                left.remove(one)
                break
    return [*_folded(roots), *_by_subject(left)]


def _culprits(one: Result, roots: dict[tuple[str, tuple[int, ...]], list[Result]], cause: str) -> tuple[int, ...]:
    """The GPUs that a root points at: of a case of several GPUs those that the same cause was seen on alone."""
    for seen, gpus in roots:
        if seen == cause and set(gpus) & set(one.gpus) and _binding(one) == _binding(roots[seen, gpus][0]):
            return gpus
    return one.gpus


def _explains(cause: str, gpus: tuple[int, ...], one: Result) -> bool:
    if _cause(one) not in _SYMPTOMS or (cause in _ALONE and (cause, _cause(one)) not in _BUT):
        return False
    return bool(set(gpus) & set(one.gpus))


def _folded(roots: dict[tuple[str, tuple[int, ...]], list[Result]]) -> list[list[Result]]:
    """Roots that a stronger root of the same GPUs explains go below it."""
    kept: list[tuple[str, tuple[int, ...], list[Result]]] = []
    for (cause, gpus), group in roots.items():
        above = next((k for k in kept if k[0] in _LINK_ROOTS and _explains(k[0], k[1], group[0])), None)
        if above is not None:
            above[2].extend(group)
        else:
            kept.append((cause, gpus, group))
    merged: dict[str, list[Result]] = {}
    for cause, _, group in kept:
        merged.setdefault(cause, []).extend(group)
    return list(merged.values())


def _by_subject(results: Sequence[Result]) -> list[list[Result]]:
    """One group a cause and its GPUs or node for a FAIL; one group a cause for what is only worth knowing.

    A cause with a number of one GPU is never said of another GPU, nor the number of some GPUs together of others: each
    has a group of its own.
    """
    crowded = _crowded(results)
    groups: dict[tuple[str, tuple[int, ...], int | None], list[Result]] = {}
    for one in results:
        cause, fail = _cause(one), _verdict(one).status == "FAIL"
        own = fail or (cause in _OF_ONE_GPU if len(one.gpus) == 1 else cause not in crowded)
        gpus = one.gpus if fail else tuple(sorted(one.gpus))
        key = (cause, gpus if own else (), one.memory_node if fail and not gpus else None)
        groups.setdefault(key, []).append(one)
    return list(groups.values())


def _crowded(results: Sequence[Result]) -> set[str]:
    """Causes seen on so many sets of GPUs (all pairs of a large machine) that one finding says more than one each."""
    sets: dict[str, set[frozenset[int]]] = {}
    for one in results:
        if len(one.gpus) > 1:
            sets.setdefault(_cause(one), set()).add(frozenset(one.gpus))
    return {cause for cause, found in sets.items() if len(found) > _MOST_SETS}


def _finding(group: Sequence[Result], troubles: int) -> Finding:
    ordered = sorted(group, key=lambda r: STATUSES.index(_verdict(r).status))
    first = _spokesman(group)
    verdict = _verdict(first)
    sentence = verdict.evidence[0] if verdict.evidence else verdict.cause
    alike = {_cause(r) for r in group} == {verdict.cause} and verdict.cause not in ROOTS
    if len(group) > 1 and alike:
        sentence = f"{sentence.rstrip('.')}; {len(group)} cases are like this{_range(group)}."
    elif len(group) > 1 and troubles:
        explained = _of_all(len(group), troubles) + (losses.lost(group) if verdict.cause in _LINK_ROOTS else "")
        sentence = f"{sentence.rstrip('.')}{_also(group)}{_EXPLAINS}{explained}."
    status = _verdict(ordered[0]).status
    cases = tuple(r.case for r in [first, *(r for r in ordered if r is not first)])
    return Finding(status, verdict.cause, _subject(group), sentence, _advice(group, verdict), cases)


def _advice(group: Sequence[Result], verdict: Verdict) -> str | None:
    """The spokesman's; but nobody is told to switch P2P off where the same goes wrong without it."""
    alike = (r for r in group if _cause(r) == verdict.cause and verdict.cause in ("wrong_data", "hang"))
    return next((_verdict(r).advice for r in alike if failures.without_p2p(r)), verdict.advice)


def _range(group: Sequence[Result]) -> str:
    """From the slowest to the fastest case, where one number is not that of all: several GPUs, or nothing but the rate
    speaks for them. Of latency cases the times."""
    several = len({frozenset(r.gpus) for r in group}) > 1
    if not several and _cause(group[0]) not in _OF_ONE_GPU:
        return ""
    rates = sorted(r.bandwidth for r in group if r.bandwidth)
    times = [] if rates else sorted(r.latency_s for r in group if r.latency_s)
    words = [format_bandwidth(rate) for rate in rates] or [format_seconds(time) for time in times]
    return f", {words[0]} to {words[-1]}" if words and words[0] != words[-1] else ""


def _of_all(count: int, troubles: int) -> str:
    return f"all {count} cases not in order" if count == troubles else f"{count} of {troubles} cases not in order"


def _also(group: Sequence[Result]) -> str:
    """Other GPUs (or nodes) on which the same cause was seen."""
    said, whole = _subject([_spokesman(group)]), _subject(group)
    return "" if said == whole else f"; the same cause on {whole}"


def _spokesman(group: Sequence[Result]) -> Result:
    """The case whose sentence is said: the root's own, on the fewest GPUs, the largest."""
    return min(group, key=lambda r: (_rank(_cause(r)), len(r.gpus), r.group != "link", -r.bytes))


def _rank(cause: str) -> int:
    return ROOTS.index(cause) if cause in ROOTS else len(ROOTS)


def _subject(group: Sequence[Result]) -> str:
    """The GPUs of the root's own cases, else their node."""
    cause = _cause(_spokesman(group))
    own = [r for r in group if _cause(r) == cause]
    fewest = min(len(r.gpus) for r in own)
    gpus = sorted({g for r in own if len(r.gpus) == fewest for g in r.gpus})
    if gpus:
        return gpu_words(gpus)
    nodes = sorted({r.memory_node for r in own if r.memory_node is not None})
    return ", ".join(f"node {n}" for n in nodes) or "the host"


def _gravity(finding: Finding) -> tuple[int, int, int]:
    return STATUSES.index(finding.status), _rank(finding.cause), -len(finding.cases)


def _verdict(one: Result) -> Verdict:
    if one.verdict is None:
        raise ValueError(f"{one.case} has no verdict yet")
    return one.verdict


def _cause(one: Result) -> str:
    return _verdict(one).cause


def _binding(one: Result) -> str | None:
    return _verdict(one).binding
