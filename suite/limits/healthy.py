"""What healthy machines reach, as fractions of the hard ceiling of their engine, each with its source.

The table explains a result ("expected 0.89 to 0.98"); it is small and will grow. Verdicts must not hang on it alone:
their thresholds have to hold for a healthy machine anywhere in 0.80 to 0.97 of its ceiling.
"""

from __future__ import annotations

from dataclasses import dataclass

# Any engine, operation and generation that has no row of its own: the span of all rows of copies with the host.
ANYWHERE = (0.80, 0.97)


@dataclass(frozen=True)
class Healthy:
    """Fractions of the ceiling from `low` to `high`, for large (64 MiB and more), pinned copies."""

    operation: str
    engine: str
    gen: int | None
    low: float
    high: float
    source: str

    def of(self, ceiling: float) -> tuple[float, float]:
        """The range below a ceiling, in its unit."""
        return self.low * ceiling, self.high * ceiling


HEALTHY: tuple[Healthy, ...] = (
    Healthy("host_to_device", "copy-engine", 3, 0.80, 0.90, "P100, Gen3 x16, near node: 0.83 to 0.87"),
    Healthy("device_to_host", "copy-engine", 3, 0.86, 0.96, "P100, Gen3 x16, near node: 0.89 to 0.94"),
    Healthy("host_to_device", "copy-engine", 4, 0.80, 0.93, "RTX 4090: 0.82 to 0.90; A100, 1,939 nodes: 0.89"),
    Healthy("device_to_host", "copy-engine", 4, 0.87, 0.97, "RTX 4090: 0.91 to 0.94; A100, 1,939 nodes: 0.90"),
    Healthy("host_to_device", "copy-engine", 5, 0.90, 0.98, "H200 in a VM: 0.94 to 0.95; RTX 5090: 0.96"),
    Healthy("device_to_host", "copy-engine", 5, 0.92, 1.00, "H200 in a VM: 0.96; RTX 5090: 0.995"),
    Healthy("both_ways", "copy-engine", 5, 0.80, 0.92, "H200 in a VM: sum 0.84 to 0.88"),
    Healthy("device_to_host", "sm", 5, 0.90, 1.00, "H200 in a VM: 52.6 of 53.07 GB/s"),
    Healthy("host_to_device", "sm", 5, 0.88, 0.98, "H200 in a VM: 51.1 of 54.50 GB/s"),
    Healthy("both_ways", "sm", 5, 0.86, 0.97, "H200 in a VM: 42.4 of 45.83 GB/s each way"),
    Healthy("allreduce", "nvls", None, 0.65, 0.75, "8 × H100 SXM on NVSwitch: busbw 470 of 700 GB/s at 2 GiB"),
    Healthy(
        "allreduce", "nvlink ring", None, 0.55, 0.85, "2 H200 in a VM, NVLS off: 0.55 to 0.68 from 64 MiB to 1 GiB"
    ),
    Healthy("allreduce", "shm ring", None, 0.58, 0.90, "2 H200 in a VM: busbw 27.0 to 27.7 of 45.8 GB/s"),
    Healthy("peer_nvlink", "sm", None, 0.72, 0.85, "2 H200 in a VM: one way 0.74 to 0.78, both ways 0.73 to 0.76"),
    # Measured against payloads of 128 bytes; at an MPS of 256 these fractions are 0.92 of that.
    Healthy("peer_near", "copy-engine", None, 0.80, 1.00, "RTX A6000, one socket: 0.99 of the 128-byte model"),
    Healthy("peer_far", "copy-engine", None, 0.62, 0.92, "EPYC Genoa 0.68 to 0.72, RTX A6000 0.82 to 0.86, Turin 0.91"),
    Healthy("peer_far", "sm", None, 0.62, 1.00, "as by copy engines, whose ceiling is higher: the same least, or more"),
)


# What one operation takes on machines in order, in words: figures by operation, engine and P2P. Not limits: a machine
# in order may take longer than any that is known.
LATENCIES: dict[str, str] = {
    "copy": (
        "Healthy machines copy a few bytes in 6 to 31 µs from launch to completion (H200 in a VM 7.7 to the GPU, 8.4 "
        "to the host; cudaMemcpy 6 to 7 in GDRCopy's README; RTX 5090 31, imp issue 1654)."
    ),
    "staged": (
        "Healthy machines take 11 to 25 µs on the device for a few bytes that the driver stages "
        "(p2pBandwidthLatencyTest, P2P=Disabled: cuda-samples issue 230, DistServe issue 3), and the launch and the "
        "wait on top."
    ),
    "direct": (
        "Healthy machines take 1.8 to 3 µs on the device for a few bytes that go directly (p2pBandwidthLatencyTest, "
        "P2P=Enabled, NVLink: cuda-samples issue 230, nccl-tests issue 123), and the launch and the wait on top."
    ),
    "load": (
        "Healthy machines load from host memory in 0.59 to 1.32 µs (nvbandwidth's host_device_latency_sm: GB200 0.59; "
        "H200 1.19 near, 1.32 across sockets; H200 in a VM 1.18 to 1.23)."
    ),
    "peer_load": (
        "Over NVLink a load from a peer takes 0.8 to 1.7 µs (nvbandwidth's device_to_device_latency_sm: GB200 1.73, "
        "eight GPUs of one host 0.82 to 0.83). Over PCIe one figure is known (p2pmark: 4.1 µs): too few to judge by."
    ),
    "flag": (
        "Measured one way: 0.79 µs over NVLink, 1.86 µs through host memory (2 H200 in a VM); NCCL's model of a hop "
        "assumes 0.6 µs over NVLink and 1.0 µs over PCIe (NCCL issue 1334)."
    ),
}


def latency(operation: str, engine: str | None, p2p: bool | None) -> str:
    """What a latency case takes on healthy machines, in a sentence with its sources."""
    if operation == "peer_flag_latency":
        return LATENCIES["flag"]
    if operation == "host_device_load_latency":
        return LATENCIES["load"]
    if operation != "peer_latency":
        return LATENCIES["copy"]
    if engine == "load-store":
        return LATENCIES["peer_load"]
    return LATENCIES["staged" if p2p is False else "direct"]


def expected(operation: str, engine: str, gen: int | None) -> Healthy:
    """The row for an operation, an engine and a generation; the span of all rows where there is none."""
    rows = [row for row in HEALTHY if (row.operation, row.engine) == (operation, engine)]
    span = Healthy(operation, engine, gen, *ANYWHERE, "no machine of this kind in the table: the span of all others")
    return next((row for row in rows if row.gen in (gen, None)), span)
