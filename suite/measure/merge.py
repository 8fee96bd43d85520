"""All ranks' answers to one plan as one set of samples. The slowest rank of a round is what counts."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean

from suite.errors import MeasureError, Unavailable
from suite.measure.answer import Answer
from suite.records.case import LinkWatch, Placement, Plan, Samples


def samples(plan: Plan, answers: Sequence[Answer], watch: LinkWatch | None = None) -> Samples:
    """Samples of the answers, in rank order. Raises Unavailable or MeasureError where a rank could not measure."""
    refuse(answers)
    rounds = _rounds(answers)
    first = answers[0]
    return Samples(
        seconds=tuple(max(ranks) for ranks in rounds),
        clock=first.clock,
        engine=first.engine or plan.engine,
        verified=verified([a.verified for a in answers]),
        wrong=_wrong(answers),
        iterations=first.iterations,
        mean_seconds=tuple(fmean(ranks) for ranks in rounds) if len(answers) > 1 else (),
        directions=first.directions,
        placement=placement([a.placement for a in answers]),
        watch=watch,
        transport=first.transport,
        counted=first.counted,
        threads=first.threads,
        on_device_s=first.on_device_s,
        notes=tuple(dict.fromkeys(note for a in answers for note in a.notes)),
    )


def window(answers: Sequence[Answer]) -> tuple[float, float] | None:
    """From the first rank's start to the last rank's end; None where no rank timed a transfer."""
    known = [a.window for a in answers if a.window is not None]
    return (min(w[0] for w in known), max(w[1] for w in known)) if known else None


def verified(answers: Sequence[bool | None]) -> bool | None:
    """False where any rank saw wrong bytes, None where no rank had bytes to look at."""
    if False in answers:
        return False
    return True if True in answers else None


def placement(answers: Sequence[Placement | None]) -> Placement | None:
    """One placement of all ranks: proved where every rank proved it, disproved where one did."""
    known = [p for p in answers if p is not None]
    if len(known) < 2:
        return known[0] if known else None
    proofs = [p.proved for p in known]
    details = dict.fromkeys(p.detail for p in known if p.detail)
    return Placement(
        node=_common([p.node for p in known]),
        target_node=_common([p.target_node for p in known]),
        cpu_node=_common([p.cpu_node for p in known]),
        proved=False if False in proofs else None if None in proofs else True,
        method=known[0].method,
        detail="; ".join(details) or None,
    )


def _common(nodes: Sequence[int | None]) -> int | None:
    return nodes[0] if len(set(nodes)) == 1 else None


def refuse(answers: Sequence[Answer]) -> None:
    """Raises Unavailable or MeasureError where a rank could not measure."""
    for rank, answer in enumerate(answers):
        if answer.unavailable:
            raise Unavailable(answer.unavailable)
        if answer.error:
            raise MeasureError("error", f"rank {rank}: {answer.error}")


def _rounds(answers: Sequence[Answer]) -> list[tuple[float, ...]]:
    """One tuple a round, one entry a rank. Ranks that only help (no seconds) are left out."""
    timed = [a.seconds for a in answers if a.seconds]
    if len({len(seconds) for seconds in timed}) > 1:
        counts = ", ".join(str(len(a.seconds)) for a in answers)
        raise MeasureError("error", f"the ranks measured different numbers of rounds: {counts}")
    return list(zip(*timed, strict=True))


def _wrong(answers: Sequence[Answer]) -> str | None:
    """What the first rank with wrong bytes saw; which rank, where there are several."""
    for rank, answer in enumerate(answers):
        if answer.verified is False:
            text = answer.wrong or "the bytes differ from what was sent"
            return text if len(answers) == 1 else f"rank {rank}: {text}"
    return None
