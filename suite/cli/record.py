"""`lanecheck record`: saves what the probe reads, so that it can be looked at and judged elsewhere."""

from __future__ import annotations

import argparse
from pathlib import Path

from suite.cli.probe import seconds
from suite.probe import recording


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `lanecheck record`."""
    parser.add_argument("file", type=Path, metavar="FILE.tar.gz", help="where to save; must not exist")
    parser.add_argument("--no-nvml", action="store_true", help="do not ask NVML: no GPU is woken")
    parser.add_argument("--timeout", type=seconds, default=10.0, metavar="S", help="give NVML S seconds (10)")


def run(arguments: argparse.Namespace) -> int:
    """Writes the recording and says what is in it."""
    count = recording.record(arguments.file, nvml=not arguments.no_nvml, timeout_s=arguments.timeout)
    size = arguments.file.stat().st_size / 1024
    print(f"{arguments.file}: {count} files, {size:.0f} KiB, without serials, UUIDs, network addresses, host names.")
    print(f"Look at it with: lanecheck probe --machine {arguments.file}")
    return 0
