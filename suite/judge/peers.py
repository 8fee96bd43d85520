"""Peer copies: whether there is access, whether traffic is redirected, and whether staging is faster."""

from __future__ import annotations

from suite.judge import levels
from suite.judge.view import View, say
from suite.judge.words import where
from suite.records.machine import GpuPair, Machine
from suite.records.p2p import meaning
from suite.records.run import Result, Verdict
from suite.units import format_bandwidth

NEAR = ("PIX", "PXB", "PHB")
_ONE_WAY = ("peer_write", "peer_read")


def no_access(view: View) -> Verdict | None:
    """No samples because NVML says that there is no access: a state of the machine, no fault."""
    if view.result.samples_s:
        return None
    status = _denied(_pair(view))
    return _without(view, status) if status else say("not_measured")


def unavailable(view: View, why: str) -> Verdict:
    """The engine refused the case. Where NVML denies P2P, what that means and what the pair uses instead."""
    result = view.result
    asked = result.operation.startswith("peer_") and result.p2p is not False
    status = _denied(_pair(view)) if asked else None
    return _without(view, status) if status else Verdict("UNAVAILABLE", "unavailable", (why,))


def _without(view: View, status: str) -> Verdict:
    """The first sentence is the same for all pairs, so that a report says it once; the second is this pair's own."""
    staged = max((r.bandwidth or 0.0 for r in view.so_far if _is_staged(r, view.result)), default=0.0)
    instead = f"staged by the driver, {view.who} copies at {format_bandwidth(staged)}" if staged else ""
    return say("p2p_unavailable", instead, why=f"{status}: {meaning(status)}")


def _denied(pair: GpuPair | None) -> str | None:
    """NVML's word for why there is no access; None where there is, or where it does not say."""
    found = [pair.p2p_read, pair.p2p_write] if pair else []
    return next((status for status in found if status not in (None, "OK")), None)


def redirected(view: View) -> Verdict | None:
    """A slow peer copy whose path has ports that redirect peer traffic, or an IOMMU that translates it."""
    if view.result.p2p is False or levels.level(view) not in ("low", "bad"):
        return None
    redirected = _redirected(view)
    if redirected is None:
        return None
    binding = view.result.limits.binding if view.result.limits else None
    return say("p2p_redirected", binding=binding, redirected=redirected, **levels.words(view))


def _redirected(view: View) -> str | None:
    """By what peer traffic is sent up to the root complex. An IOMMU counts where traffic would stay below it."""
    ports = redirecting_ports(view.machine, view.result.gpus)
    if ports:
        return f"ACS redirects them upstream at {', '.join(ports)}"
    pair, iommu = _pair(view), view.machine.environment.iommu or ""
    near = pair is not None and (pair.topology or pair.topology_nvml) in NEAR
    return f"the IOMMU translates them ({iommu})" if near and "DMA" in iommu else None


def nvlink_slow(view: View) -> Verdict | None:
    """Far below what the NVLinks between the two carry: nothing of PCIe explains that."""
    pair = _pair(view)
    if pair is None or not pair.nvlinks or view.result.p2p is False or levels.level(view) != "bad":
        return None
    binding = view.result.limits.binding if view.result.limits else None
    return say("nvlink_slow", *levels.spread_note(view), binding=binding, **levels.words(view))


def staged_by_driver(view: View) -> Verdict | None:
    """P2P off: the driver's own staging uses part of a path in order; far less than that is the path's fault."""
    result, limits = view.result, view.result.limits
    if result.p2p is not False or len(set(result.gpus)) < 2 or limits is None or not limits.now or not result.bandwidth:
        return None
    if levels.level(view) == "ok" or result.bandwidth < view.thresholds.driver_staging * limits.now:
        return None
    return say("driver_staging", *levels.spread_note(view), binding=limits.binding, **levels.words(view))


def slower_than_staging(view: View) -> Verdict | None:
    """A peer copy beside the same copy staged through host memory: a fault within one switch or host bridge only."""
    result = view.result
    if result.p2p is False or result.bandwidth is None or not result.operation.startswith("peer_"):
        return None
    pair = _pair(view)
    near = pair is not None and (pair.topology or pair.topology_nvml) in NEAR
    found = [r for r in view.so_far if _is_staged(r, result) and (r.engine == result.engine or not near)]
    best = max(found, key=lambda r: _for_engine(r, result), default=None)
    if best is None or _for_engine(best, result) < view.thresholds.staging_gain * result.bandwidth:
        return None
    cause = "p2p_slower_than_staging" if near else "p2p_far"
    staged = format_bandwidth(best.bandwidth)
    said = {"who": view.who, "measured": view.measured, "staged": staged, "hint": _hint(view)}
    return say(cause, where=where(view.machine, *result.gpus), **said)


def same_gpu(view: View) -> Verdict | None:
    """Copies within one GPU exercise the code path and no link; memory is their ceiling, where its rate is known."""
    if len(set(view.result.gpus)) > 1 or levels.level(view) not in ("ok", "unknown"):
        return None
    note = "functional-only: one GPU, no link is crossed"
    limits = view.result.limits
    if limits is None or limits.now is None:
        return say("correct", note, measured=view.measured)
    return say("healthy", note, *levels.spread_note(view), binding=limits.binding, sentence=levels.reached(view))


def redirecting_ports(machine: Machine, gpus: tuple[int, ...]) -> list[str]:
    """Ports between these GPUs whose ACS settings send peer traffic upstream: those above all of them do not matter."""
    above = [list(machine.ancestors(gpu.address)) for i in gpus if (gpu := machine.gpu(i)) and gpu.address]
    common = set.intersection(*({f.address for f in one} for one in above)) if above else set()
    ports = (f for one in above for f in one if f.config and f.config.acs_redirect and f.address not in common)
    return list(dict.fromkeys(port.address for port in ports))


def _is_staged(other: Result, result: Result) -> bool:
    """The same way through host memory: a staging case, or the peer copy with access switched off, which is the same
    copy whether the sender writes or the receiver reads. Kernels copy one size only: for them a smaller one will do."""
    size = other.bytes == result.bytes or (other.engine != result.engine and other.bytes < result.bytes)
    same = _way(other) == _way(result) and size and other.verified is not False
    one_way = result.operation in _ONE_WAY
    off = other.p2p is False and (other.operation == result.operation or (one_way and other.operation in _ONE_WAY))
    return same and (off or (one_way and other.operation == "staging"))


def _way(result: Result) -> tuple[int, ...]:
    """The GPUs in the order in which bytes pass them: a reader names itself first."""
    return result.gpus[::-1] if result.operation == "peer_read" else result.gpus


def _for_engine(staged: Result, direct: Result) -> float:
    """What a staged copy lets expect of a direct one, bytes/s. Copy engines stage, with larger packets than a kernel's:
    of a kernel as much less as its ceiling is lower, and nothing where a ceiling is not known."""
    rate = staged.bandwidth or 0.0
    if staged.engine == direct.engine:
        return rate
    most, own = (r.limits.now if r.limits else None for r in (staged, direct))
    return rate * min(1.0, own / most) if most and own else 0.0


def _hint(view: View) -> str:
    found = []
    ports = redirecting_ports(view.machine, view.result.gpus)
    if ports:
        found.append("ACS redirects at " + ", ".join(ports))
    if view.machine.environment.iommu:
        found.append(f"IOMMU: {view.machine.environment.iommu}")
    return f" ({'; '.join(found)})" if found else ""


def _pair(view: View) -> GpuPair | None:
    gpus = view.result.gpus
    return view.machine.pair(*gpus) if len(gpus) == 2 else None
