"""Three ceilings out of a model of the path: under load (now), between the partners (platform), of the device."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from suite.limits import healthy, path, pcie, words
from suite.limits.links import LinkOf
from suite.limits.path import Bound, Demand, Packets
from suite.limits.pcie import Mover
from suite.records.machine import GENERATION_GTS, Basis, LinkState
from suite.records.run import Limits

# What a path delivers at given links and packet sizes; None where no link of it is known.
Model = Callable[[LinkOf, Packets], Bound | None]


@dataclass(frozen=True)
class Sources:
    """Where link states come from. cases: those that the links under load were read in; empty where in none.

    in_step: both directions of a both-ways copy move the same bytes in the same time, as simulated ones do.
    """

    load: LinkOf
    possible: LinkOf
    device: LinkOf
    cases: tuple[str, ...] = ()
    in_step: bool = False


@dataclass(frozen=True)
class Question:
    """What is asked of a path. healthy: the row of the table of healthy fractions; None where it has no row.

    usual: such a copy comes near its ceiling on healthy machines. False with pageable memory, which the driver bounds.
    """

    case: str
    demand: Demand
    engine: Mover
    healthy: str | None = None
    usual: bool = True
    cut: int | None = None
    hard: bool = True
    note: str | None = None
    width: int | None = None


def limits(question: Question, sources: Sources, model: Model | None = None) -> Limits:
    """The ceilings of a path over PCIe. model: where the path is more than its demand on each hop."""
    ask = model or (lambda link_of, packets: path.bound(question.demand, link_of, packets))
    packets = path.sizes(question.demand, question.engine, question.cut)
    shown = packets[len(packets) // 2]
    now, platform, device = (ask(source, shown) for source in (sources.load, sources.possible, sources.device))
    ceiling = Limits(
        now=_rate(now),
        platform=_rate(platform),
        device=_rate(device),
        basis=_basis(question.demand, packets),
        hard=question.hard,
        binding=words.binding(now, shown) if now else None,
        generations=_generations(question, now, shown),
    )
    if now and len(packets) > 1:
        ceiling = replace(ceiling, low=_rate(ask(sources.load, packets[0])), high=_rate(ask(sources.load, packets[-1])))
    return _explained(ceiling, question, sources, now, shown)


def unknown(why: str, *, hard: bool = True) -> Limits:
    """No limit is known, and why."""
    return Limits(hard=hard, why=why)


def _explained(ceiling: Limits, question: Question, sources: Sources, now: Bound | None, shown: Packets) -> Limits:
    """The ceiling with its expected range and its derivation in words."""
    notes = [question.note] if question.note else []
    if now is None or ceiling.basis is None:
        why = " ".join([_no_reading(ceiling), *notes])
        return replace(ceiling, why=why)
    steps = [_seen(question.case, sources, now), words.derivation(question.demand, now, shown, ceiling.basis)]
    if question.healthy == "host_to_device":
        notes.append(_split(now))
    ranged = question.healthy if question.usual else None
    row = healthy.expected(ranged, question.engine, now.link.gen) if ranged else None
    if row is not None:
        ceiling = replace(ceiling, expected=row.of(now.rate))
        notes.append(f"Healthy machines reach {row.low:.2f} to {row.high:.2f} of it ({row.source}).")
    return replace(ceiling, why=" ".join([*steps, *notes, words.SOURCE]))


def _split(now: Bound) -> str:
    """What completions cut at the read completion boundary would leave: a reason for less, not a ceiling."""
    rate = pcie.split_completions(now.link.gen or 0, now.link.width or 0)
    return f"If less is seen: completions that the root complex splits at 64 bytes leave {words.gigabytes(rate)}."


def _seen(case: str, sources: Sources, now: Bound) -> str:
    """Which hop binds, and in which case its state was read."""
    if not sources.cases:
        return f"{now.hop.lower} is recorded at {words.link(now.link)}."
    others = [other for other in sources.cases if other != case]
    read = f"read in {', '.join(others)}" if others else "read in this case"
    return f"{now.hop.lower} ran at {words.link(now.link)} under load ({read})."


def _no_reading(ceiling: Limits) -> str:
    text = "The link was not read under load, and its idle state says nothing: no limit for now."
    if ceiling.platform is None:
        return text
    return f"{text} The partners on the path could negotiate {words.gigabytes(ceiling.platform)}."


def _generations(question: Question, now: Bound | None, shown: Packets) -> tuple[float, ...]:
    """What Gen1, Gen2, … of the same width would carry: of the width under load, else of the device's."""
    demand = question.demand
    width = now.link.width if now else question.width
    if width not in pcie.WIDTHS or len(demand.hops) == 0 or question.healthy is None:
        return ()
    top = max(5, now.link.gen or 0) if now else 5
    own = next(iter(demand.traffic.values()))
    links = [LinkState(GENERATION_GTS[gen], width) for gen in pcie.GENERATIONS if gen <= top]
    return tuple(path.hop_rate(demand, own, link, shown) for link in links)


def _basis(demand: Demand, packets: tuple[Packets, ...]) -> Basis:
    return "assumed" if len(packets) > 1 else demand.basis


def _rate(bound: Bound | None) -> float | None:
    return bound.rate if bound else None
