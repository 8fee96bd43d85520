"""Causes that peer copies and collectives show."""

from __future__ import annotations

from suite.judge.cause import Cause

PEERS: tuple[Cause, ...] = (
    Cause(
        "p2p_unavailable",
        "UNAVAILABLE",
        "the driver says that the two GPUs cannot reach each other's memory",
        "no P2P ({why}); copies between these GPUs go through host memory.",
        "By design (GNS, on GeForce): nothing is wrong. By driver (DR, NS): a driver that supports P2P on this card, "
        "without the option that disables it, and MIG off. By topology (TNS, CNS): slots below one switch or root "
        "complex.",
        "`nvidia-smi topo -p2p r`.",
    ),
    Cause(
        "p2p_redirected",
        "FAIL",
        "peer copies are slow, and ACS redirects peer traffic to the root complex on their path, or within one "
        "switch or host bridge the IOMMU translates it",
        "{who}: peer copies reach {measured} of {limit}; {redirected}.",
        "Switch ACS off on those ports (BIOS ACS Disabled, or `setpci -s PORT ECAP_ACS+6.w=0000`), or the "
        "IOMMU to `iommu=pt`.",
        "`lspci -vvv`: ACSCtl without ReqRedir, CmpltRedir and UpstreamFwd; the rate rises.",
    ),
    Cause(
        "p2p_slower_than_staging",
        "FAIL",
        "peer copies within one switch or host bridge are slower than copies staged through host memory",
        "{who}: peer copies reach {measured}, staged through host memory {staged}: ACS redirect or the IOMMU "
        "is suspected{hint}.",
        "Switch ACS off (BIOS, or `setpci -s PORT ECAP_ACS+6.w=0000` on every switch port), boot with "
        "`iommu=pt` or VT-d/AMD-Vi "
        "off; until then set NCCL_P2P_DISABLE=1.",
        "`lspci -vvv | grep ACSCtl` and `dmesg | grep -i iommu`; peer copies faster than staged ones afterwards.",
    ),
    Cause(
        "nvlink_slow",
        "FAIL",
        "peer copies over NVLink are far below what the active links carry",
        "{who}: peer copies over NVLink reach {measured}, {percent} of the {limit} that {path} can carry.",
        "Read `nvidia-smi nvlink -e` (errors) and `-s` (speed of each link), on SXM boards the fabric manager's log; "
        "reseat the bridge, reset the GPUs.",
        "Error counters that rise while the copies run; the rate after a reset.",
    ),
    Cause(
        "p2p_far",
        "WARN",
        "peer copies across host bridges or NUMA nodes are slower than staged ones, which is common",
        "{who} ({where}): peer copies reach {measured}, staged {staged}; NCCL does not use P2P on such a "
        "path by default.",
        "No fault in itself: keep NCCL's default (do not set NCCL_P2P_LEVEL=SYS), or place ranks that communicate much "
        "below one switch.",
        "NCCL_DEBUG=INFO's lines 'via': SHM between these GPUs, and allreduce no slower than with P2P forced.",
    ),
    Cause(
        "driver_staging",
        "PASS",
        "copies that the driver stages through host memory are below what the path carries, as they are everywhere",
        "{who}: staged by the driver, {measured} is {percent} of the {limit} that {path} can carry.",
        "Nothing: it is the driver's way of copying without P2P, not the path. Staging of one's own in double-buffered "
        "chunks can be faster: see the cases of host_staging.",
        "The staging cases of the same two GPUs.",
    ),
    Cause(
        "transport_unexpected",
        "WARN",
        "NCCL took another transport than was asked for, or none of the peer paths that this machine has",
        "{who}: NCCL took {taken}, expected {expected}.",
        "Read NCCL_DEBUG=INFO's lines 'via'; check NCCL_P2P_LEVEL and NCCL_P2P_DISABLE, ACS and the IOMMU, "
        "and in containers "
        "/dev/shm and shared PID and IPC namespaces.",
        "The log names the expected transport.",
    ),
    Cause(
        "tuning_helps",
        "PASS",
        "one of NCCL's settings gives far more bus bandwidth than NCCL's own choice",
        "{who}: {setting} gives {measured} at {size}, NCCL's own choice {untuned}: tuning, not hardware.",
        "Set it for your jobs: docs/allreduce.md says which variable each name sets.",
        "The untuned and the tuned row, side by side.",
    ),
    Cause(
        "collective_below_limit",
        "WARN",
        "a collective is far below its limit while the links and peer copies below it are in order",
        "{who}: bus bandwidth {measured} is {percent} of the {limit} that {path} can carry; the links are in order.",
        "Tune before blaming hardware: NCCL_MIN_NCHANNELS=8, NCCL_P2P_LEVEL=SYS, NCCL_BUFFSIZE=8388608, one at a time.",
        "A tuned row that comes near the limit.",
    ),
    Cause(
        "collective_latency",
        "WARN",
        "a small collective takes more than twice as long as on machines in order with as many ranks",
        "{who}: {measured} for {size} over {transport}; {ranks} take {usual} at most on machines in order.",
        "Set the CPU governor to performance, C-states and ASPM off in the BIOS, pin ranks to their GPU's NUMA node; "
        "in a container check CPU limits (`--cpus`).",
        "The time after each change; equal times on every transport point at the CPU, not at a link.",
    ),
)
