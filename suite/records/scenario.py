"""A simulated machine: what its probe says, and what is physically wrong with it beyond that."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from suite.records.machine import LinkState, Machine

FaultKind = Literal[
    "link_state",  # a hop trains like this under load: address, link
    "hop_capacity",  # a hop carries at most `rate` bytes/s: address, rate
    "node_capacity",  # memory of a node is reached at most at `rate` bytes/s from elsewhere: node, rate
    "node_to_gpu_capacity",  # a GPU and a node: gpu, node, rate
    "outstanding_reads",  # host-to-device reads are bound by `rate` bytes/s: gpu, rate
    "pair_capacity",  # peer traffic between two GPUs: gpu, peer, rate
    "latency",  # every operation of a GPU (or of all) takes `seconds` longer
    "link_errors",  # correctable errors counted per second on a hop: address, rate
    "wrong_bytes",  # data arrive wrong: gpu (and peer, or group)
    "hang",  # no answer
    "crash",  # the worker ends
]


@dataclass(frozen=True)
class Fault:
    """One physical fault. Fields that do not apply are None; a None selector matches everything.

    group: only cases of this group ('host_copy'). rate: bytes per second (link_errors: counts per second).
    """

    kind: FaultKind
    gpu: int | None = None
    peer: int | None = None
    node: int | None = None
    address: str | None = None
    group: str | None = None
    link: LinkState | None = None
    rate: float | None = None
    seconds: float | None = None


@dataclass(frozen=True)
class Scenario:
    """noise: relative standard deviation of a sample. efficiency: fraction of a link's ceiling that transfers reach
    (None: the simulator's own table)."""

    machine: Machine
    faults: tuple[Fault, ...] = ()
    noise: float = 0.01
    seed: int = 1
    efficiency: float | None = None
    title: str | None = None
