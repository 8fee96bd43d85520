"""PCI configuration space, as far as it says something about links. Offsets and bits: PCI Local Bus 3.0 §6.7 and
PCI Express Base Specification §7.5 to §7.9 (capability structures), as in Linux' include/uapi/linux/pci_regs.h."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from suite.records.machine import GENERATION_GTS, LinkState, PcieConfig, PortType

# What an ordinary user may read; the rest needs CAP_SYS_ADMIN in the first user namespace.
UNPRIVILEGED = 64

PCI_EXPRESS = 0x10
AER, DEVICE_SERIAL, ACS, RESIZABLE_BAR = 0x0001, 0x0003, 0x000D, 0x0015

_PORT_TYPES: dict[int, PortType] = {
    0: "endpoint",
    1: "legacy_endpoint",
    4: "root_port",
    5: "upstream_port",
    6: "downstream_port",
    7: "pcie_to_pci",
    9: "integrated",
}
_WIDTHS = (1, 2, 4, 8, 12, 16, 32)
_ASPM = ("off", "L0s", "L1", "L0s+L1")
_ACS_BITS = ("SourceValid", "TransBlk", "ReqRedir", "CmpltRedir", "UpstreamFwd", "EgressCtrl", "DirectTrans")
# Only these send peer traffic up to the root complex; SourceValid alone does not.
_REDIRECT = {"ReqRedir", "CmpltRedir", "UpstreamFwd"}


@dataclass(frozen=True)
class ConfigSpace:
    """What one function's configuration space says. pcie: None where the capability is absent or was not readable."""

    port_type: PortType | None = None
    pcie: PcieConfig | None = None
    note: str | None = None


def parse(data: bytes | None) -> ConfigSpace:
    """The first 64 to 4096 bytes of configuration space. `note` says why `pcie` is missing; no input raises."""
    if not data or len(data) < UNPRIVILEGED:
        return ConfigSpace(note="the configuration space cannot be read")
    if data[:4] == b"\xff\xff\xff\xff":
        return ConfigSpace(note="the device does not answer (all bits of its configuration space read 1)")
    place = dict(capabilities(data)).get(PCI_EXPRESS)
    if place is not None and place + 4 <= len(data):
        return _pcie(data, place)
    if len(data) <= UNPRIVILEGED and data[0x06] & 0x10:
        return ConfigSpace(note="needs root: only the first 64 bytes of the configuration space are readable")
    return ConfigSpace(note="a conventional PCI function without the PCI Express capability")


def capabilities(data: bytes) -> Iterator[tuple[int, int]]:
    """The capability list: (id, offset). Ends at what was not readable and at loops."""
    place = data[0x34] & 0xFC if len(data) > 0x34 and data[0x06] & 0x10 else 0
    seen: set[int] = set()
    while place >= 0x40 and place + 2 <= len(data) and place not in seen:
        seen.add(place)
        yield data[place], place
        place = data[place + 1] & 0xFC


def extended_capabilities(data: bytes) -> Iterator[tuple[int, int]]:
    """The extended capability list from 0x100: (id, offset). Empty where those bytes were not readable."""
    place = 0x100
    seen: set[int] = set()
    while place >= 0x100 and place + 4 <= len(data) and place not in seen:
        seen.add(place)
        header = int.from_bytes(data[place : place + 4], "little")
        if header in (0, 0xFFFFFFFF):
            return
        yield header & 0xFFFF, place
        place = header >> 20 & 0xFFC


def status_bits(data: bytes | None) -> tuple[bool, bool] | None:
    """LnkSta's bandwidth-management bits (LBMS, LABS): the link was retrained, or changed by hardware, since they
    were last cleared. None where they cannot be read. Reading clears nothing."""
    place = dict(capabilities(data)).get(PCI_EXPRESS) if data else None
    status = _word(data, place + 0x12) if data and place is not None else None
    return None if status is None else (bool(status >> 14 & 1), bool(status >> 15 & 1))


