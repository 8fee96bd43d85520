"""What else changes results, without what names the machine."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from suite.probe import environment, software
from suite.probe.tree import Tree
from tests.probe import trees


def test_kernel_options_that_name_disks_hosts_or_networks_are_left_out() -> None:
    line = (
        "BOOT_IMAGE=/vmlinuz root=UUID=1b2c-3d ip=10.0.0.7::10.0.0.1:255.255.255.0:gpuhost:eth0 ro quiet "
        "iommu=pt intel_iommu=on pci=noacs pcie_aspm=off systemd.machine_id=abc console=ttyS0"
    )
    assert environment.options(line) == "iommu=pt intel_iommu=on pci=noacs pcie_aspm=off"
    assert environment.options("quiet") is None
    assert environment.options(None) is None


def test_only_variables_that_change_results_are_kept_and_none_that_name_a_site() -> None:
    found = environment.variables(
        {
            "NCCL_P2P_LEVEL": "SYS",
            "NCCL_SOCKET_IFNAME": "eth0",
            "NCCL_COMM_ID": "10.0.0.1:1234",
            "CUDA_VISIBLE_DEVICES": "0,1",
            "OMP_NUM_THREADS": "4",
            "AWS_SECRET": "x",
            "HOME": "/home/someone",
            "CUDA_HOME": "/opt/cuda",
        }
    )
    assert dict(found) == {
        "NCCL_P2P_LEVEL": "SYS",
        "NCCL_SOCKET_IFNAME": "(set)",
        "NCCL_COMM_ID": "(set)",
        "CUDA_VISIBLE_DEVICES": "0,1",
        "OMP_NUM_THREADS": "4",
        "CUDA_HOME": "(set)",
    }
    gpu = environment.variables({"CUDA_VISIBLE_DEVICES": "GPU-0a1b2c3d-1111-2222-3333-444455556666"})
    assert dict(gpu) == {"CUDA_VISIBLE_DEVICES": "(set)"}


@pytest.mark.parametrize(
    ("files", "name"),
    [
        ({"sys/class/dmi/id/sys_vendor": "QEMU\n", "sys/class/dmi/id/product_name": "Standard PC"}, "QEMU"),
        ({"sys/class/dmi/id/sys_vendor": "VMware, Inc."}, "VMware"),
        ({"sys/hypervisor/type": "xen\n"}, "Xen"),
        ({"proc/cpuinfo": "processor : 0\nflags : fpu hypervisor lahf_lm\n"}, "unknown hypervisor"),
        ({"proc/cpuinfo": "processor : 0\nflags : fpu lahf_lm\n", "sys/class/dmi/id/sys_vendor": "Dell Inc."}, None),
    ],
)
def test_virtual_machines_are_named(tmp_path: Path, files: trees.Files, name: str | None) -> None:
    assert environment.read(Tree(trees.write(tmp_path, files))).virtual_machine == name


CLOCKS = "sys/devices/system/clocksource/clocksource0/available_clocksource"
GUEST: trees.Files = {"proc/cpuinfo": "processor : 0\nflags : fpu hypervisor\n"}


@pytest.mark.parametrize(
    ("files", "name"),
    [
        ({CLOCKS: "tsc kvm-clock\n"}, "KVM"),
        (
            {CLOCKS: "tsc kvm-clock\n", "sys/firmware/acpi/tables/FACP": b"FACP\x14\1\0\0\6fFIRECKFCVMFADT"},
            "KVM (Firecracker)",
        ),
        ({CLOCKS: "hyperv_clocksource_tsc_page acpi_pm\n"}, "Hyper-V"),
        ({CLOCKS: "tsc\n", "sys/firmware/acpi/tables/FACP": b"FACP"}, "unknown hypervisor"),
    ],
)
def test_a_virtual_machine_without_dmi_is_named_by_what_else_it_shows(
    tmp_path: Path, files: trees.Files, name: str
) -> None:
    assert environment.read(Tree(trees.write(tmp_path, GUEST | files))).virtual_machine == name


def test_a_clock_of_kvm_on_bare_metal_makes_no_virtual_machine(tmp_path: Path) -> None:
    files: trees.Files = {CLOCKS: "tsc kvm-clock", "proc/cpuinfo": "processor : 0\nflags : fpu\n"}
    assert environment.read(Tree(trees.write(tmp_path, files))).virtual_machine is None


FIRST: trees.Files = {
    "proc/self/ns/cgroup@": "cgroup:[4026531835]",
    "proc/self/ns/pid@": "pid:[4026531836]",
    "proc/self/ns/uts@": "uts:[4026531838]",
    "proc/self/ns/ipc@": "ipc:[4026531839]",
}
DISK = "26 1 254:0 / / rw,relatime - ext4 /dev/vda rw\n"
OVERLAY = "26 1 0:40 / / rw,relatime master:1 - overlay overlay rw,lowerdir=x\n"


@pytest.mark.parametrize(
    ("files", "container"),
    [
        ({".dockerenv": "", **FIRST, "proc/self/mountinfo": DISK}, None),
        ({".dockerenv": "", **FIRST, "proc/self/mountinfo": OVERLAY}, "docker"),
        ({".dockerenv": "", **FIRST, "proc/self/ns/pid@": "pid:[4026532201]", "proc/self/mountinfo": DISK}, "docker"),
        ({"run/.containerenv": ""}, "podman"),
        ({"proc/self/cgroup": "0::/kubepods/besteffort/pod1\n"}, "kubepods"),
        ({**FIRST, "proc/self/mountinfo": OVERLAY}, None),
    ],
)
def test_a_mark_left_by_an_image_makes_no_container_where_everything_else_is_the_hosts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, files: trees.Files, container: str | None
) -> None:
    monkeypatch.delenv("container", raising=False)
    tree = Tree(trees.write(tmp_path, files))
    tree.live = True  # marks in the root folder count for this machine only
    assert environment.read(tree).container == container


def test_board_bios_governor_and_cpuset_are_read_and_serial_numbers_are_not(tmp_path: Path) -> None:
    dmi = "sys/class/dmi/id"
    files: trees.Files = {f"{dmi}/board_vendor": "Supermicro", f"{dmi}/board_name": "H13", f"{dmi}/board_serial": "SN1"}
    files |= {f"{dmi}/bios_vendor": "AMI", f"{dmi}/bios_version": "1.2", f"{dmi}/product_uuid": "UUID1"}
    for policy, governor in enumerate(("powersave", "performance")):
        files[f"sys/devices/system/cpu/cpufreq/policy{policy}/scaling_governor"] = governor
    files["proc/self/status"] = "Name:\tx\nCpus_allowed_list:\t0-1,4\nMems_allowed_list:\t1\n"
    found = environment.read(Tree(trees.write(tmp_path, files)))
    assert (found.board, found.bios, found.governor) == ("Supermicro H13", "AMI 1.2", "performance, powersave")
    assert (found.allowed_cpus, found.allowed_nodes) == ((0, 1, 4), (1,))
    assert not {"SN1", "UUID1"} & set(repr(found).replace("'", " ").split())


def test_the_boot_id_leaves_as_a_hash(tmp_path: Path) -> None:
    tree = Tree(trees.write(tmp_path, {"proc/sys/kernel/random/boot_id": "5b1e2d34-aaaa"}))
    boot = environment.read(tree).boot
    assert boot is not None
    assert len(boot) == 12
    assert "5b1e" not in boot


def test_iommu_domains_are_named(tmp_path: Path) -> None:
    files: trees.Files = {"sys/class/iommu/dmar0/x": "", "sys/kernel/iommu_groups/3/type": "DMA-FQ\n"}
    assert environment.read(Tree(trees.write(tmp_path / "on", files))).iommu == "DMA-FQ"
    assert environment.read(Tree(trees.write(tmp_path / "unsaid", {"sys/x": ""}))).iommu is None


def test_versions_are_found_without_importing_anything_heavy() -> None:
    before = set(sys.modules)
    found = software.read(Tree(Path("/")))
    assert found.python is not None
    assert found.lanecheck is not None
    assert not {"torch", "cupy", "numpy"} & (set(sys.modules) - before)


def test_a_recorded_tree_does_not_report_this_python(tmp_path: Path) -> None:
    banner = "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.15  Tue Mar  5 22:23:56 UTC 2024\n"
    tree = Tree(trees.write(tmp_path, {"proc/driver/nvidia/version": banner, "proc/sys/kernel/osrelease": "6.8.0\n"}))
    found = software.read(tree)
    assert (found.driver, found.kernel, found.python, found.torch) == ("550.54.15", "6.8.0", None, None)
