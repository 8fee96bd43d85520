"""Causes that host memory copies and host–GPU copies show."""

from __future__ import annotations

from suite.judge.cause import Cause

COPIES: tuple[Cause, ...] = (
    Cause(
        "above_ceiling",
        "INDETERMINATE",
        "more was measured than the link can carry",
        "{measured} is above the ceiling of {limit} ({path}): the model, the units or the link state is wrong.",
        "Run once as root so that MPS, MRRS and the link state are read, and report the machine's `lanecheck "
        "probe --json`.",
        "The ceiling computed from the values in `lspci -vv` as root.",
    ),
    Cause(
        "below_floor",
        "FAIL",
        "the case is below the floor that the manifest (`--expect`) sets for it",
        "{who}: {measured} is below the floor of {floor} that the manifest sets.",
        "Compare with the run that the floor was taken from: `lanecheck compare`. If the floor is wrong, correct it.",
        "The other verdicts of this run: they name what is slow.",
    ),
    Cause(
        "limit_unknown",
        "INDETERMINATE",
        "what the path could carry is not known",
        "{measured} measured; what this path could carry is not known{why}{like}.",
        "{hidden}Compare with the baseline of an equal machine.",
        "A link state, or a baseline.",
    ),
    Cause(
        "link_not_run",
        "INDETERMINATE",
        "what the path could carry is not known, because the link cases, which read the links under load, did not run",
        "{measured} measured; what this path could carry is not known{why}{like}.",
        'Run the link cases too: `-k "link or {group}"`.',
        "The link's state in the link cases of the same run.",
    ),
    Cause(
        "below_equal_gpu",
        "WARN",
        "what the path could carry is not known, and an equal GPU of this machine, as near to its memory, is faster",
        "{who}: {measured} is {percent} of what {sibling}, an equal GPU, reaches in the same case ({other}); what "
        "this path could carry is not known.",
        'Run the link cases too: `-k "link or {group}"`. If they see nothing, swap the two cards: the slow rate '
        "follows the card or the slot.",
        "The links of both GPUs under load.",
    ),
    Cause(
        "mps_assumed",
        "INDETERMINATE",
        "the payload size was not read, and PASS or FAIL depends on it",
        "{measured} is in order for an MPS of 128 bytes (ceiling {low}) but not for 512 ({high}); the MPS "
        "was not read.",
        "Run once as root: `sudo lanecheck probe` reads MPS and MRRS; in a container with `--cap-add SYS_ADMIN`, or "
        "on the host.",
        "`sudo lspci -vv`: DevCtl MaxPayload.",
    ),
    Cause(
        "numa_far_slow",
        "FAIL",
        "copies from this NUMA node reach less than half of what an otherwise equal copy from a nearer node reaches",
        "{who}: {measured} with memory on node {node}, {near} on node {near_node}: {fraction} of it, too "
        "little for distance alone.",
        "Pin the process and its memory to the near node (`numactl --cpunodebind={near_node} "
        "--membind={near_node}`); in the BIOS "
        "check xGMI or UPI link width and speed, NPS or SNC, relaxed ordering and extended tags, C-states "
        "and fabric clocks.",
        "The near node's rate with numactl; UPI or xGMI at full width after the change.",
    ),
    Cause(
        "numa_far_weak",
        "WARN",
        "copies from this NUMA node reach less than a far node costs on healthy machines",
        "{who}: {measured} with memory on node {node}, {near} on node {near_node}: {fraction} of it.",
        "Pin the process and its memory to node {near_node}; check xGMI or UPI width and speed in the BIOS.",
        "The near node's rate with numactl.",
    ),
    Cause(
        "numa_far",
        "PASS",
        "copies from a far node lose no more than distance costs on healthy machines",
        "{who}: {measured} with memory on node {node}, {near} on node {near_node}: {fraction} of it, usual for memory "
        "behind another socket or die.",
        "Nothing is wrong. Pin processes and their memory to the GPU's node where this matters.",
    ),
    Cause(
        "as_its_copies",
        "WARN",
        "staging or a copy between GPUs is as slow as a plain copy on its way, which has a verdict of its own",
        "{who}: {measured}, as {part} reaches {rate}: the cause is said there.",
        "See to that copy first, then measure again.",
        "Both rates rise together.",
    ),
    Cause(
        "as_its_far_copies",
        "PASS",
        "staging or a copy between GPUs is as fast as the plain copies on its way with memory on a far node",
        "{who}: {measured}, as {part} reaches {rate}.",
    ),
    Cause(
        "numa_node_suspect",
        "WARN",
        "a node that should be far is much faster than the one that the system calls near",
        "{who}: node {node} gives {measured}, but node {near_node}, where the system says the GPU is, only {near}.",
        "Link and slot carry it, so they are fine. Place memory on node {node}; ask the vendor for a BIOS that reports "
        "the right proximity (_PXM) of the slot.",
        "`/sys/bus/pci/devices/…/numa_node` against the board's block diagram.",
    ),
    Cause(
        "placement_elsewhere",
        "INDETERMINATE",
        "the buffer was seen on another NUMA node than the one asked for",
        "the buffer was not on node {node}: {detail}",
        "Stop AutoNUMA (`sysctl kernel.numa_balancing=0`), free memory on the node; in a container allow mbind "
        "(`--cap-add SYS_NICE`).",
        "A run in which the placement is proved.",
    ),
    Cause(
        "memory_node_slow",
        "WARN",
        "a NUMA node's own memory copies far slower than that of an equal node",
        "node {node} copies its own memory at {measured}, node {sibling} at {other}.",
        "Check that every memory channel of this socket is populated alike and that all modules run at one speed "
        "(`dmidecode -t memory`).",
        "The missing module in dmidecode; equal rates after it is fitted.",
    ),
    Cause(
        "memory_far_slow",
        "WARN",
        "copies between two NUMA nodes' memories are far slower than within one",
        "memory copies from node {node} to node {target} reach {measured}, within one node {near}.",
        "Check xGMI or UPI link width and speed, NPS or SNC and the memory interleaving in the BIOS.",
        "Full link width in the BIOS or the vendor's tool, and a rate that follows it.",
    ),
    Cause(
        "host_limited",
        "WARN",
        "a copy is slow, and takes most of the traffic that memory on its node bears, measured alone",
        "{who}: {measured} of {limit}; node {node}'s memory itself copies at only {memory}.",
        "Populate every memory channel of that socket, stop other load, set the CPU governor to performance.",
        "The host memory cases rise, and the copies with them.",
    ),
    Cause(
        "one_direction_weak",
        "FAIL",
        "one direction is far below its limit while the other one is in order",
        "{who}: {direction} reaches {measured} of {limit}, the other direction {other}{hint}.",
        "For host_to_device: switch on extended tags and raise MRRS (`setpci`, BIOS), check relaxed ordering "
        "and the IOMMU "
        "(`iommu=pt`); for device_to_host: check write ordering and the root complex's settings.",
        "The rate rises with extended tags on or `iommu=pt`.",
    ),
    Cause(
        "both_ways_collapse",
        "WARN",
        "both directions together carry hardly more than one alone",
        "{who}: both ways together {measured}, the faster direction alone {single}: they do not run at once.",
        "Look at the GPU's copy engines (MIG and vGPU profiles have fewer); check relaxed ordering in the BIOS.",
        "`asyncEngineCount` of 1, or a gain with relaxed ordering.",
    ),
    Cause(
        "not_at_once",
        "INDETERMINATE",
        "both ways were measured, but the opposing copies did not last as long as the measured ones",
        "{who}: {measured} both ways, part of it one way only: the opposing copies ended first, and both at once are "
        "slower.",
        "Stop other load on the GPU and the host, then repeat.",
        "A run without this note.",
    ),
    Cause(
        "pageable",
        "PASS",
        "a copy from or to memory that is not pinned",
        "{who}: {measured} with pageable memory, {worth}.",
        "Pin the buffers that are copied often (cudaHostAlloc, cudaHostRegister; `pin_memory=True` in PyTorch).",
        "The cases with pinned memory of this run.",
    ),
    Cause(
        "memory_kind",
        "PASS",
        "a copy with another kind of page-locked memory, which is as fast as with pinned memory",
        "{who}: {measured} with {kind}, {beside}.",
    ),
    Cause(
        "registered_slow",
        "WARN",
        "copies with memory that was registered page by page are slower than with another kind of page-locked memory",
        "{who}: {measured} with {kind}, only {pinned} with memory registered in pages of 4 KiB: a translating IOMMU "
        "looks up every page.",
        "Boot with `iommu=pt` (on Intel also `intel_iommu=on`), or use huge pages or cudaHostAlloc for large buffers.",
        "Equal rates with `iommu=pt`.",
    ),
    Cause(
        "memory_kind_slow",
        "WARN",
        "copies with a kind of page-locked memory are slower than with pinned memory on the GPU's node",
        "{who}: {measured} with {kind}, {pinned} with pinned memory: {percent} of it, where both should be equal.",
        "Memory from cudaHostAlloc may lie on another NUMA node: run under `numactl --membind`. If that does not help, "
        "a translating IOMMU may treat them differently: boot with `iommu=pt`.",
        "Equal rates under numactl, or with `iommu=pt`.",
    ),
    Cause(
        "one_copy_engine",
        "PASS",
        "both ways at once by a GPU with one copy engine: the directions take turns",
        "{who}: both ways {measured}, serial: this GPU has one copy engine, so the two directions take turns and the "
        "link, which could carry {limit}, is half idle.",
        "Nothing is wrong; MIG and vGPU profiles have fewer copy engines than the whole GPU.",
        "`asyncEngineCount` of 1 in CUDA's deviceQuery.",
    ),
    Cause(
        "staging_chunk",
        "PASS",
        "staging in chunks of this size is slow, which says nothing of the path: smaller ones were in order, or the "
        "chunks are so small that handing them over costs a share of the time",
        "{who}: {measured} in chunks of {chunk}, {percent} of the {limit} that {path} can carry: {why}.",
    ),
    Cause(
        "shared_uplink",
        "PASS",
        "several GPUs at once get what the link that they share can carry, less than each alone",
        "{who} together {measured}: all that {path} carries; each alone got {alone} in sum.",
        "Nothing is wrong. Spread the load over GPUs below different switches or sockets.",
        "GPUs below different root ports run at full rate together.",
    ),
    Cause(
        "as_the_slowest",
        "WARN",
        "all GPUs at once, each moving the same bytes, take as long as the slowest one, which is not in order alone",
        "{who} together {measured} of {limit}: {count} times the {rate} that {slowest} reaches alone, as all move the "
        "same bytes and the last one ends the time.",
        "See to {slowest} first: the cause is said where it copies alone.",
        "The total rises with the rate of {slowest}.",
    ),
    Cause(
        "root_complex_limited",
        "WARN",
        "GPUs that share no link are slow together, and in order one at a time",
        "{who} together {measured} of {limit}; one at a time they reach {alone} in sum and share no link: the root "
        "complex or host memory is full.",
        "Populate every memory channel; in the BIOS check NPS or SNC, preferred I/O, relaxed ordering and fabric "
        "clocks; place each GPU's buffers on its own NUMA node.",
        "The sum rises with buffers on each GPU's own node, or with NPS or SNC changed.",
    ),
    Cause(
        "outlier",
        "FAIL",
        "a GPU is below its limit while an equal GPU of this machine is in order in the same case",
        "{who}: {measured} of {limit}, while {sibling}, an equal GPU, reaches {other}.",
        "Swap the two cards: if the fault stays with the slot, check slot, riser and BIOS; if it follows the "
        "card, the card.",
        "The slow rate follows card or slot.",
    ),
    Cause(
        "slow_path",
        "FAIL",
        "a case is far below its limit and nothing that was seen says why",
        "{who}: {measured} is {percent} of the {limit} that {path} can carry{hint}.",
        "Check the IOMMU (`iommu=pt`), extended tags and relaxed ordering, ASPM and C-states, and the CPU "
        "governor; then the slot.",
        "The rate after each change; `lspci -vv` as root.",
    ),
    Cause(
        "below_expected",
        "WARN",
        "a case is somewhat below what healthy machines reach",
        "{who}: {measured} is {percent} of the {limit} that {path} can carry; healthy machines reach {expected}{hint}.",
        "Check the CPU governor, C-states, ASPM and other load, then repeat.",
        "A rate in the range of healthy machines.",
    ),
    Cause(
        "latency_out_of_family",
        "WARN",
        "a small operation takes more than twice as long as on an equal path of this machine",
        "{who}: {measured} for {size}, {other} on {sibling}.",
        "Check C-states, ASPM and the CPU governor; for one GPU alone, its slot and its interrupts' NUMA node.",
        "Equal latencies with C-states and ASPM off.",
    ),
    Cause(
        "latency_high",
        "WARN",
        "even the fastest sample of a latency case is far above what healthy machines take, on whatever GPU; a load "
        "from another GPU's memory over PCIe is not judged so, as too few figures are public",
        "{who}: {measured} for {what}; more than {most} is unusual for any GPU.",
        "Switch ASPM and C-states off and set the CPU governor to performance; compare outside the virtual machine and "
        "with `iommu=pt`; place memory on the GPU's NUMA node; then count the switches and retimers above the GPU.",
        "A latency within the range after one of these changes, which names the cause.",
    ),
    Cause(
        "noisy",
        "INDETERMINATE",
        "the samples differ too much to call the case slow",
        "{measured} is low for {limit}, but the samples spread by {spread} and the best one is in order ({best}).",
        "Stop other load, set the CPU governor to performance, fix clocks (`nvidia-smi -lgc`), then repeat.",
        "A spread below 10 %.",
    ),
    Cause(
        "too_few_samples",
        "INDETERMINATE",
        "the case looks slow, but has too few samples to say so",
        "{measured} is low for {limit}, from {samples} only.",
        "Repeat with more rounds (`--effort full`).",
        "The same median from five samples or more.",
    ),
    Cause(
        "busy_gpu",
        "INDETERMINATE",
        "the case looks slow, and another program kept the GPU busy before the run",
        "{measured} is low for {limit}, but the GPU was {busy} busy with another program.",
        "Stop the other program (`nvidia-smi` lists it) and repeat.",
        "The same case on an idle GPU.",
    ),
)
