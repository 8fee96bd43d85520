"""The machine in one small table, and its links in another."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

from suite import units
from suite.records.case import HopWatch, LinkWatch
from suite.records.machine import Gpu, GpuPair, Hop, LinkState, Machine
from suite.records.path import path_to_root
from suite.records.run import Result, Run
from suite.report.remarks import pair_names
from suite.report.tables import words
from suite.report.tables.model import Cell, Column, Table, without_empty

_LINK_COLUMNS = (
    Column("GPU", "number"),
    Column("as found"),
    Column("under load"),
    Column("could be"),
    Column("card alone", drop=3, note="card alone: what the card could do in a slot that gives more"),
    Column("narrowest hop"),
    Column("errors", "number", drop=4),
    Column("GB/s", "number", drop=1),
    Column("ceiling", "number", drop=1),
    Column("%", "number"),
    Column("", "bar", drop=2),
    Column("verdict", "verdict"),
)
_OWN = "its own link"
# Bytes per bit of each lane: 8b/10b up to Gen2, 128b/130b to Gen5, 236 of 256 bytes of a flit from Gen6
# (PCI Express Base Specification). Used to order hops, not as a limit.
_ENCODING = {1: 0.8, 2: 0.8, 3: 128 / 130, 4: 128 / 130, 5: 128 / 130, 6: 236 / 256, 7: 236 / 256}


def machine(found: Machine) -> Table:
    """Name and value of what a reader needs to know the machine again."""
    rows = tuple((Cell(name), Cell(text)) for name, text in _facts(found) if text)
    return Table("Machine", (Column(""), Column("")), rows, notes=found.notes)


def links(run: Run) -> Table | None:
    """One row a GPU: its link as found, under load and as it could be, and the narrowest hop. None without GPUs."""
    if not run.machine.gpus:
        return None
    watched = {r.gpus[0]: r for r in run.results if r.operation == "link_under_load" and r.gpus}
    rows = tuple(_link(run.machine, gpu, watched.get(gpu.index)) for gpu in run.machine.gpus)
    notes = ("both ways at once: GB/s and ceiling are sums of the two directions",) if watched else ()
    return without_empty(Table("Links", _link_columns(rows), rows, notes))


def _link_columns(rows: Sequence[tuple[Cell, ...]]) -> tuple[Column, ...]:
    """The narrowest hop goes first on a narrow page where it is each card's own link, and stays where it is not."""
    names = [column.name for column in _LINK_COLUMNS]
    place = names.index("narrowest hop")
    if any(row[place].text not in (_OWN, words.UNKNOWN) for row in rows):
        return _LINK_COLUMNS
    return (*_LINK_COLUMNS[:place], replace(_LINK_COLUMNS[place], drop=5), *_LINK_COLUMNS[place + 1 :])


def state_now(hop: Hop, watch: LinkWatch | None) -> LinkState:
    """A hop under load, as found where it was not watched."""
    seen = next((h for h in (watch.hops if watch else ()) if h.lower == hop.lower), HopWatch(hop.lower))
    return seen.load if seen.load.known else hop.now


def rate(link: LinkState) -> float | None:
    """Bytes per second on the wire of one direction; None where speed or width is unknown. For ordering hops."""
    if link.gen is None or link.speed_gts is None or link.width is None:
        return None
    return link.speed_gts * 1e9 * _ENCODING[link.gen] / 8 * link.width


def narrowest(found: Machine, gpu: Gpu, watch: LinkWatch | None) -> tuple[Hop, LinkState] | None:
    """The hop that carries least and its state; None where no hop's state is known."""
    hops = path_to_root(found, gpu.address).hops if gpu.address else ()
    known = [(hop, state_now(hop, watch)) for hop in hops]
    rated = [(value, place) for place, (_, state) in enumerate(known) if (value := rate(state)) is not None]
    return known[min(rated)[1]] if rated else None


def _facts(found: Machine) -> Iterator[tuple[str, str]]:
    software, environment = found.software, found.environment
    yield "host", found.host_name or ""
    yield "board", _joined(environment.board, environment.bios and f"BIOS {environment.bios}")
    yield "processor", _processor(found)
    yield "NUMA nodes", _nodes(found)
    yield "GPUs", _gpus(found)
    yield "NVLink", _nvlinks(found)
    yield "driver", _joined(software.driver, software.cuda_driver and f"CUDA {software.cuda_driver}")
    yield "libraries", _libraries(found)
    yield "system", _joined(software.kernel, environment.virtual_machine, environment.container)
    yield "settings", " ".join(f"{name}={value}" for name, value in environment.variables)


def _joined(*parts: str | None) -> str:
    return ", ".join(part for part in parts if part)


