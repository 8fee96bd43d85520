"""All GPUs at once: what they share, what is full above them, and whom they wait for."""

from __future__ import annotations

from collections import Counter

from suite.judge import levels
from suite.judge.view import View, fastest, passed, say
from suite.records.path import path_to_root
from suite.records.run import Result, Verdict
from suite.units import format_bandwidth

_MOST_NAMED = 4


def shared_uplink(view: View) -> Verdict | None:
    """Several GPUs at once that get all of a shared link, less than each alone."""
    result = view.result
    if not result.operation.startswith("all_gpus") or result.bandwidth is None or not _shared(view):
        return None
    alone = _alone(view)
    total = sum(one.bandwidth or 0.0 for one in alone.values())
    if len(alone) < len(result.gpus) or result.bandwidth >= view.thresholds.sibling_fraction * total:
        return None
    said = levels.words(view) | {"alone": format_bandwidth(total), "path": _shared_words(view)}
    return say("shared_uplink", binding=result.limits.binding if result.limits else None, **said)


def as_the_slowest(view: View) -> Verdict | None:
    """The total is the slowest GPU's rate times their number, and that GPU is not in order alone."""
    rate, alone = _slow_together(view), _alone(view)
    if rate is None or len(alone) < len(view.result.gpus):
        return None
    gpu, slowest = min(alone.items(), key=lambda item: item[1].bandwidth or 0.0)
    least = len(alone) * (slowest.bandwidth or 0.0)
    if passed(slowest) or rate < view.thresholds.as_its_parts * least:
        return None
    said = levels.words(view) | {"count": len(alone), "slowest": f"GPU{gpu}"}
    of_slowest = format_bandwidth(slowest.bandwidth)
    return say("as_the_slowest", *levels.spread_note(view), rate=of_slowest, **said)


def root_complex(view: View) -> Verdict | None:
    """Several GPUs at once that share no link, are slow together, and were in order one at a time."""
    rate, alone = _slow_together(view), _alone(view)
    if rate is None or _shared(view):
        return None
    total = sum(one.bandwidth or 0.0 for one in alone.values())
    in_order = len(alone) == len(view.result.gpus) and all(map(passed, alone.values()))
    # The time runs until the last GPU ends and all move equal bytes: more than this the slowest one does not allow.
    held = len(alone) * min((one.bandwidth or 0.0 for one in alone.values()), default=0.0)
    if not in_order or rate >= view.thresholds.together * held:
        return None
    said = levels.words(view) | {"alone": format_bandwidth(total)}
    return say("root_complex_limited", *levels.spread_note(view), **said)


def _slow_together(view: View) -> float | None:
    """The total of a case of all GPUs that is low or bad, bytes/s."""
    slow = view.result.operation.startswith("all_gpus") and levels.level(view) in ("low", "bad")
    return view.result.bandwidth if slow else None


def _alone(view: View) -> dict[int, Result]:
    """The same copy of each GPU of the case alone, with the same kind of memory: the fastest one. Only those known."""
    result = view.result
    single = (result.operation.removeprefix("all_gpus_"), result.bytes, result.engine, result.memory)
    alike = (r for r in view.so_far if (r.operation, r.bytes, r.engine, r.memory) == single and len(r.gpus) == 1)
    return fastest((r for r in alike if r.gpus[0] in result.gpus), lambda r: r.gpus[0])


def _shared_words(view: View) -> str:
    """The links that GPUs of the case share, nearest to the root, by name."""
    shared = _shared(view)
    if len(shared) < 2:
        return view.result.limits.binding or shared[0] if view.result.limits else shared[0]
    named = ", ".join(shared[:_MOST_NAMED])
    more = f" and {len(shared) - _MOST_NAMED} more" if len(shared) > _MOST_NAMED else ""
    return f"the {len(shared)} links that they share ({named}{more})"


def _shared(view: View) -> list[str]:
    """The lower ends of the links that several of the case's GPUs have above them."""
    count = Counter(_hops(view))
    return [hop for hop, gpus in count.items() if gpus > 1]


def _hops(view: View) -> list[str]:
    return [
        hop.lower
        for index in view.result.gpus
        if (gpu := view.machine.gpu(index)) is not None and gpu.address is not None
        for hop in path_to_root(view.machine, gpu.address).hops
    ]
