"""NVLink: bytes per second and direction between two GPUs, or out of one, from the links that are there."""

from __future__ import annotations

from dataclasses import dataclass

from suite.limits import gpus
from suite.records.machine import Gpu, Machine, NvLink

# GB/s per link and direction by NVML's NVLink version. Version 3 is also GA102's, at 14.0625: the table of GPUs first.
# Sources: NVIDIA Tesla P100 (20), V100 (25), A100 (25), H100 (25, of 26.56 signalled), HGX B200 (50) datasheets.
RATE_BY_VERSION: dict[int, float] = {1: 20e9, 2: 25e9, 3: 25e9, 4: 25e9, 5: 50e9}


@dataclass(frozen=True)
class NvBound:
    """What NVLink carries each way. count: links; rate: of one; switched: through NVSwitch, else a direct bond."""

    capacity: float
    count: int
    rate: float
    switched: bool
    source: str

    @property
    def words(self) -> str:
        """'18 NVLinks of 25.0 GB/s through NVSwitch'."""
        how = "through NVSwitch" if self.switched else "directly"
        return f"{self.count} NVLinks of {self.rate / 1e9:.4g} GB/s {how}"


def out_of(gpu: Gpu) -> NvBound | None:
    """All active links of one GPU to GPUs and switches; None where there are none or their rate is not known."""
    links = [link for link in gpu.nvlinks if link.active and link.remote != "cpu"]
    return _bound(gpu, links, any(link.remote == "switch" for link in links))


def between(machine: Machine, one: int, other: int) -> NvBound | None:
    """Two GPUs: all links of one through a switch, else the links of their bond. None where there are none."""
    gpu, peer = machine.gpu(one), machine.gpu(other)
    if gpu is None or peer is None or one == other:
        return None
    near, far = out_of(gpu), out_of(peer)
    if near and far and near.switched and far.switched:
        return near if near.capacity <= far.capacity else far
    bond = [link for link in gpu.nvlinks if link.active and link.remote_address not in (None, "")]
    bond = [link for link in bond if link.remote_address == peer.address]
    if bond:
        return _bound(gpu, bond, False)
    pair = machine.pair(one, other)
    return _counted(gpu, pair.nvlinks) if pair and pair.nvlinks else None


def _bound(gpu: Gpu, links: list[NvLink], switched: bool) -> NvBound | None:
    """NVML's own rates where every link has one; else version or part, times the number of links."""
    rates = [link.rate for link in links if link.rate]
    if links and len(rates) == len(links):
        return NvBound(sum(rates), len(links), sum(rates) / len(links), switched, "rate of each link as NVML gives it")
    version = next((link.version for link in links if link.version), None)
    found = _rate(gpu, version)
    if not links or found is None:
        return None
    return NvBound(found[0] * len(links), len(links), found[0], switched, found[1])


def _counted(gpu: Gpu, count: int) -> NvBound | None:
    """A bond of which only the number of links is known."""
    found = _rate(gpu, next((link.version for link in gpu.nvlinks if link.version), None))
    switched = any(link.remote == "switch" for link in gpu.nvlinks)
    return NvBound(found[0] * count, count, found[0], switched, found[1]) if found else None


def _rate(gpu: Gpu, version: int | None) -> tuple[float, str] | None:
    """(bytes per second and link, source). The table first: version 3 links of GA102 are slower than A100's."""
    part = gpus.part(gpu)
    if part is not None and part.nvlink_rate:
        return part.nvlink_rate, part.source
    if version in RATE_BY_VERSION:
        return RATE_BY_VERSION[version], f"NVLink version {version}, NVIDIA datasheets"
    return None
