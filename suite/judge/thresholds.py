"""Every number that a verdict turns on, with its reason and its source: the table of docs/verdicts.md."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

from suite.errors import PlanError
from suite.units import KIB, MIB


def _threshold(default: Any, unit: str, reason: str, source: str) -> Any:
    return field(default=default, metadata={"unit": unit, "reason": reason, "source": source})


@dataclass(frozen=True)
class Thresholds:
    """What the rules compare with, fractions of 1. To override some: `of`."""

    above_ceiling: float = _threshold(
        1.02,
        "of the hard ceiling",
        "a clock and a count of bytes cannot err by more; above it the model, the units or the link state are wrong",
        "event resolution of 0.5 µs on samples of 100 µs or more: 1 % at the worst, doubled",
    )
    utilisation: float = _threshold(
        1.01,
        "of one direction of the link",
        "both ways at once is a region: neither direction can carry more than its line rate",
        "Neugebauer et al., SIGCOMM 2018, section 3: the model of both directions",
    )
    healthy_fraction: float = _threshold(
        0.80,
        "of the hard ceiling",
        "the least that healthy machines reach with pinned memory and large copies",
        "P100 Gen3 0.83 to 0.94, A100 Gen4 0.89 to 0.90, RTX 4090 0.82 to 0.94, H200 0.94 to 0.96",
    )
    margin: float = _threshold(
        0.08,
        "of the healthy fraction",
        "a median of five samples with 3 % noise stays within it",
        "a median of n samples errs by 1.25 × noise / sqrt(n): 1.7 %; this is nearly five of those",
    )
    fail_fraction: float = _threshold(
        0.87,
        "of the least that passes",
        "between the two a machine is slow (WARN); below it no healthy machine was seen (FAIL)",
        "0.80 × 0.92 × 0.87 = 0.64: half-width and one generation down (0.5) stay below at any efficiency",
    )
    link_bound: float = _threshold(
        0.95,
        "of what both ends support",
        "below it the link's state, not rounding, lowers the ceiling",
        "neighbouring link states differ by a third or more (x16 to x12); MPS changes give up to 12 %, on "
        "both ceilings",
    )
    far_warn: float = _threshold(
        0.70,
        "of the near node's bandwidth",
        "a far node costs this much on healthy machines",
        "cross-socket fractions: EPYC Genoa 0.68 to 0.72 (peer copies), RTX A6000 0.83 to 0.86, EPYC Turin 0.91",
    )
    far_fail: float = _threshold(
        0.50,
        "of the near node's bandwidth",
        "a far node that halves the rate is limited by settings or faults, not by distance",
        "gearshifft issue 82: 0.31 and 0.20 with a fault; healthy pairs above 0.68",
    )
    memory_bore: float = _threshold(
        0.90,
        "of what the same node's memory bore for another copy",
        "a copy below it is not held back by that memory",
        "chosen by lanecheck: two medians with 3 % noise differ by less",
    )
    as_its_parts: float = _threshold(
        0.85,
        "of the slowest plain copy on the way",
        "a copy between GPUs that is as fast as that one, or its inverse, has the same cause and no second one",
        "chosen by lanecheck: chunks and flags cost up to 15 %",
    )
    memory_far_warn: float = _threshold(
        0.25,
        "of the near copy of host memory",
        "copies across sockets share the socket link with write-allocate traffic; they keep more than this",
        "chosen by lanecheck: UPI and xGMI carry at least a quarter of a socket's memory bandwidth",
    )
    memory_sibling_warn: float = _threshold(
        0.70,
        "of the fastest equal node's near copy",
        "equal nodes with equal modules differ by a few percent; a missing channel costs 1/8 to 1/2",
        "chosen by lanecheck",
    )
    sibling_fraction: float = _threshold(
        0.80,
        "of an equal GPU's bandwidth",
        "equal GPUs on equal paths differ by noise only",
        "A100 fleet of 1,939 nodes: 0.89 to 0.90 of the ceiling throughout",
    )
    both_ways_gain: float = _threshold(
        1.25,
        "times the faster single direction",
        "two copy engines reach 1.6 to 1.9 times one direction; one engine, or a choked root complex, about 1",
        "H200: 101.6 GB/s both ways against 55.5 GB/s one way (1.83)",
    )
    weak_direction: float = _threshold(
        0.70,
        "of the other direction",
        "framing makes the directions differ by a few percent only",
        "P100 12.7 against 13.5 GB/s, RTX 4090 26.4 against 27.1 GB/s",
    )
    staging_gain: float = _threshold(
        1.10,
        "times the peer copy",
        "staging crosses every link that a peer copy crosses, and more; it is not faster on a path in order",
        "the ratio of two medians of five samples with 3 % noise errs by 2.4 %: four of those, as a machine has many "
        "pairs",
    )
    driver_staging: float = _threshold(
        0.40,
        "of the path's ceiling",
        "without P2P the driver copies through host memory in its own way, which fills part of the path only",
        "2 H200 in a VM, driver 580.159.04, this project's run: 0.62 one way, 0.54 both ways",
    )
    memory_kind: float = _threshold(
        1.10,
        "times the other kind of host memory",
        "page-locked memory is page-locked memory, however it was made; an IOMMU that translates makes a difference",
        "H200: cudaHostAlloc within 0.5 % of registered memory one way, within 7 % both ways",
    )
    chunk_seconds: float = _threshold(
        100e-6,
        "seconds that a chunk takes at the ceiling",
        "handing a chunk from one copy engine to the other costs 5 to 10 µs: a share of anything shorter",
        "H200: chunks of 1 MiB take 29 µs each, 18 µs at the ceiling",
    )
    latency_family: float = _threshold(
        2.0,
        "times an equal path's latency",
        "equal paths differ by tens of percent, not by a factor",
        "chosen by lanecheck",
    )
    latency_copy_s: float = _threshold(
        100e-6,
        "seconds for a few bytes copied, from launch to completion",
        "three times the slowest machine of which a figure is known; most of it is the driver and the processor",
        "H200 in a VM 7.7 and 8.4 µs (this project's run); cudaMemcpy 6 to 7 µs (GDRCopy's README); RTX 5090 31 µs "
        "(imp issue 1654); between GPUs without P2P 11 to 25 µs on the device (cuda-samples issue 230, DistServe "
        "issue 3)",
    )
    latency_load_s: float = _threshold(
        5e-6,
        "seconds for one load from host memory, or from a peer's over NVLink",
        "nearly three times the slowest machine of which a figure is known",
        "nvbandwidth's host_device_latency_sm: H200 1.19 µs, across sockets 1.32 µs (Google's guide to A3 Ultra), "
        "GB200 0.59 µs (Oracle's guide); its device_to_device_latency_sm over NVLink: GB200 1.73 µs (the same guide)",
    )
    latency_flag_s: float = _threshold(
        10e-6,
        "seconds for one way of a flag between two GPUs",
        "five times the slower of the two paths that were measured",
        "2 H200 in a VM, this project's run: 0.79 µs over NVLink, 1.86 µs through host memory; NCCL's own model of a "
        "hop: 0.6 µs over NVLink, 1.0 µs over PCIe (NCCL issue 1334)",
    )
    together: float = _threshold(
        0.80,
        "of what the GPUs reach one at a time, in sum",
        "GPUs below different root ports do not slow each other down, unless what is above the ports is full",
        "chosen by lanecheck: the same as for equal GPUs",
    )
    message_nvlink_s: float = _threshold(
        22e-6,
        "seconds, two ranks over NVLink",
        "what a small allreduce takes on machines in order; more ranks take log2(ranks) times as long",
        "NCCL over NVLink: 6 to 10 µs; graphs on 2 H200 in a VM: 11 to 22 µs",
    )
    message_pcie_s: float = _threshold(
        25e-6,
        "seconds, two ranks over PCIe",
        "what a small allreduce takes on machines in order; more ranks take log2(ranks) times as long",
        "NCCL over PCIe: 12 to 25 µs",
    )
    message_launch_s: float = _threshold(
        30e-6,
        "seconds more for an eager call",
        "torch launches one call after the other from Python, which takes longer than a small message; replayed graphs "
        "do not pay for it",
        "2 H200 with NVLink, a bare torch loop: 24 to 34 µs an eager call",
    )
    tuning_gain: float = _threshold(
        1.25,
        "times the bus bandwidth without the setting",
        "a setting that gives so much more says that the links were not what held the untuned row back",
        "chosen by lanecheck; 8 GPUs on PCIe: 38 to 41 against 22 GB/s with NCCL_MIN_NCHANNELS=8",
    )
    small_copy_bytes: int = _threshold(
        4 * MIB,
        "bytes",
        "below it a copy's start costs a share of its time, so bandwidth says nothing of the path",
        "10 µs of start against 70 µs of transfer at Gen5 x16",
    )
    small_message_bytes: int = _threshold(
        64 * MIB,
        "bytes",
        "a collective with no smaller one before it is judged by bandwidth only from here on",
        "25 µs of latency are 2 % of 64 MiB at 50 GB/s",
    )
    overhead_share: float = _threshold(
        0.10,
        "of the time at the ceiling",
        "where the shortest operation of this kind takes more, size, not the path, sets the bandwidth",
        "keeps the start's share below the margin between healthy and slow",
    )
    spread: float = _threshold(
        0.10,
        "interquartile range over median",
        "samples that differ by more do not bear a FAIL or a WARN",
        "pyperf warns at a standard deviation of 10 %",
    )
    samples: int = _threshold(3, "samples", "fewer have no median that resists one outlier", "a median needs three")
    errors_warn: float = _threshold(
        1.0,
        "correctable errors and replays a second",
        "more than the specification's bit error rate allows",
        "PCI Express: bit error rate 1e-12, at Gen5 x16 (512 Gbit/s) one error in two seconds",
    )
    errors_fail: float = _threshold(
        10.0,
        "correctable errors and replays a second",
        "twenty times what the specification allows: the signal is bad",
        "PCI Express: bit error rate 1e-12; a faulty link in the field counted 210 to 240 a second",
    )
    busy: float = _threshold(
        0.10,
        "GPU utilisation before the run",
        "another program's traffic shares the path; a program that only holds memory does not",
        "chosen by lanecheck",
    )
    bar1_fraction: float = _threshold(
        0.5,
        "of the GPU's memory",
        "peer mappings go through BAR1; without resizable BAR it is 256 MiB",
        "club-3090 issue 734: BAR1 256 MiB on a 24 GiB card",
    )
    shm_bytes: int = _threshold(
        64 * MIB,
        "bytes of /dev/shm",
        "NCCL and gloo put their buffers there; containers start with this little",
        "Docker's default --shm-size",
    )
    memlock_bytes: int = _threshold(
        64 * KIB,
        "bytes that may be locked",
        "pinned buffers count against it",
        "Linux's former default of RLIMIT_MEMLOCK",
    )


DEFAULT = Thresholds()


def parse(lines: Sequence[str]) -> dict[str, float]:
    """Overrides from a settings file, 'name = value' a line. Raises PlanError for what cannot be a threshold."""
    found: dict[str, float] = {}
    for line in lines:
        name, sign, text = (part.strip() for part in line.partition("="))
        if not sign:
            raise PlanError(f"{line!r} sets no threshold: write NAME = VALUE")
        found[name] = _value(name, text)
    return found


def of(overrides: Mapping[str, float]) -> Thresholds:
    """The thresholds with some of them overridden. Names that only a newer lanecheck knows are left out."""
    known = {one.name for one in fields(Thresholds)}
    values: dict[str, Any] = {name: value for name, value in overrides.items() if name in known}
    return replace(DEFAULT, **values)


def _value(name: str, text: str) -> float:
    default = getattr(DEFAULT, name, None)
    if default is None:
        known = ", ".join(one.name for one in fields(Thresholds))
        raise PlanError(f"{name!r} is no threshold: choose from {known}")
    try:
        value = int(text) if isinstance(default, int) else float(text)
    except ValueError as error:
        kind = "whole number" if isinstance(default, int) else "number"
        raise PlanError(f"threshold {name} = {text!r} is not a {kind}") from error
    if not 0 <= value < math.inf:
        raise PlanError(f"threshold {name} = {text!r} must be 0 or more, and finite")
    return value


def table(thresholds: Thresholds) -> Iterator[tuple[str, str, str, str]]:
    """(name, value with unit, reason, source) of every threshold, in the order of definition."""
    for one in fields(thresholds):
        value = getattr(thresholds, one.name)
        shown = f"{value / MIB:g} Mi" if isinstance(value, int) and value >= MIB else f"{value:g}"
        yield one.name, f"{shown} {one.metadata['unit']}", one.metadata["reason"], one.metadata["source"]
