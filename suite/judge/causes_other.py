"""Causes of cases in order, of cases that failed outright, and of the machine as a whole."""

from __future__ import annotations

from suite.judge.cause import Cause

NEUTRAL: tuple[Cause, ...] = (
    Cause("healthy", "PASS", "the case reaches what healthy machines reach", "{sentence}"),
    Cause(
        "correct",
        "PASS",
        "the values are right, and there is no honest limit to compare with (gloo, or NCCL's network within one host)",
        "{measured}, values right; this path has no limit to compare with.",
    ),
    Cause(
        "small_message",
        "PASS",
        "the case is too small for bandwidth to say anything of the path",
        "{latency} an operation of {size}: its start takes a share of that, and bandwidth says little at this size.",
    ),
    Cause(
        "functional_only",
        "PASS",
        "several ranks share one GPU, so that no link is used",
        "{measured}, values right; {ranks} share {who}, so that no link is measured.",
    ),
    Cause("not_sampled", "NOT_SAMPLED", "another case stands for this one", "represented by {other}."),
    Cause("unavailable", "UNAVAILABLE", "this cannot be measured here", "{why}"),
    Cause(
        "not_measured",
        "INDETERMINATE",
        "the engine answered without samples and without an error",
        "nothing was measured.",
        "Run the case again with `--deadline 120`; if it stays empty, report it.",
        "Samples in the run file.",
    ),
)

FAILURES: tuple[Cause, ...] = (
    Cause(
        "wrong_data",
        "FAIL",
        "the bytes that arrived are not those that were sent",
        "{who}: wrong data: {wrong}. The bandwidth of wrong bytes is not shown.",
        "Do not use this path{p2p_off}: switch ACS redirect and the IOMMU's translation off (`iommu=pt`), update "
        "driver and BIOS, run `dmesg | grep -iE 'xid|aer|iommu'`.",
        "The same case right with P2P off, or with `iommu=pt`.",
    ),
    Cause(
        "hang",
        "FAIL",
        "there was no answer within the deadline",
        "{who}: no answer: {message}",
        "Boot with `iommu=pt` (or VT-d/AMD-Vi off), switch ACS off on the switch ports{then_p2p_off}; in a container "
        "give it `--shm-size=1g --ipc=host`; look for Xid lines in `dmesg`.",
        "The case ends with NCCL_P2P_DISABLE=1 (IOMMU or ACS) or with a larger /dev/shm (container).",
    ),
    Cause(
        "host_hang",
        "FAIL",
        "gloo's ranks, which use processors and host memory alone, did not answer within the deadline",
        "{who}: no answer: {message}",
        "Run fewer ranks than CPUs that this process may use (`taskset -p $$`, the container's CPU quota), and see "
        "that memory for all of them is free (`free -m`); if the ranks only start slowly, use `--deadline 300`.",
        "The case ends with fewer ranks, or with a longer deadline.",
    ),
    Cause(
        "crash",
        "FAIL",
        "the worker process ended in the middle of the case",
        "{who}: the worker ended: {message}",
        "Look at `dmesg` for Xid, out-of-memory and segfault lines; in a container raise /dev/shm and `ulimit -l`.",
        "The line in dmesg that carries the worker's process id.",
    ),
    Cause(
        "worker_error",
        "FAIL",
        "the worker answered with an error",
        "{who}: {message}",
        "Read the error: out of memory, `ulimit -l`, /dev/shm and missing capabilities are the usual ones; "
        "`lanecheck probe` shows them.",
        "The case alone: `pytest benchmarks/ -k CASE`.",
    ),
)

MACHINE: tuple[Cause, ...] = (
    Cause(
        "numa_not_as_expected",
        "FAIL",
        "a GPU is on another NUMA node than the manifest (`--expect`) says, or is not there",
        "{who}: {found}, the manifest expects {expected}.",
        "Check the slot, and NPS or SNC in the BIOS: they number the nodes. If the manifest is wrong, correct it.",
        "`/sys/bus/pci/devices/…/numa_node`.",
    ),
    Cause(
        "nvlink_no_bridge",
        "PASS",
        "the GPUs have NVLink connectors and no link is active",
        "{who}: NVLink-capable, no bridge fitted; peer traffic goes over PCIe.",
        "Fit an NVLink bridge if the slots' spacing allows it.",
        "`nvidia-smi nvlink -s` shows active links.",
    ),
    Cause(
        "nvlink_partly_down",
        "WARN",
        "some NVLinks of a GPU are active and others are not, while an equal GPU has more",
        "{who}: {active} of {links} NVLinks are active, {other} on {sibling}.",
        "Reseat the bridge; on SXM boards read `nvidia-smi nvlink -e` and the fabric manager's log.",
        "`nvidia-smi nvlink -s` after a reset of the GPUs.",
    ),
    Cause(
        "small_bar1",
        "WARN",
        "BAR1 is far smaller than the GPU's memory",
        "{who}: BAR1 maps {bar1} of {memory}: P2P and host mappings are limited by it.",
        "Switch on Above 4G Decoding and Resizable BAR in the BIOS; some cards need a VBIOS update.",
        "`nvidia-smi -q -d MEMORY`: BAR1 as large as the memory.",
    ),
    Cause(
        "acs_redirect",
        "WARN",
        "ACS redirects peer traffic upstream on switch ports between GPUs",
        "ACS redirects peer traffic at {ports}: peer copies go through the root complex.",
        "Switch ACS off in the BIOS unless GPUs are passed through to virtual machines; `setpci -s PORT "
        "ECAP_ACS+6.w=0000`.",
        "`lspci -vvv`: ACSCtl.",
    ),
    Cause(
        "small_shm",
        "WARN",
        "/dev/shm is too small for the collectives' buffers",
        "/dev/shm has {shm}: NCCL and gloo may hang or fail.",
        "Start the container with `--shm-size=1g` or `--ipc=host`.",
        "`df /dev/shm`.",
    ),
    Cause(
        "small_memlock",
        "WARN",
        "little memory may be locked",
        "only {memlock} may be locked: pinned buffers may be refused.",
        "Raise it: `ulimit -l unlimited`, in a container `--ulimit memlock=-1`.",
        "`ulimit -l`.",
    ),
    Cause(
        "resident_process",
        "PASS",
        "a program holds memory on the GPU without using it",
        "{who}: idle with a resident process ({memory} held).",
        "Nothing is wrong; it leaves less memory to test with.",
    ),
)
