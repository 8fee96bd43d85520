"""Prints the extras to install here: 'dev', and 'cuda12' or 'cuda13' where an NVIDIA driver is. Standard library only:
it runs before anything is installed."""

from __future__ import annotations

import ctypes
import sys


def driver_cuda() -> int | None:
    """The newest CUDA version that the driver supports (13000 = 13.0); None without a driver."""
    try:
        library = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return None
    version = ctypes.c_int()
    return version.value if library.cuDriverGetVersion(ctypes.byref(version)) == 0 else None


def extras(version: int | None) -> tuple[str, str | None]:
    """The extras for a driver (comma-separated) and, where it is too old for any, a sentence that says so."""
    if version is None:
        return "dev", None
    if version >= 13000:
        return "dev,cuda13", None
    if version >= 12000:
        return "dev,cuda12", None
    return "dev", (
        f"the NVIDIA driver supports CUDA {version // 1000}.{version % 1000 // 10} at most and cupy needs 12.0: "
        "the GPUs will not be measured until the driver is updated"
    )


def main() -> None:
    """Extras on standard output, a warning on standard error."""
    names, warning = extras(driver_cuda())
    if warning:
        print(f"lanecheck: {warning}", file=sys.stderr)
    print(names)


if __name__ == "__main__":
    main()
