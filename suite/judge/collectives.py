"""Collectives: values first; then the transport taken, the size, and the ceiling of the algorithm taken."""

from __future__ import annotations

import math
from typing import Any

from suite.judge import copies, levels
from suite.judge.view import View, say
from suite.records.machine import Machine
from suite.records.run import Verdict
from suite.units import format_bandwidth, format_bytes, format_seconds

_PEER_PATHS = ("PIX", "PXB")
SMALLEST = 1024  # bytes: 30 ns on a Gen5 x16 link, so that the time is all latency


def gloo(view: View) -> Verdict | None:
    """gloo runs over loopback, which has no honest ceiling: its values are judged, its rate is shown."""
    if view.result.backend != "gloo":
        return None
    return say("correct", *levels.spread_note(view), measured=view.measured)


def same_gpu(view: View) -> Verdict | None:
    """More ranks than GPUs: they share one, and no link is used."""
    gpus = len(set(view.result.gpus))
    if not gpus or gpus >= view.result.world_size:
        return None
    return say("functional_only", measured=view.measured, ranks=f"{view.result.world_size} ranks", who=view.who)


def transport(view: View) -> Verdict | None:
    """NCCL's log names another transport than was asked for, or than this machine's peer paths allow."""
    taken = view.result.transport_taken.name if view.result.transport_taken else None
    expected = _expected(view)
    if taken is None or expected is None or expected in taken.upper():
        return None
    return say("transport_unexpected", who=view.who, taken=taken, expected=expected)


def _expected(view: View) -> str | None:
    """What was asked for; for NCCL's own choice P2P where all pairs have it over NVLink or PCIe switches."""
    asked = view.result.transport
    if asked in ("p2p", "shm", "net"):
        return asked.upper()
    return "P2P" if view.result.world_size > 1 and all_near(view.machine, view.result.gpus) else None


def all_near(machine: Machine, gpus: tuple[int, ...]) -> bool:
    """Every two of these GPUs have P2P through NVLink or PCIe switches: NCCL's default takes P2P there."""
    pairs = [machine.pair(a, b) for a in gpus for b in gpus if a < b]
    return bool(pairs) and all(
        p is not None
        and p.p2p_read == "OK"
        and p.p2p_write == "OK"
        and bool(p.nvlinks or (p.topology_nvml or p.topology) in _PEER_PATHS)
        for p in pairs
    )


def slow_message(view: View) -> Verdict | None:
    """A message too small for any link to matter, beside what as many ranks take on machines in order."""
    result, seconds = view.result, view.seconds
    if result.bytes > SMALLEST or seconds is None or result.operation != "allreduce":
        return None
    taken = result.transport_taken.name if result.transport_taken else None
    nvlink = nvlinked(view.machine, result.gpus) and "SHM" not in (taken or "P2P").upper()
    two = view.thresholds.message_nvlink_s if nvlink else view.thresholds.message_pcie_s
    usual = two * max(1.0, math.log2(result.world_size)) + (0 if result.graph else view.thresholds.message_launch_s)
    if (taken is not None and "NET" in taken.upper()) or seconds <= view.thresholds.latency_family * usual:
        return None
    said: dict[str, Any] = {
        "measured": format_seconds(seconds), "size": format_bytes(result.bytes), "usual": format_seconds(usual),
        "transport": taken or ("NVLink" if nvlink else "PCIe"), "ranks": f"{result.world_size} ranks",
    }  # fmt: skip
    return say("collective_latency", *levels.spread_note(view), who=view.who, **said)


def nvlinked(machine: Machine, gpus: tuple[int, ...]) -> bool:
    """Every two of these GPUs have active NVLinks between them."""
    pairs = [machine.pair(a, b) for a in gpus for b in gpus if a < b]
    return bool(pairs) and all(pair is not None and bool(pair.nvlinks) for pair in pairs)


def small(view: View) -> Verdict | None:
    """Messages whose time is latency. One with a shorter message before it is measured against that."""
    shorter = any(r.bytes < view.thresholds.small_copy_bytes for r in view.alike("bytes"))
    t = view.thresholds
    enough = t.small_copy_bytes if shorter else t.small_message_bytes
    return copies.small_message(view) if copies.is_small(view, enough) else None


def network_within_one_host(view: View) -> Verdict | None:
    """Ranks of one host that were made to talk over the network: as with gloo there is no honest ceiling."""
    result = view.result
    limit = result.limits.now if result.limits else None
    if result.transport != "net" or not result.gpus or limit is not None:
        return None
    return say("correct", *levels.spread_note(view), measured=view.measured)


def tuned(view: View) -> Verdict | None:
    """A setting gives far more than NCCL's own choice: tuning, not hardware."""
    result = view.result
    plain = [r.bandwidth for r in view.alike("tuning") if r.tuning is None and r.bandwidth]
    if result.tuning is None or result.bandwidth is None or not plain:
        return None
    if result.bandwidth < view.thresholds.tuning_gain * plain[-1]:
        return None
    return say(
        "tuning_helps",
        who=view.who,
        setting=result.tuning,
        measured=view.measured,
        untuned=format_bandwidth(plain[-1]),
        size=format_bytes(result.bytes),
    )


def below_limit(view: View) -> Verdict | None:
    """Slow although the links below are in order: tuning first."""
    return levels.slow_because(view, "collective_below_limit", "collective_below_limit")
