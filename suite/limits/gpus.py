"""Which product a GPU is, for what NVML and sysfs do not say of it. Unknown parts: None."""

from __future__ import annotations

from suite.limits.parts import PARTS, Part
from suite.records.machine import Gpu

NVIDIA = 0x10DE
# Brands that drivers put before a product's name or leave out: "Tesla T4", "NVIDIA A40", "A100-SXM4-40GB". Not Quadro:
# a Quadro RTX 6000 and an RTX 6000 Ada Generation are different parts.
_BRANDS = frozenset({"nvidia", "tesla", "geforce"})


def part(gpu: Gpu) -> Part | None:
    """The product that a GPU is: by its PCI device id, by its name where several share that or where it is not known.

    Names have to be equal: an RTX 4090 Laptop GPU, an RTX 4090 D and a slice of an A100 are no RTX 4090 and no A100.
    None where the table has none, or has several.
    """
    device_id = _device_id(gpu.pci_device_id)
    found = [one for one in PARTS if device_id in one.device_ids] if device_id is not None else list(PARTS)
    if device_id is None or len(found) > 1:
        found = [one for one in found if _named(one, gpu.name)]
    return found[0] if len(found) == 1 else None


def _named(one: Part, name: str) -> bool:
    return _words(name) in [_words(known) for known in one.names]


def _words(name: str) -> list[str]:
    """A name's words in lower case, without the brands before it."""
    words = name.lower().replace("-", " ").split()
    while words and words[0] in _BRANDS:
        words = words[1:]
    return words


def _device_id(value: int | None) -> int | None:
    """The 16-bit device id; NVML puts it above the vendor's (0x233510DE)."""
    if value is None:
        return None
    return value >> 16 if value > 0xFFFF and value & 0xFFFF == NVIDIA else value
