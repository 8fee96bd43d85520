"""An emulated machine with two NUMA nodes and a PCIe tree, booted under qemu to run one Python program.

Needs qemu-system-x86_64, a static busybox, cpio, and a Linux kernel: Debian's cloud kernel is fetched with apt-get once
and kept in the user's cache folder (XDG_CACHE_HOME), or LANECHECK_GUEST_KERNEL names one. It needs no KVM.

    python -m tests.guest.machine PROGRAM.py     # prints what the program prints
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("numpy", "msgspec", "psutil")
TOOLS = ("qemu-system-x86_64", "busybox", "cpio")
APPLETS = ("sh", "mount", "mkdir", "stty", "poweroff")
LEFT_OUT = shutil.ignore_patterns(
    "__pycache__", "test", "tests", "site-packages", "dist-packages", "idlelib", "tkinter", "ensurepip", "lib2to3",
    "turtledemo", "pydoc_data", "config-*", "*.a", "*.pyi", "*.pyx", "*.h", "f2py",
)  # fmt: skip
STATUS = "guest-status"
# Two nodes of 1 GiB and two CPUs each, distance 21. Node 0: a 16 GT/s x16 root port with one device. Node 1: an 8 GT/s
# x8 root port with a switch and two devices behind it, and an empty 5 GT/s x4 port. Emulated devices train 2.5 GT/s x1.
MACHINE = """
    -accel tcg,thread=multi -cpu max -machine q35 -smp 4,sockets=2,cores=2 -m 2048
    -object memory-backend-ram,id=m0,size=1024M -object memory-backend-ram,id=m1,size=1024M
    -numa node,nodeid=0,cpus=0-1,memdev=m0 -numa node,nodeid=1,cpus=2-3,memdev=m1 -numa dist,src=0,dst=1,val=21
    -device pxb-pcie,id=host0,bus_nr=32,bus=pcie.0,numa_node=0
    -device pxb-pcie,id=host1,bus_nr=128,bus=pcie.0,numa_node=1
    -device pcie-root-port,id=port0,bus=host0,chassis=1,slot=1,x-speed=16,x-width=16
    -device pcie-root-port,id=port1,bus=host1,chassis=2,slot=1,x-speed=8,x-width=8
    -device pcie-root-port,id=port2,bus=host1,chassis=3,slot=2,x-speed=5,x-width=4
    -device virtio-gpu-pci,bus=port0
    -device x3130-upstream,id=up,bus=port1
    -device xio3130-downstream,id=down0,bus=up,chassis=4,slot=1
    -device xio3130-downstream,id=down1,bus=up,chassis=5,slot=2
    -device virtio-gpu-pci,bus=down0 -device bochs-display,bus=down1
    -display none -nodefaults -no-reboot
"""
INIT = """#!/bin/sh
mount -t proc proc /proc; mount -t sysfs sys /sys; mount -t devtmpfs dev /dev
mkdir -p /dev/shm; mount -t tmpfs shm /dev/shm
stty -F /dev/ttyS1 raw
export PYTHONHOME={prefix} PYTHONPATH=/project:/packages PYTHONDONTWRITEBYTECODE=1 HOME=/tmp PATH=/bin
cd /project
{python} /program.py >/dev/ttyS1 2>&1
echo "{status} $?" >/dev/ttyS1
poweroff -f
"""


class GuestUnavailable(Exception):  # noqa: N818 - a state of this machine, not a fault
    """The emulated machine cannot be booted here; the text says what is missing."""


def run(program: Path, timeout_s: float = 240.0) -> str:
    """Boots, runs a program that may import suite, tests and PACKAGES, and gives what it printed.

    Raises GuestUnavailable where a tool or the kernel is missing, RuntimeError with what was said where it failed.
    """
    for tool in TOOLS:
        if shutil.which(tool) is None:
            raise GuestUnavailable(f"{tool} is not installed")
    image = kernel()
    with tempfile.TemporaryDirectory(prefix="lanecheck-guest-") as name:
        folder = Path(name)
        _boot(image, _initrd(folder, program), folder, timeout_s)
        return _printed((folder / "out").read_text(errors="replace"), (folder / "console").read_text(errors="replace"))


def kernel() -> Path:
    """A Linux kernel with NUMA; fetched once. Raises GuestUnavailable where there is none to be had."""
    if given := os.environ.get("LANECHECK_GUEST_KERNEL"):
        return Path(given)
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "lanecheck" / "guest"
    found = sorted(cache.glob("boot/vmlinuz-*"))
    return found[0] if found else _fetch_kernel(cache)


def _fetch_kernel(cache: Path) -> Path:
    """Debian's kernel for virtual machines, unpacked, not installed."""
    if shutil.which("apt-get") is None or shutil.which("dpkg") is None:
        raise GuestUnavailable("no kernel: set LANECHECK_GUEST_KERNEL to a Linux kernel image")
    depends = _output("apt-cache", "depends", "linux-image-cloud-amd64")
    package = re.search(r"Depends: (linux-image-\d\S*)", depends)
    if package is None:
        raise GuestUnavailable("no kernel: apt knows no linux-image-cloud-amd64 (run apt-get update)")
    cache.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=cache) as name:
        folder = Path(name)
        _output("apt-get", "download", "-q", package[1], cwd=folder)
        archive = next(folder.glob("*.deb"), None)
        if archive is None:
            raise GuestUnavailable(f"no kernel: {package[1]} could not be downloaded")
        _output("dpkg", "-x", str(archive), str(folder / "unpacked"))
        image = next((folder / "unpacked/boot").glob("vmlinuz-*"))
        (cache / "boot").mkdir(exist_ok=True)
        return image.rename(cache / "boot" / image.name)


