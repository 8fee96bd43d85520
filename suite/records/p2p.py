"""NVML's answers about peer-to-peer access, in words. Source: nvml.h, nvmlGpuP2PStatus_t; the short forms are
those of `nvidia-smi topo -p2p`."""

from __future__ import annotations

MEANINGS: dict[str, str] = {
    "OK": "peer-to-peer access works",
    "CNS": "the chipset or processor does not support peer-to-peer access between these slots",
    "GNS": "the GPU or its driver does not support peer-to-peer access (GeForce cards do not)",
    "TNS": "the topology does not support it: the GPUs hang below different I/O hubs",
    "DR": "peer-to-peer access is disabled by a driver option (registry key)",
    "NS": "peer-to-peer access is not supported between these GPUs",
    "U": "the driver does not know",
}


def meaning(status: str | None) -> str:
    """A status of GpuPair in words; also for None (not answered) and for words that a later driver may bring."""
    if status is None:
        return "the driver did not answer"
    return MEANINGS.get(status, f"the driver answers {status!r}, which this version does not know")
