"""What else changes results: virtual machine, container, IOMMU, kernel options, board, limits of this process.

Nothing that names this one machine is read: no serial numbers, UUIDs, addresses or host names.
"""

from __future__ import annotations

import hashlib
import os
import re
import resource
import sys

from suite.probe.tree import Tree, cpu_list
from suite.records.machine import Environment

# Kernel options that change transfers or placement. A list of what is kept, because the rest names disks, hosts and
# networks (root=UUID=…, ip=…).
_OPTIONS = re.compile(
    r"(?:amd_iommu|intel_iommu|iommu(?:\.\w+)?|pci|pcie_\w+|pcie_ports|numa|numa_balancing|isolcpus|nohz_full|rcu_nocbs|"
    r"hugepages|hugepagesz|default_hugepagesz|transparent_hugepage|mitigations|swiotlb|nosmt|nr_cpus|maxcpus|mem|"
    r"memmap|intel_pstate|amd_pstate|cpufreq\.\w+|intel_idle\.\w+|processor\.max_cstate|idle|nvidia[\w-]*\.\w+|"
    r"vfio[\w-]*\.ids|efi|init_on_alloc)(?:=[\w.,:;@+-]*)?"
)
_VARIABLES = re.compile(r"(?:NCCL|CUDA|OMP)_[A-Z0-9_]+")
# Values of these name networks or files of one site.
_NAMING = re.compile(r"SOCKET|HOSTID|COMM_ID|IFNAME|_FILE|PATH|IB_HCA|UUID|VISIBLE_DEVICES")
# An IPv4 address, the start of a UUID, a path.
_NAMING_VALUE = re.compile(r"\d+\.\d+\.\d+\.\d+|[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-|/")
# Substrings of DMI's vendor and product that virtual machines use.
_HYPERVISORS = {
    "qemu": "QEMU",
    "kvm": "KVM",
    "vmware": "VMware",
    "virtualbox": "VirtualBox",
    "xen": "Xen",
    "bochs": "Bochs",
    "amazon ec2": "Amazon EC2",
    "google compute": "Google Compute Engine",
    "openstack": "OpenStack",
    "parallels": "Parallels",
    "virtual machine": "Hyper-V",
    "cloud hypervisor": "Cloud Hypervisor",
}
# What machines without DMI still say. OEM id of the ACPI tables (root may read them): Firecracker's, Cloud Hypervisor's
# and QEMU's sources. Clock source: Linux' arch/x86/kernel/kvmclock.c and drivers/clocksource/hyperv_timer.c.
_ACPI_OEMS = {b"FIRECK": "Firecracker", b"CLOUDH": "Cloud Hypervisor", b"BOCHS ": "QEMU"}
_CLOCKS = {"kvm-clock": "KVM", "hyperv_clocksource_tsc_page": "Hyper-V", "hyperv_clocksource": "Hyper-V"}
_CONTAINERS = ("docker", "kubepods", "lxc", "libpod", "containerd", "podman")
# Numbers of the kernel's first namespaces: Linux' include/linux/proc_ns.h.
_FIRST_NAMESPACES = {"cgroup": 0xEFFFFFFB, "pid": 0xEFFFFFFC, "uts": 0xEFFFFFFE, "ipc": 0xEFFFFFFF}


def read(tree: Tree) -> Environment:
    """What a tree says; for this machine also what this process may use."""
    facts = Environment(
        virtual_machine=_virtual_machine(tree),
        container=_container(tree),
        iommu=_iommu(tree),
        kernel_command_line=options(tree.text("proc/cmdline")),
        board=_dmi(tree, "board_vendor", "board_name") or _dmi(tree, "sys_vendor", "product_name"),
        bios=_dmi(tree, "bios_vendor", "bios_version", "bios_date"),
        governor=_governor(tree),
        allowed_cpus=allowed(tree, "Cpus_allowed_list"),
        allowed_nodes=allowed(tree, "Mems_allowed_list"),
        boot=_boot(tree),
    )
    return Environment(**(facts.__dict__ | _of_this_process())) if tree.live else facts


def options(text: str | None) -> str | None:
    """The kernel options that change results, without those that name disks, hosts or networks."""
    kept = [word for word in (text or "").split() if _OPTIONS.fullmatch(word)]
    return " ".join(kept) or None


def variables(environment: dict[str, str]) -> tuple[tuple[str, str], ...]:
    """NCCL_*, CUDA_* and OMP_* by name. Values that name networks, files or a GPU's UUID become '(set)'."""
    kept = ((name, value) for name, value in environment.items() if _VARIABLES.fullmatch(name))
    return tuple(sorted((name, _plain(name, value)) for name, value in kept))


def allowed(tree: Tree, field: str) -> tuple[int, ...]:
    """CPUs or memory nodes that this process may use, cgroup cpusets included; () where it is not said."""
    match = re.search(rf"^{field}:[ \t]*([0-9,-]+)$", tree.text("proc/self/status") or "", re.MULTILINE)
    return (cpu_list(match[1]) or ()) if match else ()


def _plain(name: str, value: str) -> str:
    naming = _NAMING.search(name) and not re.fullmatch(r"[0-9,]*", value)
    return "(set)" if naming or _NAMING_VALUE.search(value) else value


