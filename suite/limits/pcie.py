"""What a PCIe link can carry, bytes per second and direction, from its generation, width and packet sizes.

Sources: PCI Express Base Specification 1.0 to 7.0 (rates, encodings, flits); Neugebauer et al., "Understanding PCIe
performance for end host networking", SIGCOMM 2018, and its public pcie-model (packet costs). Acknowledgement and
flow-control packets are not charged to the direction of the payload: they travel the other way.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from suite.records.machine import GENERATION_GTS, LinkState

Mover = Literal["copy-engine", "sm"]
Direction = Literal["device_to_host", "host_to_device"]

GENERATIONS: tuple[int, ...] = tuple(GENERATION_GTS)
WIDTHS: tuple[int, ...] = (1, 2, 4, 8, 12, 16, 32)
# PCI Express Base Specification, Device Control register: MPS and MRRS are 128 << n, n = 0 to 5.
PAYLOADS: tuple[int, ...] = (128, 256, 512, 1024, 2048, 4096)
DIRECTIONS: tuple[Direction, ...] = ("device_to_host", "host_to_device")
MOVERS: tuple[Mover, ...] = ("copy-engine", "sm")
# The payload sizes that are computed where the MPS was not read; the middle one is shown.
ASSUMED_MPS: tuple[int, int, int] = (128, 256, 512)
# Read requests and payloads of SM kernels. Inferred: on an H200 SM copies reached 0.99 (device to host), 0.94 (host to
# device) and 0.93 (both ways) of the ceilings that 128 bytes give.
SM_PAYLOAD = 128
# Completions of a root complex that splits at its read completion boundary (PCI Express Base Specification, RCB).
SPLIT_COMPLETION = 64
# Peer packets across an Intel host bridge: NCCL, src/graph/topo.h, INTEL_P2P_OVERHEAD ("cut into 64B").
INTEL_P2P_PAYLOAD = 64
FIRST_FLIT_GENERATION = 6  # from here on links have no other mode
_FLIT = 236 / 256  # 236 bytes of packets in a 256-byte flit; 6 DLP, 8 CRC, 6 FEC (PCI Express 6.0, chapter 4)


@dataclass(frozen=True)
class Overhead:
    """Bytes that one packet costs beside its payload: of a write, of a read request, of a completion."""

    write: int
    request: int
    completion: int


# Framing, sequence number and LCRC (8) + header with a 64-bit address (16) or of a completion (12): pcie-model.
_PACKETS = Overhead(write=24, request=24, completion=20)
# In flit mode framing, sequence and LCRC are the flit's (already in _FLIT): PCI Express 6.0, chapter 4. Header sizes as
# before: inferred, flit-mode headers may carry more.
_FLIT_PACKETS = Overhead(write=16, request=16, completion=12)


@dataclass(frozen=True)
class Traffic:
    """What crosses one link, by the way the data goes (up: towards the host) and by who asks for it.

    Bytes per second, or counts of equal flows. Writes are posted by the sender; reads are asked for by the receiver
    and come as completions. Copies with the host are the device's: device_to_host writes up, host_to_device reads down.
    """

    up_writes: float = 0
    down_writes: float = 0
    up_reads: float = 0
    down_reads: float = 0

    def __add__(self, other: Traffic) -> Traffic:
        return Traffic(
            self.up_writes + other.up_writes,
            self.down_writes + other.down_writes,
            self.up_reads + other.up_reads,
            self.down_reads + other.down_reads,
        )


@dataclass(frozen=True)
class BothWays:
    """Bytes per second of each direction while both run."""

    device_to_host: float
    host_to_device: float

    @property
    def total(self) -> float:
        """Both directions together."""
        return self.device_to_host + self.host_to_device


@dataclass(frozen=True)
class Utilisation:
    """Fraction of the line rate that a pair of rates takes, packets included. Above 1 is impossible."""

    up: float
    down: float

    @property
    def worst(self) -> float:
        """The more loaded direction."""
        return max(self.up, self.down)


def raw(gen: int, width: int, flit: bool | None = None) -> float:
    """Line rate of one direction in bytes per second: GT/s × encoding / 8 × lanes. flit None: from Gen6 on.

    Raises ValueError, with the allowed values, for a generation, width or mode that PCIe does not have.
    """
    efficiency, lanes = encoding(gen, flit), _one_of("width", width, WIDTHS)
    return GENERATION_GTS[gen] * 1e9 * efficiency / 8 * lanes


def encoding(gen: int, flit: bool | None = None) -> float:
    """Share of the bits that are packets: 8b/10b, 128b/130b, and 236 of 256 bytes in flit mode."""
    flits = _FLIT if flit_mode(gen, flit) else 1.0
    if gen >= FIRST_FLIT_GENERATION:
        return flits
    return flits * (128 / 130 if gen >= 3 else 0.8)


def flit_mode(gen: int, flit: bool | None = None) -> bool:
    """Whether a link runs in flit mode: as given, or from Gen6 on. Raises ValueError where Gen6 and later lack it."""
    _one_of("generation", gen, GENERATIONS)
    if flit is False and gen >= FIRST_FLIT_GENERATION:
        raise ValueError(f"Gen{gen} always runs in flit mode: leave flit out, or give a generation from 1 to 5")
    return gen >= FIRST_FLIT_GENERATION if flit is None else flit


def overhead(gen: int, flit: bool | None = None) -> Overhead:
    """What a packet costs beside its payload, bytes."""
    return _FLIT_PACKETS if flit_mode(gen, flit) else _PACKETS


def device_to_host(gen: int, width: int, mps: int, *, flit: bool | None = None, engine: Mover = "copy-engine") -> float:
    """Ceiling of posted writes, bytes per second: C · MPS / (MPS + h_w). Bad values raise ValueError."""
    return share(Traffic(up_writes=1), gen, width, mps, mps, flit=flit, engine=engine)


def host_to_device(
    gen: int, width: int, mps: int, mrrs: int, *, flit: bool | None = None, engine: Mover = "copy-engine"
) -> float:
    """Ceiling of reads, bytes per second: min(C · CS / (CS + h_c), C · MRRS / h_r), CS = min(MPS, MRRS)."""
    return share(Traffic(down_reads=1), gen, width, mps, mrrs, flit=flit, engine=engine)


def both_ways(
    gen: int, width: int, mps: int, mrrs: int, *, flit: bool | None = None, engine: Mover = "copy-engine"
) -> BothWays:
    """One point of the region of what both directions can do at once.

    Copy engines: the corner where host_to_device is at its ceiling and device_to_host takes what is left (the largest
    sum). SM kernels move both directions in step: the point of equal rates.
    """
    if engine == "sm":
        rate = share(Traffic(up_writes=1, down_reads=1), gen, width, mps, mrrs, flit=flit, engine=engine)
        return BothWays(rate, rate)
    read = host_to_device(gen, width, mps, mrrs, flit=flit)
    taken = utilisation(Traffic(down_reads=read), gen, width, mps, mrrs, flit=flit).up
    write = (1 - taken) * raw(gen, width, flit) * mps / (mps + overhead(gen, flit).write)
    return BothWays(write, read)


def share(
    traffic: Traffic,
    gen: int,
    width: int,
    mps: int,
    mrrs: int,
    *,
    flit: bool | None = None,
    engine: Mover = "copy-engine",
    cut: int | None = None,
) -> float:
    """The rate of one flow, bytes per second, where every flow of the traffic (counts) gets the same."""
    return 1.0 / utilisation(traffic, gen, width, mps, mrrs, flit=flit, engine=engine, cut=cut).worst


def utilisation(
    traffic: Traffic,
    gen: int,
    width: int,
    mps: int,
    mrrs: int,
    *,
    flit: bool | None = None,
    engine: Mover = "copy-engine",
    cut: int | None = None,
) -> Utilisation:
    """How full both directions of a link are under a traffic in bytes per second; above 1 cannot be.

    Host copies: u_up = (W(1 + h_w/MPS) + R · h_r/MRRS) / C, u_down = R(1 + h_c/CS) / C. cut: bytes that
    packets are cut to on the way (a hypothesis), None where they are not. Bad values raise ValueError.
    """
    line, cost = raw(gen, width, flit), overhead(gen, flit)
    size, request = min(payload(mps, engine), cut or mps), read_request(mps, mrrs, engine)
    write, completion = 1 + cost.write / size, 1 + cost.completion / min(size, request)
    ask = cost.request / request
    up = traffic.up_writes * write + traffic.up_reads * completion + traffic.down_reads * ask
    down = traffic.down_writes * write + traffic.down_reads * completion + traffic.up_reads * ask
    return Utilisation(up / line, down / line)


def outstanding_bound(tags: int, request_bytes: int, round_trip_s: float) -> float:
    """What `tags` read requests in flight can bring, bytes per second. 32 × 512 B at 600 ns: 27 GB/s.

    A hypothesis for a slow host_to_device: a far node (long round trip) or extended tags switched off (32 tags).
    """
    if tags < 1 or request_bytes < 1 or round_trip_s <= 0:
        raise ValueError("an outstanding-request bound needs at least 1 tag, 1 byte and a round trip above 0 s")
    return tags * request_bytes / round_trip_s


def split_completions(gen: int, width: int, *, flit: bool | None = None) -> float:
    """Reads whose completions the root complex splits at 64 bytes, bytes per second: a hypothesis, not a ceiling."""
    return share(Traffic(down_reads=1), gen, width, 128, 512, flit=flit, cut=SPLIT_COMPLETION)


def peer_across_intel_bridge(gen: int, width: int, *, flit: bool | None = None) -> float:
    """Peer writes that an Intel host bridge cuts into 64-byte packets, bytes per second."""
    return share(Traffic(up_writes=1), gen, width, 128, 512, flit=flit, cut=INTEL_P2P_PAYLOAD)


def payload(mps: int, engine: Mover = "copy-engine") -> int:
    """Bytes in one packet: the MPS for copy engines, at most 128 for SM kernels."""
    size = _one_of("MPS", mps, PAYLOADS)
    return size if _mover(engine) == "copy-engine" else min(SM_PAYLOAD, size)


def read_request(mps: int, mrrs: int, engine: Mover = "copy-engine") -> int:
    """Bytes that one read request asks for: the MRRS for copy engines, at most 128 for SM kernels."""
    size = _one_of("MRRS", mrrs, PAYLOADS)
    return size if _mover(engine) == "copy-engine" else min(SM_PAYLOAD, payload(mps, engine), size)


def by_generation(width: int, operation: Direction, mps: int, engine: Mover = "copy-engine") -> dict[int, float]:
    """Ceiling of every generation at a width, bytes per second (MRRS not below the MPS, as GPUs have it)."""
    if operation not in DIRECTIONS:
        raise ValueError(f"operation {operation!r} is not one of {', '.join(DIRECTIONS)}")
    way = Traffic(up_writes=1) if operation == "device_to_host" else Traffic(down_reads=1)
    return {gen: share(way, gen, width, mps, mps, engine=engine) for gen in GENERATIONS}


def percent_of_generations(
    bandwidth: float, width: int, operation: Direction, mps: int, engine: Mover = "copy-engine"
) -> dict[int, float]:
    """A measured bandwidth as a fraction of the ceiling of every generation at a width."""
    return {gen: bandwidth / ceiling for gen, ceiling in by_generation(width, operation, mps, engine).items()}


def behaves_like(
    bandwidth: float,
    width: int,
    operation: Direction,
    mps: int = 256,
    engine: Mover = "copy-engine",
    healthy: tuple[float, float] = (0.80, 1.01),
) -> LinkState | None:
    """The link of this width that a bandwidth fits ("Gen1 x16"); None where it fits none.

    Where a virtual machine hides the link this is the only evidence. healthy: fractions of a ceiling that are a fit.
    """
    fractions = percent_of_generations(bandwidth, width, operation, mps, engine)
    fit = next((gen for gen, fraction in fractions.items() if healthy[0] <= fraction <= healthy[1]), None)
    return LinkState(GENERATION_GTS[fit], width) if fit is not None else None


def _mover(engine: Mover) -> Mover:
    if engine not in MOVERS:
        raise ValueError(f"engine {engine!r} is not one of {', '.join(MOVERS)}")
    return engine


def _one_of(name: str, value: int, allowed: tuple[int, ...]) -> int:
    """The value, if it is an allowed one. True is no generation, although it equals 1."""
    if isinstance(value, bool) or value not in allowed:
        raise ValueError(f"{name} {value!r} is not one of {', '.join(map(str, allowed))}")
    return value
