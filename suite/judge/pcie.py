"""The little PCIe arithmetic that a judge needs to compare link states; ceilings are computed elsewhere."""

from __future__ import annotations

from suite.records.machine import GENERATION_GTS, LinkState

# Share of the line rate that is payload: 8b/10b up to 5 GT/s, 128/130 from 8 GT/s, 236/256 in flits (PCI Express Base
# Specification 6.0, sections 4.2.1 to 4.2.3).
ENCODING = {1: 0.8, 2: 0.8, 3: 128 / 130, 4: 128 / 130, 5: 128 / 130, 6: 236 / 256, 7: 236 / 256}
# Link widths, lanes (PCI Express Base Specification, Link Capabilities: Maximum Link Width).
WIDTHS = (1, 2, 4, 8, 12, 16, 32)
# Of the line rate: what copies reach, from 0.80 of the ceiling at an MPS of 128 to all of it at 512.
LIKE = (0.80 * 128 / 152, 512 / 532)


def line_rate(link: LinkState) -> float | None:
    """Bytes per second and direction of a link; None where speed or width is unknown."""
    if link.gen is None or link.speed_gts is None or not link.width:
        return None
    return link.speed_gts * ENCODING[link.gen] / 8 * link.width * 1e9


def behaves_like(bandwidth: float, width: int) -> LinkState | None:
    """The slowest generation at this width whose copies reach such a bandwidth (bytes/s); None where none fits."""
    for gts in GENERATION_GTS.values():
        link = LinkState(gts, width)
        rate = line_rate(link)
        if rate is not None and LIKE[0] * rate <= bandwidth <= LIKE[1] * rate:
            return link
    return None