def _of_this_process() -> dict[str, object]:
    soft, _ = resource.getrlimit(resource.RLIMIT_MEMLOCK)
    return {
        "root": os.geteuid() == 0,
        "memlock_bytes": sys.maxsize if soft == resource.RLIM_INFINITY else soft,
        "shm_bytes": _shm(),
        "allowed_cpus": tuple(sorted(os.sched_getaffinity(0))),
        "variables": variables(dict(os.environ)),
    }


def _shm() -> int | None:
    """Size of /dev/shm in bytes: NCCL's SHM transport needs room there."""
    try:
        info = os.statvfs("/dev/shm")
    except OSError:
        return None
    return info.f_frsize * info.f_blocks


def _virtual_machine(tree: Tree) -> str | None:
    """The hypervisor's name, 'unknown hypervisor' where only the processor tells, None on bare metal."""
    said = f"{_dmi(tree, 'sys_vendor', 'product_name')} {_dmi(tree, 'bios_vendor')}".lower()
    named = next((name for part, name in _HYPERVISORS.items() if part in said), None)
    if named:
        return named
    if (xen := tree.text("sys/hypervisor/type")) is not None:
        return xen.capitalize()
    flag = re.search(r"^flags\s*:.*\bhypervisor\b", tree.text("proc/cpuinfo") or "", re.MULTILINE)
    return (_unnamed_hypervisor(tree) or "unknown hypervisor") if flag else None


def _unnamed_hypervisor(tree: Tree) -> str | None:
    """Who runs a virtual machine that has no DMI, from its ACPI tables and clock sources: 'KVM (Firecracker)'."""
    table = tree.data("sys/firmware/acpi/tables/FACP", most=36) or b""
    monitor = _ACPI_OEMS.get(table[10:16])
    clocks = (tree.text("sys/devices/system/clocksource/clocksource0/available_clocksource") or "").split()
    kernel = next((_CLOCKS[clock] for clock in clocks if clock in _CLOCKS), None)
    return f"{kernel} ({monitor})" if kernel and monitor else kernel or monitor


def _container(tree: Tree) -> str | None:
    """The kind of container that this process runs in; None where no sign of one is seen."""
    if tree.live:
        named = _manager() or _marked(tree)
        if named:
            return re.sub(r"[^\w.-]", "", named)[:32] or None
    groups = tree.text("proc/self/cgroup") or ""
    return next((name for name in _CONTAINERS if name in groups), None)


def _marked(tree: Tree) -> str | None:
    """What left its mark in the root folder. A virtual machine that boots an image made for containers has the mark and
    is none: then all namespaces are the kernel's first ones, and the root folder is no overlay."""
    marks = {"docker": tree.path(".dockerenv"), "podman": tree.path("run/.containerenv")}
    named = next((name for name, mark in marks.items() if mark is not None), None)
    return None if named and _in_first_namespaces(tree) and not _overlaid(tree) else named


def _in_first_namespaces(tree: Tree) -> bool:
    return all(
        tree.target(f"proc/self/ns/{name}") == f"{name}:[{number}]" for name, number in _FIRST_NAMESPACES.items()
    )


def _overlaid(tree: Tree) -> bool:
    """The root folder is an overlay, as container engines make them (proc_pid_mountinfo(5))."""
    mounts = (line.split() for line in (tree.text("proc/self/mountinfo") or "").splitlines())
    return any(m[4] == "/" and "overlay" in m[m.index("-") :][1:2] for m in mounts if len(m) > 4 and "-" in m)


def _manager() -> str | None:
    """What systemd-nspawn, podman and LXC tell the processes inside, in the lower-case variable `container`."""
    return os.environ.get("container")  # noqa: SIM112 - their spelling


def _iommu(tree: Tree) -> str | None:
    """What the IOMMU does: 'off', or the default domains in use ('DMA-FQ', 'identity'); None where it is not said."""
    units = tree.names("sys/class/iommu")
    if not units:
        return "off" if tree.path("sys/class") is not None and tree.path("sys/kernel/iommu_groups") else None
    groups = (tree.text(f"sys/kernel/iommu_groups/{g}/type") for g in tree.names("sys/kernel/iommu_groups"))
    kinds = sorted({kind for kind in groups if kind})
    return ", ".join(kinds) or "on"


def _dmi(tree: Tree, *names: str) -> str | None:
    words = [text for name in names if (text := tree.text(f"sys/class/dmi/id/{name}"))]
    return " ".join(" ".join(words).split()) or None


def _governor(tree: Tree) -> str | None:
    """The CPU frequency governor, or several separated by commas; None where the kernel does not scale."""
    folder = "sys/devices/system/cpu/cpufreq"
    found = {
        tree.text(f"{folder}/{policy}/scaling_governor") for policy in tree.names(folder) if policy[:6] == "policy"
    }
    return ", ".join(sorted(g for g in found if g)) or None


def _boot(tree: Tree) -> str | None:
    """A short hash of the boot id: tells two boots apart and names none."""
    boot = tree.text("proc/sys/kernel/random/boot_id")
    return hashlib.sha256(boot.encode()).hexdigest()[:12] if boot else None