def _processor(found: Machine) -> str:
    cpu = found.cpu
    sockets = f"{cpu.packages} × {cpu.model}" if cpu.packages and cpu.packages > 1 and cpu.model else cpu.model
    cores = f"{cpu.cores} cores" if cpu.cores else None
    return _joined(sockets, cores, f"{cpu.threads} threads" if cpu.threads else None)


def _nodes(found: Machine) -> str:
    """'2: 0 (64 CPUs, 256GiB), …'; nodes of one shape are counted together."""
    if not found.nodes:
        return ""
    shapes = Counter((len(n.cpus), n.memory_bytes) for n in found.nodes)
    return f"{len(found.nodes)}: " + ", ".join(
        f"{f'{count} × ' if count > 1 else ''}{cpus} CPUs, {_memory(size)}" for (cpus, size), count in shapes.items()
    )


def _memory(size: int | None) -> str:
    if size is None:
        return "memory unknown"
    return f"{size / units.GIB:.0f} GiB" if size else "no memory"


def _gpus(found: Machine) -> str:
    if not found.gpus:
        return f"none: {found.why_no_gpu}" if found.why_no_gpu else "none"
    names = Counter(gpu.name for gpu in found.gpus)
    return ", ".join(f"{count} × {name}" for name, count in names.items())


def _nvlinks(found: Machine) -> str:
    """'18 links of 26.6 GB/s each way through NVSwitch: GPU pair 0-1'; pairs that are alike share the words."""
    alike: dict[str, list[GpuPair]] = {}
    for pair in found.pairs:
        if pair.nvlinks:
            alike.setdefault(bond(found, pair), []).append(pair)
    return "; ".join(f"{text}: {pair_names(pairs, len(found.pairs))}" for text, pairs in alike.items())


def bond(found: Machine, pair: GpuPair) -> str:
    """The NVLinks of a pair in words: '18 links of 26.6 GB/s each way through NVSwitch'."""
    gpu = found.gpu(pair.first)
    active = [link for link in gpu.nvlinks if link.active] if gpu else []
    rates = {link.rate for link in active}
    rate = rates.pop() if len(rates) == 1 else None
    each = f" of {units.format_bandwidth(rate)} each way" if rate else ""
    switched = " through NVSwitch" if any(link.remote == "switch" for link in active) else ""
    return f"{pair.nvlinks} link{'s' if pair.nvlinks != 1 else ''}{each}{switched}"


def _libraries(found: Machine) -> str:
    software = found.software
    named = (("NCCL", software.nccl), ("torch", software.torch), ("cupy", software.cupy))
    return ", ".join(f"{name} {version}" for name, version in named if version)


def _link(found: Machine, gpu: Gpu, result: Result | None) -> tuple[Cell, ...]:
    watch = result.link if result else None
    path = path_to_root(found, gpu.address) if gpu.address else None
    own = path.hops[0] if path and path.hops else None
    idle = watch.idle if watch and watch.idle.known else (own.now if own and own.now.known else gpu.link)
    load = watch.load if watch and watch.readings else LinkState()
    could = own.possible if own and own.possible.known else gpu.link_max
    alone = gpu.link_device if gpu.link_device.known else (own.lower_max if own else LinkState())
    return (
        Cell(str(gpu.index), sort=gpu.index),
        *(_state(link) for link in (idle, load, could)),
        _state(alone) if alone != could else Cell(""),
        Cell(_narrowest(found, gpu, watch)),
        _errors(watch),
        *_rates(result),
    )


def _state(link: LinkState) -> Cell:
    return Cell(str(link) if link != LinkState() else words.UNKNOWN, sort=rate(link))


def _narrowest(found: Machine, gpu: Gpu, watch: LinkWatch | None) -> str:
    """'its own link', or the hop above it that carries less."""
    found_hop = narrowest(found, gpu, watch)
    if found_hop is None:
        return words.UNKNOWN
    hop, state = found_hop
    if hop.lower == gpu.address:
        return _OWN
    return f"{short_address(hop.lower)} {state}"


def short_address(address: str) -> str:
    """A PCI address without domain 0000."""
    return address.removeprefix("0000:")


def _errors(watch: LinkWatch | None) -> Cell:
    """Replays and AER errors while the transfer ran, all hops and both ends; '–' where none of them is counted."""
    counted = (watch.replays, watch.aer_correctable, watch.aer_uncorrectable) if watch else ()
    known = [count for count in counted if count is not None]
    return Cell(str(sum(known)), sort=sum(known)) if known else Cell(words.UNKNOWN)


def _rates(result: Result | None) -> Sequence[Cell]:
    if result is None:
        return [Cell(words.UNKNOWN)] * 3 + [Cell(""), Cell("not measured")]
    return [
        Cell(words.measured(result).text, sort=result.bandwidth),
        words.ceiling(result),
        words.percent(result),
        words.bar(result),
        words.verdict([result]),
    ]