def _pcie(data: bytes, place: int) -> ConfigSpace:
    kind = _PORT_TYPES.get((_word(data, place + 2) or 0) >> 4 & 0xF)
    if place + 0x14 > len(data):
        return ConfigSpace(kind, note="the configuration space ends inside the PCI Express capability")
    device_cap, device_control = _long(data, place + 4) or 0, _word(data, place + 8) or 0
    link_cap, link_status = _long(data, place + 0xC) or 0, _word(data, place + 0x12) or 0
    control2 = _word(data, place + 0x30) if (_word(data, place + 2) or 0) & 0xF >= 2 else None
    acs = _acs(data)
    has_link = kind != "integrated"
    return ConfigSpace(
        kind,
        PcieConfig(
            mps=_size(device_control >> 5 & 7),
            mps_supported=_size(device_cap & 7),
            mrrs=_size(device_control >> 12 & 7),
            relaxed_ordering=bool(device_control >> 4 & 1),
            extended_tags=bool(device_control >> 8 & 1),
            no_snoop=bool(device_control >> 11 & 1),
            flit_mode=_flit_mode(data, place),
            aspm=_ASPM[(_word(data, place + 0x10) or 0) & 3] if has_link else None,
            link=_link(link_status) if has_link else LinkState(),
            link_max=_link(link_cap) if has_link else LinkState(),
            target_speed_gts=GENERATION_GTS.get(control2 & 0xF) if control2 is not None else None,
            autonomous_speed_disabled=bool(control2 >> 5 & 1) if control2 is not None else None,
            link_bandwidth_changed=bool(link_status >> 14 & 1) if has_link else None,
            autonomous_change=bool(link_status >> 15 & 1) if has_link else None,
            acs=acs,
            acs_redirect=None if acs is None else bool(_REDIRECT & set(acs)),
            resizable_bar=_has_extended(data, RESIZABLE_BAR),
        ),
    )


def _link(register: int) -> LinkState:
    """LnkCap or LnkSta: speed in bits 3:0, width in bits 9:4. Encodings outside the specification are unknown."""
    width = register >> 4 & 0x3F
    return LinkState(GENERATION_GTS.get(register & 0xF), width if width in _WIDTHS else None)


def _flit_mode(data: bytes, place: int) -> bool | None:
    """LnkSta2 bit 10 (PCIe 6.0); None where the register is not there."""
    status2 = _word(data, place + 0x32)
    return None if status2 is None or (_word(data, place + 2) or 0) & 0xF < 2 else bool(status2 >> 10 & 1)


def _acs(data: bytes) -> tuple[str, ...] | None:
    """The ACS control bits that are set; () where the capability is absent; None where it could not be looked at."""
    found = _has_extended(data, ACS)
    if found is None:
        return None
    control = _word(data, dict(extended_capabilities(data))[ACS] + 6) if found else 0
    return None if control is None else tuple(name for bit, name in enumerate(_ACS_BITS) if control >> bit & 1)


def _has_extended(data: bytes, wanted: int) -> bool | None:
    """None where it cannot be told: not readable, or some capabilities are hidden. A hypervisor that passes a device
    through leaves those with an id of 0 in the list (Linux' drivers/vfio/pci/vfio_pci_config.c)."""
    if len(data) < 0x104:
        return None
    found = {name for name, _ in extended_capabilities(data)}
    return True if wanted in found else None if 0 in found else False


def _size(code: int) -> int | None:
    """128 << code bytes; codes 6 and 7 are reserved."""
    return 128 << code if code <= 5 else None


def _word(data: bytes, place: int) -> int | None:
    return int.from_bytes(data[place : place + 2], "little") if place + 2 <= len(data) else None


def _long(data: bytes, place: int) -> int | None:
    return int.from_bytes(data[place : place + 4], "little") if place + 4 <= len(data) else None
