"""Soft limits: memory of hosts and GPUs, and the links between processors. They explain; caches can exceed them."""

from __future__ import annotations

import re

from suite.limits import gpus
from suite.records.case import Plan
from suite.records.machine import Cpu, Gpu, Machine
from suite.records.run import Limits

_DIMM_BITS = 64  # what a module carries a transfer (JEDEC DDR4 JESD79-4; DDR5 JESD79-5: two times 32)
_NO_MODULES = (
    "Not known: the rates of the memory modules are read as root only, and virtual machines seldom say them. A copy "
    "reads and writes: at least two bytes of DRAM traffic a byte; caches can make it faster: a soft limit."
)
# Bytes a second and direction of one link between processors, by model. Public figures conflict: soft.
# Sources: Intel ARK (UPI and QPI GT/s × 2 bytes), AMD EPYC processor series data sheets and tuning guides (xGMI).
_PROCESSOR_LINKS: tuple[tuple[str, float, str], ...] = (
    (r"EPYC 7\d\d[123]\b", 36e9, "xGMI x16 at 18 GT/s"),
    (r"EPYC 9\d\d[45]\b", 64e9, "xGMI x16 at 32 GT/s"),
    (r"E5-\d{4}", 19.2e9, "QPI at 9.6 GT/s"),
    (r"(Platinum|Gold|Silver|Bronze) \d[12]\d\d", 20.8e9, "UPI at 10.4 GT/s"),
    (r"(Platinum|Gold|Silver) \d3\d\d", 22.4e9, "UPI at 11.2 GT/s"),
    (r"(Platinum|Gold|Silver) \d4\d\d", 32e9, "UPI at 16 GT/s"),
    (r"(Platinum|Gold|Silver) \d5\d\d", 40e9, "UPI at 20 GT/s"),
)


def module_rates(machine: Machine) -> list[float]:
    """Theoretical bytes per second of each module whose rate was read: transfers a second × 8 bytes unless it says
    another width. DDR4-3200: 25.6 GB/s."""
    return [m.rate * (m.width_bits or _DIMM_BITS) / 8 for m in machine.memory_modules if m.rate]


def host_copy(machine: Machine, plan: Plan) -> Limits:
    """A copy of host memory by the modules that are fitted; soft, since caches can exceed it."""
    rates = module_rates(machine)
    nodes = [node for node in machine.nodes if node.memory_bytes and node.gpu is None]
    if not rates or not nodes:
        return Limits(hard=False, why=_NO_MODULES)
    one_node = sum(rates) / len(nodes)
    within = plan.target_node in (None, plan.memory_node)
    rate = one_node / 2 if within else one_node
    share = f", spread over {len(nodes)} NUMA nodes {one_node / 1e9:.1f} GB/s each" if len(nodes) > 1 else ""
    traffic = "A copy within a node reads and writes there" if within else "Each node is read or written"
    return Limits(
        now=rate,
        platform=rate,
        basis="read",
        hard=False,
        binding=f"{len(rates)} memory modules, {sum(rates) / 1e9:.0f} GB/s",
        why=(
            f"{len(rates)} memory modules, transfers a second × bytes a transfer, as if each had a channel of its own: "
            f"{sum(rates) / 1e9:.1f} GB/s at most{share}. {traffic}: {rate / 1e9:.1f} GB/s. Soft: caches can exceed "
            "it, and two modules in a channel share its rate. Source: the board's tables (SMBIOS, type 17)."
        ),
    )


def processor_link(cpu: Cpu) -> tuple[float, str] | None:
    """(bytes per second and direction of one link, what it is) between two sockets; None for processors not listed.

    Servers have two to four of them, which no file says: only the rate of one is given.
    """
    model = re.sub(r"\(R\)|\(TM\)", "", cpu.model or "")
    found = ((rate, words) for pattern, rate, words in _PROCESSOR_LINKS if re.search(pattern, model))
    return next(found, None)


def processor_link_words(cpu: Cpu) -> str:
    """' (UPI at 16 GT/s: 32.0 GB/s each, two to four of them)'; empty for processors not listed."""
    link = processor_link(cpu)
    return f" ({link[1]}: {link[0] / 1e9:.1f} GB/s each, two to four of them)" if link else ""


def device_copy(gpu: Gpu) -> Limits:
    """A copy within one GPU: every byte is read and written, so half of its memory's rate."""
    part = gpus.part(gpu)
    if part is None:
        return Limits(hard=False, why=f"The memory rate of {gpu.name!r} is not in the table of GPUs: no limit.")
    if part.memory is None:
        return Limits(hard=False, why=f"The memory rate of {part.name} is not known ({part.source}): no limit.")
    rate = part.memory / 2
    return Limits(
        now=rate,
        platform=rate,
        device=rate,
        hard=False,
        binding=f"memory of {gpu.name}, {part.memory / 1e9:.0f} GB/s",
        why=(
            f"{part.memory / 1e9:.0f} GB/s of memory ({part.source}) / 2 = {rate / 1e9:.0f} GB/s: a copy reads and "
            "writes every byte. Soft: the second-level cache can exceed it."
        ),
    )
