"""Limits in words: the hop that binds, and how the number follows from it."""

from __future__ import annotations

from suite.limits import pcie
from suite.limits.path import Bound, Demand, Packets
from suite.limits.pcie import Traffic
from suite.records.machine import Basis, LinkState
from suite.units import format_bandwidth

SOURCE = "Source: PCI Express Base Specification; Neugebauer et al., SIGCOMM 2018."
_BASES = {
    "read": "read from the devices",
    "virtualized": "as the virtual machine shows them",
    "assumed": "not read (needs root): 256 assumed, `low` and `high` are for 128 and 512",
}


def link(state: LinkState) -> str:
    """'32 GT/s x16'."""
    return f"{state.speed_gts:g} GT/s x{state.width}"


def binding(bound: Bound, packets: Packets) -> str:
    """The hop that binds: '0000:00:06.0 32 GT/s x16, MPS 256'."""
    return f"{bound.hop.lower} {link(bound.link)}, MPS {packets.mps}"


def derivation(demand: Demand, bound: Bound, packets: Packets, basis: Basis) -> str:
    """The ceiling of one bound, step by step, with its numbers."""
    parts = [line_rate(bound.link, packets.flit), arithmetic(demand, bound, packets)]
    parts.append(f"MPS {packets.mps}, MRRS {packets.mrrs} bytes, {_BASES[basis]}.")
    if packets.engine == "sm":
        parts.append("SM kernels move packets of at most 128 bytes (inferred from measurements).")
    if packets.cut:
        parts.append(f"The host bridge cuts peer packets to {packets.cut} bytes (NCCL, src/graph/topo.h).")
    if bound.unknown:
        parts.append(f"Not known, so not counted: {', '.join(bound.unknown)}.")
    return " ".join(parts)


def line_rate(state: LinkState, flit: bool | None) -> str:
    """'Gen5 x16: 32 GT/s × 128/130 × 16 / 8 = 63.0 GB/s each way.'"""
    gen, width = state.gen or 0, state.width or 0
    flit = flit if gen < pcie.FIRST_FLIT_GENERATION else None
    factors = [] if gen >= pcie.FIRST_FLIT_GENERATION else ["128/130" if gen >= 3 else "8/10"]
    factors += ["236/256"] if pcie.flit_mode(gen, flit) else []
    rate = gigabytes(pcie.raw(gen, width, flit))
    return f"{state}: {state.speed_gts:g} GT/s × {' × '.join(factors)} × {width} / 8 = {rate} each way."


def gigabytes(rate: float) -> str:
    """'58.45 GB/s': limits are shown with the digits that docs/limits.md has."""
    return f"{rate / 1e9:.2f} GB/s" if rate >= 1e8 else format_bandwidth(rate)


def arithmetic(demand: Demand, bound: Bound, packets: Packets) -> str:
    """How the bound's rate follows from its hop's line rate, in one sentence."""
    if bound.note:
        return bound.note
    gen, width = bound.link.gen or 0, bound.link.width or 0
    flit = packets.flit if gen < pcie.FIRST_FLIT_GENERATION else None
    if demand.corner and packets.engine == "copy-engine":
        both = pcie.both_ways(gen, width, packets.mps, packets.mrrs, flit=flit)
        return (
            f"Both ways: host to device at its ceiling of {gigabytes(both.host_to_device)}, and what its requests "
            f"leave for device to host, {gigabytes(both.device_to_host)}: {gigabytes(bound.rate)} in sum."
        )
    way, terms, load = _fuller(bound.traffic, bound.link, flit, packets)
    line = pcie.raw(gen, width, flit)
    one = gigabytes(bound.rate / demand.flows)
    text = f"{way} it carries {' and '.join(terms)}: {gigabytes(line)} / {load * line:.4f} = {one}"
    return text + (f", times {demand.flows} flows = {gigabytes(bound.rate)}." if demand.flows > 1 else ".")


def _fuller(traffic: Traffic, state: LinkState, flit: bool | None, packets: Packets) -> tuple[str, list[str], float]:
    """The more loaded direction of a hop, what takes its room ('1 × (256+20)/256 for completions'), and how much."""
    cost = pcie.overhead(state.gen or 0, flit)
    size = min(pcie.payload(packets.mps, packets.engine), packets.cut or packets.mps)
    request = pcie.read_request(packets.mps, packets.mrrs, packets.engine)
    answer = min(size, request)
    write = f"({size}+{cost.write})/{size} for writes"
    completion = f"({answer}+{cost.completion})/{answer} for completions"
    ask = f"{cost.request}/{request} for read requests"
    up = ((traffic.up_writes, write), (traffic.up_reads, completion), (traffic.down_reads, ask))
    down = ((traffic.down_writes, write), (traffic.down_reads, completion), (traffic.up_reads, ask))
    load = pcie.utilisation(
        traffic,
        state.gen or 0,
        state.width or 0,
        packets.mps,
        packets.mrrs,
        flit=flit,
        engine=packets.engine,
        cut=packets.cut,
    )
    way, chosen = ("Towards the host", up) if load.up >= load.down else ("Away from the host", down)
    return way, [f"{count:g} × {term}" for count, term in chosen if count], load.worst