def _output(*command: str, cwd: Path | None = None) -> str:
    ended = subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=180)
    return ended.stdout


def _boot(image: Path, initrd: Path, folder: Path, timeout_s: float) -> None:
    serial = ["-serial", f"file:{folder / 'console'}", "-serial", f"file:{folder / 'out'}"]
    kernel_options = "console=ttyS0 quiet panic=-1 numa_balancing=disable"
    start = ["-kernel", str(image), "-initrd", str(initrd), "-append", kernel_options]
    command = [TOOLS[0], *MACHINE.split(), *serial, *start]
    ended = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=timeout_s)
    if ended.returncode:
        raise RuntimeError(f"qemu ended with status {ended.returncode}: {ended.stderr}")


def _printed(out: str, console: str) -> str:
    status = re.search(rf"^{STATUS} (\d+)", out, re.MULTILINE)
    if status is None:
        raise RuntimeError(f"the guest ended without a status:\n{out}\n{console}")
    text = out[: status.start()]
    if status[1] != "0":
        raise RuntimeError(f"the program in the guest exited with {status[1]}:\n{text}")
    return text


def _initrd(folder: Path, program: Path) -> Path:
    """A file system in memory with busybox, this Python, PACKAGES, the project and the program."""
    root = folder / "root"
    for name in ("bin", "dev", "proc", "sys", "tmp", "packages", "project"):
        (root / name).mkdir(parents=True)
    _copy_busybox(root)
    python = _copy_python(root)
    for source in _package_folders():
        shutil.copytree(source, root / "packages" / source.name, ignore=LEFT_OUT)
    for name in ("suite", "tests"):
        shutil.copytree(ROOT / name, root / "project" / name, ignore=shutil.ignore_patterns("__pycache__", "data"))
    shutil.copy(program, root / "program.py")
    _copy_libraries(root, python)
    init = root / "init"
    init.write_text(INIT.format(prefix=sys.base_prefix, python=python, status=STATUS))
    init.chmod(0o755)
    return _archive(root, folder / "initrd")


def _copy_busybox(root: Path) -> None:
    shutil.copy(shutil.which("busybox") or "busybox", root / "bin/busybox")
    for applet in APPLETS:
        (root / "bin" / applet).symlink_to("busybox")


def _copy_python(root: Path) -> Path:
    """The interpreter and its standard library at the same paths; gives the interpreter's."""
    interpreter = Path(os.path.realpath(sys.executable))
    _copy_file(interpreter, root)
    library = Path(sysconfig.get_path("stdlib"))
    shutil.copytree(library, root / library.relative_to("/"), ignore=LEFT_OUT)
    return interpreter


def _package_folders() -> Iterator[Path]:
    for name in PACKAGES:
        spec = importlib.util.find_spec(name)
        if spec is None or not spec.submodule_search_locations:
            raise GuestUnavailable(f"{name} is not installed")
        folder = Path(spec.submodule_search_locations[0])
        yield folder
        bundled = folder.with_name(f"{name}.libs")
        if bundled.is_dir():
            yield bundled


def _copy_libraries(root: Path, interpreter: Path) -> None:
    """Every shared library that the copied programs and extensions load from the system."""
    extensions = [str(path) for path in root.rglob("*.so*")]
    needed = subprocess.run(["ldd", str(interpreter), *extensions], capture_output=True, text=True).stdout
    for name in sorted(set(re.findall(r"(/[^\s:)]+\.so[^\s:)]*)", needed))):
        if not name.startswith(str(root)):
            _copy_file(Path(name), root)


def _copy_file(path: Path, root: Path) -> None:
    target = root / path.relative_to("/")
    target.parent.mkdir(parents=True, exist_ok=True)
    if not target.exists():
        shutil.copy(path, target)


def _archive(root: Path, target: Path) -> Path:
    names = "\0".join(_below(root))
    with target.open("wb") as file:
        subprocess.run(
            ["cpio", "--create", "--format=newc", "--null", "--quiet"],
            input=names.encode(),
            stdout=file,
            cwd=root,
            check=True,
        )
    return target


def _below(root: Path) -> Iterable[str]:
    return [".", *(str(path.relative_to(root)) for path in sorted(root.rglob("*")))]


if __name__ == "__main__":
    print(run(Path(sys.argv[1])), end="")
