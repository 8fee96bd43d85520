"""Cases that did not end well, or whose data or placement are not what was asked for."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import groupby

from suite.judge.view import View, say
from suite.records.case import COLLECTIVES
from suite.records.run import Result, Verdict
from suite.units import format_bytes

# What the engine says of one rank that did not answer or that ended: 'rank 3 is running'.
_RANK = re.compile(r"rank (\d+) ([^,;:]+)(?:, |(?=[.;]|$))")
_CAUSES = {"hang": "hang", "crash": "crash", "error": "worker_error"}


def represented(view: View) -> Verdict | None:
    """Another case stands for this one."""
    other = view.result.represented_by
    return say("not_sampled", other=other) if other else None


def failed(view: View) -> Verdict | None:
    """A hang, a crash or an error, with what each rank last said."""
    error = view.result.error
    if error is None:
        return None
    said = tuple(f"{_ranks(ranks)} last said: {text}" for text, ranks in _alike(error.said) if text)
    cause = "host_hang" if error.kind == "hang" and _on_processors(view) else _CAUSES[error.kind]
    words = {"who": f"{view.who}, {_what(view)}", "message": ranks_in_short(error.message)}
    then = "" if without_p2p(view.result) else ", then try NCCL_P2P_DISABLE=1"
    return say(cause, *said, _shared_memory(view), **words, then_p2p_off=then)


def without_p2p(result: Result) -> bool:
    """No byte goes from one GPU directly to another: to switch P2P off would change nothing."""
    if result.operation in COLLECTIVES:
        return result.transport in ("shm", "net") or result.backend == "gloo"
    return result.p2p is False or not str(result.operation).startswith("peer_")


def _on_processors(view: View) -> bool:
    """No GPU takes part: gloo's collectives."""
    return view.result.backend == "gloo" and not view.result.gpus


def ranks_in_short(message: str) -> str:
    """Ranks of which the same is said, in one clause: 'ranks 0–63 are running' for 64 of them."""
    found = list(_RANK.finditer(message))
    if len(found) < 2:
        return message
    states: dict[str, list[int]] = {}
    for one in found:
        states.setdefault(one[2].strip(), []).append(int(one[1]))
    clauses = ", ".join(f"{_ranks(ranks)} {_plural(state, len(ranks))}" for state, ranks in states.items())
    return message[: found[0].start()] + clauses + message[found[-1].end() :]


def _plural(state: str, count: int) -> str:
    verb, space, rest = state.partition(" ")
    return {"is": "are", "was": "were", "has": "have"}.get(verb, verb) + space + rest if count > 1 else state


def _alike(said: Sequence[str]) -> list[tuple[str, list[int]]]:
    """What ranks last said, each text once with its ranks."""
    texts: dict[str, list[int]] = {}
    for rank, text in enumerate(said):
        texts.setdefault(text, []).append(rank)
    return list(texts.items())


def _ranks(ranks: Sequence[int]) -> str:
    """'rank 3', 'ranks 0, 2', and a dash for a row of three or more."""
    parts = []
    for _, row in groupby(enumerate(sorted(ranks)), lambda pair: pair[1] - pair[0]):
        whole = [rank for _, rank in row]
        parts += [f"{whole[0]}–{whole[-1]}"] if len(whole) > 2 else [str(rank) for rank in whole]
    return f"rank{'s' * (len(ranks) > 1)} {', '.join(parts)}"


def _what(view: View) -> str:
    """What the case did, in words: 'allreduce over nccl', 'peer write'."""
    operation = view.result.operation.replace("_", " ")
    return f"{operation} over {view.result.backend}" if view.result.backend else operation


def wrong_data(view: View) -> Verdict | None:
    """The bytes were compared and are wrong: no bandwidth is worth showing then."""
    if view.result.verified is not False:
        return None
    instead = "" if without_p2p(view.result) else ", set NCCL_P2P_DISABLE=1 for peer traffic"
    wrong = view.result.wrong or "the bytes differ from those sent"
    return say("wrong_data", who=view.who, wrong=wrong, p2p_off=instead)


def nothing(view: View) -> Verdict | None:
    """No samples and no error: unavailable where NVML says that there is no peer access, else not measured."""
    result = view.result
    if result.samples_s or (result.operation.startswith("peer_") and len(result.gpus) == 2):
        return None
    return say("not_measured")


def elsewhere(view: View) -> Verdict | None:
    """The host buffer was seen on another node than the one asked for."""
    placement = view.result.placement
    if placement is None or placement.proved is not False:
        return None
    return say("placement_elsewhere", node=placement.node, detail=placement.detail or "its pages lie on another node.")


def _shared_memory(view: View) -> str:
    shm = view.machine.environment.shm_bytes
    if view.result.world_size < 2 or shm is None or shm > view.thresholds.shm_bytes:
        return ""
    return f"/dev/shm has only {format_bytes(shm)}"


RULES = (represented, failed, wrong_data, nothing, elsewhere)
