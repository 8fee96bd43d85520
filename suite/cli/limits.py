"""`lanecheck limits`: what a PCIe link, or a recorded machine's path, could deliver."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from suite.errors import SuiteError
from suite.limits import pcie
from suite.limits.links import as_recorded
from suite.limits.path import DOWN, UP, Demand, Packets, bound
from suite.limits.words import SOURCE, arithmetic, gigabytes, line_rate
from suite.records.machine import GENERATION_GTS, Hop, LinkState

# What is not given is this; None until then, so that it can be told from what is.
_DEFAULTS = {"width": 16, "mps": 256, "mrrs": 512, "engine": "copy-engine"}
_LINK = ("gen", "width", "mps", "mrrs", "flit", "engine")
_MACHINE = ("machine", "gpu", "pair")


class LimitsError(SuiteError):
    """Values that no PCIe link has."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `lanecheck limits`. Values are checked by the model, which names the allowed ones."""
    link = parser.add_argument_group("a link")
    link.add_argument("--gen", type=int, help="PCIe generation, 1 to 7")
    link.add_argument("--width", type=int, help="lanes (default 16)")
    link.add_argument("--mps", type=int, help="largest payload in bytes (default 256)")
    link.add_argument("--mrrs", type=int, help="largest read request in bytes (default 512)")
    link.add_argument("--flit", action="store_true", default=None, help="flit mode below Gen6 (from Gen6 on: always)")
    link.add_argument("--engine", metavar="|".join(pcie.MOVERS), help="what copies (default copy-engine)")
    machine = parser.add_argument_group("a machine")
    machine.add_argument("--machine", type=Path, metavar="FILE", help="a recording or scenario, instead of a link")
    machine.add_argument("--gpu", type=int, metavar="N", help="copies between this GPU and host memory")
    machine.add_argument("--pair", type=int, nargs=2, metavar=("A", "B"), help="copies from GPU A to GPU B")
    parser.add_argument("--json", action="store_true", help="bytes per second, for programs")
    parser.add_argument("--explain", action="store_true", help="how each number follows")


def run(arguments: argparse.Namespace) -> int:
    """Prints the limits. Raises LimitsError with one sentence for values that are not possible."""
    _refuse_a_mix(arguments)
    if arguments.machine is not None:
        from suite.cli import limits_machine  # a link needs no reader of machines: `lanecheck limits` answers at once

        print(limits_machine.text(arguments.machine, arguments.gpu, arguments.pair, arguments.json, arguments.explain))
        return 0
    if arguments.gen is None:
        raise LimitsError("give --gen, as in --gen 4 --width 16, or --machine FILE with --gpu N or --pair A B")
    for name, value in _DEFAULTS.items():
        if getattr(arguments, name) is None:
            setattr(arguments, name, value)
    try:
        answer = _link(arguments)
        print(json.dumps(answer) if arguments.json else _table(arguments, answer))
    except ValueError as error:
        raise LimitsError(str(error)) from error
    return 0


def _refuse_a_mix(arguments: argparse.Namespace) -> None:
    """A link's options beside a machine's would be ignored: the answer would be to another question."""
    link = [f"--{name}" for name in _LINK if getattr(arguments, name) is not None]
    machine = [f"--{name}" for name in _MACHINE if getattr(arguments, name) is not None]
    if not link or not machine:
        return
    if "--machine" in machine:
        raise LimitsError(f"{', '.join(link)} describes a link and --machine has its own: give one of the two")
    raise LimitsError(f"{', '.join(machine)} needs --machine FILE, and {', '.join(link)} describes a link without one")


def _link(arguments: argparse.Namespace) -> dict[str, Any]:
    """The limits of a link: the shape that `--json` prints, bytes per second."""
    link = (arguments.gen, arguments.width, arguments.mps)
    how = {"flit": arguments.flit, "engine": arguments.engine}
    both = pcie.both_ways(*link, arguments.mrrs, **how)
    return {
        "raw": pcie.raw(arguments.gen, arguments.width, arguments.flit),
        "device_to_host": pcie.device_to_host(*link, **how),
        "host_to_device": pcie.host_to_device(*link, arguments.mrrs, **how),
        "bidirectional": {"device_to_host": both.device_to_host, "host_to_device": both.host_to_device},
    }


def _table(arguments: argparse.Namespace, answer: dict[str, Any]) -> str:
    state = LinkState(GENERATION_GTS[arguments.gen], arguments.width)
    mode = ", flit mode" if pcie.flit_mode(arguments.gen, arguments.flit) else ""
    both = answer["bidirectional"]
    rows = [
        ("line rate, each way", answer["raw"]),
        ("host to device", answer["host_to_device"]),
        ("device to host", answer["device_to_host"]),
        ("both ways: host to device", both["host_to_device"]),
        ("both ways: device to host", both["device_to_host"]),
    ]
    title = f"{state}, MPS {arguments.mps}, MRRS {arguments.mrrs}, {arguments.engine}{mode}"
    lines = [title, *(f"  {name:<26}{gigabytes(rate):>12}" for name, rate in rows)]
    return "\n".join([*lines, "", *_explained(arguments, state)] if arguments.explain else lines)


def _explained(arguments: argparse.Namespace, state: LinkState) -> list[str]:
    """One sentence a row: the same derivation that every limit of a run carries."""
    packets = Packets(arguments.mps, arguments.mrrs, arguments.engine, arguments.flit)
    hop = Hop("link", None, state, state)
    lines = [line_rate(state, arguments.flit)]
    for name, load in (("Host to device", DOWN), ("Device to host", UP), ("Both ways", UP + DOWN)):
        demand = Demand({"link": hop}, {"link": load}, int(load.up_writes + load.down_reads), corner=load == UP + DOWN)
        found = bound(demand, as_recorded, packets)
        if found is not None:
            lines.append(f"{name}: {arithmetic(demand, found, packets).removeprefix(f'{name}: ')}")
    return [*lines, SOURCE]
