"""Cases that did not end well, or whose data or placement are not what was asked for."""

from __future__ import annotations

from suite.judge.view import View, say
from suite.records.run import Verdict
from suite.units import format_bytes

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
    said = tuple(f"rank {rank} last said: {text}" for rank, text in enumerate(error.said) if text)
    return say(
        _CAUSES[error.kind], *said, _shared_memory(view), who=f"{view.who}, {_what(view)}", message=error.message
    )


def _what(view: View) -> str:
    """What the case did, in words: 'allreduce over nccl', 'peer write'."""
    operation = view.result.operation.replace("_", " ")
    return f"{operation} over {view.result.backend}" if view.result.backend else operation


def wrong_data(view: View) -> Verdict | None:
    """The bytes were compared and are wrong: no bandwidth is worth showing then."""
    if view.result.verified is not False:
        return None
    return say("wrong_data", who=view.who, wrong=view.result.wrong or "the bytes differ from those sent")


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
