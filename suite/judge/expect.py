"""Manifests as text: read, written, and drafted from a machine."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import msgspec

from suite.errors import PlanError
from suite.judge.pcie import WIDTHS
from suite.records.expect import Expectations, ExpectedGpu
from suite.records.machine import GENERATION_GTS, Machine

_DRAFTS = "`lanecheck probe --write-expect` drafts one"


def read(text: str | bytes) -> Expectations:
    """A manifest from its JSON text. Raises PlanError with one sentence that names the place."""
    try:
        plain = msgspec.json.decode(text)
        found = msgspec.convert(plain, Expectations)
    except msgspec.MsgspecError as error:
        raise PlanError(f"the manifest cannot be read: {error}; {_DRAFTS}") from error
    wrong = _misspelt(plain) or _impossible(found)
    if wrong:
        raise PlanError(f"the manifest cannot be read: {wrong}; {_DRAFTS}")
    return found


def write(expectations: Expectations) -> str:
    """A manifest as JSON text that `read` reads back."""
    return msgspec.json.format(msgspec.json.encode(expectations), indent=2).decode() + "\n"


def draft(machine: Machine) -> Expectations:
    """What both ends of each GPU's link support, and the NUMA nodes as they are. Floors are left to the owner."""
    return Expectations(
        {
            gpu.address: ExpectedGpu(gpu.link_max.speed_gts, gpu.link_max.width, gpu.numa_node)
            for gpu in machine.gpus
            if gpu.address is not None
        }
    )


def _misspelt(plain: dict[str, Any]) -> str | None:
    """A name that means nothing: left unsaid, it would check nothing and look as if it did."""
    places: list[tuple[str, dict[str, Any], type[Any]]] = [("", plain, Expectations)]
    places += [(f" of {key}", gpu, ExpectedGpu) for key, gpu in plain.get("gpus", {}).items()]
    for place, found, kind in places:
        known = [one.name for one in fields(kind)]
        odd = next((name for name in found if name not in known), None)
        if odd is not None:
            return f"{odd!r}{place} is not one of {', '.join(known)}"
    return None


def _impossible(found: Expectations) -> str | None:
    for key, gpu in found.gpus.items():
        if gpu.speed_gts not in (None, *GENERATION_GTS.values()):
            speeds = ", ".join(f"{speed:g}" for speed in GENERATION_GTS.values())
            return f"speed_gts of {key} is {gpu.speed_gts:g}, no speed of PCI Express ({speeds} GT/s)"
        if gpu.width not in (None, *WIDTHS):
            return f"width of {key} is {gpu.width}, no width of PCI Express ({', '.join(map(str, WIDTHS))})"
    bad = next((case for case, floor in found.floors.items() if floor <= 0), None)
    return f"the floor of {bad} is not above 0 (bytes per second)" if bad is not None else None
