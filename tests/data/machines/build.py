"""Builds the simulated machines beside this file. Run `python -m tests.data.machines.build` after a change.

Every machine is made up: its shape is that of common servers, no value is copied from one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec

from suite.records.machine import (
    AerCounters,
    Cpu,
    Environment,
    Gpu,
    GpuPair,
    LinkState,
    Machine,
    NumaNode,
    NvLink,
    PcieConfig,
    PciFunction,
)
from suite.records.path import narrowest, topology
from suite.records.scenario import Fault, Scenario
from suite.units import GIB, MIB

HERE = Path(__file__).parent
GEN = {1: 2.5, 2: 5.0, 3: 8.0, 4: 16.0, 5: 32.0}
BRIDGE, DISPLAY = 0x060400, 0x030200


def link(gen: int, width: int) -> LinkState:
    """A PCIe link by generation and width."""
    return LinkState(GEN[gen], width)


def node(index: int, count: int, *, cores: int = 32, package: int | None = None) -> NumaNode:
    """A NUMA node of single-threaded cores with 256 GiB; distance 10 to itself and 21 to every other."""
    cpus = tuple(range(index * cores, (index + 1) * cores))
    return NumaNode(
        index=index,
        cpus=cpus,
        cores=tuple((cpu,) for cpu in cpus),
        memory_bytes=256 * GIB,
        free_bytes=200 * GIB,
        distances=tuple(10 if other == index else 21 for other in range(count)),
        packages=(index if package is None else package,),
    )


def nodes(count: int, cores: int = 32) -> tuple[NumaNode, ...]:
    """One node a socket."""
    return tuple(node(i, count, cores=cores) for i in range(count))


def function(address: str, parent: str | None, most: LinkState, **fields: Any) -> PciFunction:
    """A PCI function whose config space was read: MPS 256, MRRS 512; it idles at Gen1 unless `link` says otherwise."""
    given = {
        "link": LinkState(GEN[1], most.width),
        "class_code": BRIDGE,
        "config": PcieConfig(mps=256, mps_supported=512, mrrs=512, extended_tags=True, target_speed_gts=most.speed_gts),
        "aer": AerCounters(0, 0, 0),
    }
    return PciFunction(address=address, parent=parent, link_max=most, **{**given, **fields})


def port(address: str, most: LinkState, node_index: int, parent: str | None = None, **fields: Any) -> PciFunction:
    """A root port, or with a parent a switch port."""
    kind = "root_port" if parent is None else fields.pop("port_type", "downstream_port")
    bus = f"pci0000:{address[5:7]}" if parent is None else None
    return function(address, parent, most, port_type=kind, root_bus=bus, numa_node=node_index, **fields)


def endpoint(address: str, parent: str | None, most: LinkState, node_index: int | None, **fields: Any) -> PciFunction:
    """A GPU's PCI function. Its root bus is its own where nothing is above it."""
    bus = None if parent else f"pci0000:{address[5:7]}"
    return function(
        address, parent, most, port_type="endpoint", class_code=DISPLAY, numa_node=node_index, root_bus=bus, **fields
    )


def slot(
    gpu_bus: str, root: str, most: LinkState, node_index: int, slot_most: LinkState | None = None
) -> list[PciFunction]:
    """A root port and the GPU in it; the link idles as wide as both ends are."""
    idle = replace(narrowest(most, slot_most or most), speed_gts=GEN[1])
    return [port(root, slot_most or most, node_index, link=idle), endpoint(gpu_bus, root, most, node_index, link=idle)]


def card(index: int, name: str, pci: Sequence[PciFunction], address: str, **fields: Any) -> Gpu:
    """A GPU as NVML shows it beside its PCI function."""
    own = next(f for f in pci if f.address == address)
    above = next((f for f in pci if f.address == own.parent), None)
    given: dict[str, Any] = {
        "address": address,
        "numa_node": own.numa_node,
        "memory_bytes": 48 * GIB,
        "memory_free_bytes": 47 * GIB,
        "bar1_bytes": 64 * GIB,
        "link": own.link,
        "link_max": narrowest(own.link_max, above.link_max) if above else own.link_max,
        "link_device": own.link_max,
        "performance_state": 8,
        "utilization": 0.0,
        "processes": 0,
        "replays": 0,
    }
    return Gpu(index=index, name=name, **{**given, **fields})


def machine(
    pci: Sequence[PciFunction], gpus: Sequence[Gpu], numa: Sequence[NumaNode], p2p: str = "OK", nvlinks: int = 0
) -> Machine:
    """A machine with every pair of GPUs worked out from its PCI tree."""
    bare = Machine(
        nodes=tuple(numa),
        cpu=Cpu(model="Simulated CPU", packages=len({p for n in numa for p in n.packages}), cache_bytes=64 * MIB),
        pci=tuple(pci),
        gpus=tuple(gpus),
        environment=Environment(root=True, shm_bytes=64 * GIB),
    )
    pairs = [_pair(bare, a, b, p2p, nvlinks) for a in gpus for b in gpus if a.index < b.index]
    return replace(bare, pairs=tuple(pairs))


def _pair(bare: Machine, one: Gpu, other: Gpu, p2p: str, nvlinks: int) -> GpuPair:
    near = topology(bare, one.address or "", other.address or "")
    return GpuPair(one.index, other.index, near, near, p2p, p2p, p2p, nvlinks or None)


def two_pcie(name: str = "RTX PRO 6000", gen: int = 5, p2p: str = "OK", **fields: Any) -> Machine:
    """Two GPUs, one in a x16 slot of each socket."""
    pci = [
        *slot("0000:21:00.0", "0000:20:01.0", link(gen, 16), 0),
        *slot("0000:a1:00.0", "0000:a0:01.0", link(gen, 16), 1),
    ]
    cards = [card(i, name, pci, a, **fields) for i, a in enumerate(("0000:21:00.0", "0000:a1:00.0"))]
    return machine(pci, cards, nodes(2), p2p)


def one_gen3() -> Machine:
    """One Gen3 GPU on node 0 of two."""
    pci = slot("0000:02:00.0", "0000:00:02.0", link(3, 16), 0)
    return machine(pci, [card(0, "P100", pci, "0000:02:00.0", memory_bytes=16 * GIB)], nodes(2, 10))


def four_nodes() -> Machine:
    """One Gen4 GPU in a processor with four NUMA nodes."""
    pci = slot("0000:41:00.0", "0000:40:01.0", link(4, 16), 1)
    numa = [node(i, 4, cores=8, package=0) for i in range(4)]
    return machine(pci, [card(0, "L40S", pci, "0000:41:00.0")], numa)


def x4_hop() -> Machine:
    """Two Gen4 x8 cards; the second one hangs off the chipset, whose uplink is x4."""
    pci = [
        *slot("0000:01:00.0", "0000:00:01.0", link(4, 16), 0, link(4, 8)),
        port("0000:00:1c.0", link(4, 4), 0),
        port("0000:02:00.0", link(4, 4), 0, "0000:00:1c.0", port_type="upstream_port"),
        port("0000:03:00.0", link(4, 8), 0, "0000:02:00.0"),
        endpoint("0000:04:00.0", "0000:03:00.0", link(4, 16), 0, link=link(1, 8)),
    ]
    cards = [card(i, "RTX 3090", pci, a) for i, a in enumerate(("0000:01:00.0", "0000:04:00.0"))]
    return machine(pci, cards, nodes(1, 16), p2p="CNS")


def geforces() -> Machine:
    """Three cards without P2P: two below one switch, one on the other socket."""
    most, up = link(4, 16), "0000:11:00.0"
    pci = [port("0000:10:01.0", most, 0), port(up, most, 0, "0000:10:01.0", port_type="upstream_port")]
    for k in range(2):
        pci += [port(f"0000:12:0{k}.0", most, 0, up), endpoint(f"0000:1{3 + k}:00.0", f"0000:12:0{k}.0", most, 0)]
    pci += slot("0000:81:00.0", "0000:80:01.0", most, 1)
    addresses = ("0000:13:00.0", "0000:14:00.0", "0000:81:00.0")
    return machine(pci, [card(i, "RTX 4090", pci, a) for i, a in enumerate(addresses)], nodes(2), p2p="GNS")


def narrow_edge() -> Machine:
    """A card with a switch of its own: the GPU says Gen5 x16, the card's edge is Gen4 x8."""
    edge, inner = link(4, 8), link(5, 16)
    pci = [
        port("0000:00:01.0", edge, 0),
        port("0000:01:00.0", edge, 0, "0000:00:01.0", port_type="upstream_port"),
        port("0000:02:01.0", inner, 0, "0000:01:00.0"),
        endpoint("0000:03:00.0", "0000:02:01.0", inner, 0),
    ]
    return machine(pci, [card(0, "card", pci, "0000:03:00.0")], nodes(1))


def virtual(gpu: Gpu, own: PciFunction) -> Machine:
    """One GPU passed through to a virtual machine that shows no bridge."""
    bare = machine([own], [gpu], nodes(1, 16))
    return replace(bare, environment=replace(bare.environment, virtual_machine="kvm"))


def blank_link() -> Machine:
    """A virtual machine whose GPU tells neither speed nor width."""
    own = replace(
        endpoint("0000:00:05.0", None, LinkState(), 0), link=LinkState(), config=None, config_note="needs root"
    )
    return virtual(card(0, "V100", [own], own.address, memory_bytes=16 * GIB, replays=None), own)


def h200() -> Machine:
    """One Gen5 GPU passed through; it does not lower its link at idle."""
    most = link(5, 16)
    own = endpoint("0000:00:06.0", None, most, 0, link=most, config=PcieConfig(mps=256, mps_supported=256, mrrs=4096))
    return virtual(card(0, "H200", [own], own.address, memory_bytes=141 * GIB, bar1_bytes=256 * GIB), own)


def cloud_x8() -> Machine:
    """Four equal x16 cards in a virtual machine, all of them wired x8."""
    most = link(4, 16)
    own = [endpoint(f"0000:00:{1 + i:02x}.0", None, most, 0, link=link(4, 8)) for i in range(4)]
    bare = machine(own, [card(i, "L40S", own, f.address) for i, f in enumerate(own)], nodes(1, 48), p2p="CNS")
    return replace(bare, environment=replace(bare.environment, virtual_machine="kvm"))


def a6000s() -> Machine:
    """Two workstation cards, one a socket, with NVLink connectors, no bridge, and a waiting server on both."""
    links = tuple(NvLink(i, active=False, version=3) for i in range(4))
    return two_pcie("RTX A6000", 4, nvlinks=links, processes=1, processes_bytes=44 * GIB, memory_free_bytes=4 * GIB)


def small_bar1() -> Machine:
    """One Gen4 card of which the firmware maps 256 MiB only."""
    pci = slot("0000:01:00.0", "0000:00:01.0", link(4, 16), 0)
    return machine(
        pci, [card(0, "RTX 3090", pci, "0000:01:00.0", memory_bytes=24 * GIB, bar1_bytes=256 * MIB)], nodes(1, 16)
    )


def nps4() -> Machine:
    """Two sockets of four NUMA nodes each; GPU0 and GPU1 are on two nodes of one socket, GPU2 is on the other."""
    places = (
        ("0000:01:00.0", "0000:00:01.0", 0),
        ("0000:41:00.0", "0000:40:01.0", 2),
        ("0000:81:00.0", "0000:80:01.0", 5),
    )
    pci = [f for gpu, root, node_index in places for f in slot(gpu, root, link(4, 16), node_index)]
    cards = [card(i, "L40S", pci, gpu) for i, (gpu, _, _) in enumerate(places)]
    return machine(pci, cards, [node(i, 8, cores=8, package=i // 4) for i in range(8)])


def h100_nvl() -> Machine:
    """Two PCIe cards joined by bridges: 12 NVLinks, where the SXM part has 18."""
    bare = two_pcie("H100 NVL", 5)
    cards = tuple(
        replace(
            gpu,
            nvlinks=tuple(
                NvLink(i, active=True, version=4, remote="gpu", remote_address=bare.gpus[1 - gpu.index].address)
                for i in range(12)
            ),
        )
        for gpu in bare.gpus
    )
    return replace(bare, gpus=cards, pairs=(replace(bare.pairs[0], nvlinks=12),))


def eight_pcie() -> Machine:
    """Eight Gen5 GPUs below four switches, two switches a socket."""
    return switched(2)


def switched(each: int, redirecting: Sequence[int] = ()) -> Machine:
    """Gen5 GPUs below four switches, two switches a socket. redirecting: switches whose ports redirect peer traffic."""
    most, pci, addresses = link(5, 16), [], []
    for i, bus in enumerate((0x10, 0x40, 0x80, 0xC0)):
        root, up = f"0000:{bus:02x}:01.0", f"0000:{bus + 1:02x}:00.0"
        pci += [port(root, most, i // 2), port(up, most, i // 2, root, port_type="upstream_port")]
        for k in range(each):
            down, gpu = f"0000:{bus + 2:02x}:{k:02x}.0", f"0000:{bus + 3 + k:02x}:00.0"
            below = port(down, most, i // 2, up)
            pci += [redirects(below) if i in redirecting else below, endpoint(gpu, down, most, i // 2)]
            addresses.append(gpu)
    return machine(pci, [card(i, "RTX PRO 6000", pci, a) for i, a in enumerate(addresses)], nodes(2, 48))


def redirects(one: PciFunction) -> PciFunction:
    """A port whose ACS settings send peer traffic to the root complex."""
    return replace(one, config=replace(one.config, acs=("SrcValid", "ReqRedir", "CmpltRedir"), acs_redirect=True))


def bridged() -> Machine:
    """Four workstation cards in two sockets; an NVLink bridge joins the two of each socket."""
    pci = [
        f
        for i, bus in enumerate((0x21, 0x41, 0x81, 0xA1))
        for f in slot(f"0000:{bus:02x}:00.0", f"0000:{bus - 1:02x}:01.0", link(4, 16), i // 2)
    ]
    addresses = [f.address for f in pci if f.class_code == DISPLAY]
    cards = [
        card(
            i,
            "RTX A6000",
            pci,
            a,
            nvlinks=tuple(NvLink(k, True, 3, "gpu", addresses[i ^ 1], 14.0625e9) for k in range(4)),
        )
        for i, a in enumerate(addresses)
    ]
    bare = machine(pci, cards, nodes(2))
    return replace(bare, pairs=tuple(replace(p, nvlinks=4 if p.second == p.first ^ 1 else None) for p in bare.pairs))


def nvswitch() -> Machine:
    """Eight SXM GPUs, each with 18 NVLinks to the switches and a root port of its own."""
    links = tuple(NvLink(i, active=True, version=4, remote="switch", rate=25e9) for i in range(18))
    pci = [
        f for i in range(8) for f in slot(f"0000:{16 * i + 1:02x}:00.0", f"0000:{16 * i:02x}:01.0", link(5, 16), i // 4)
    ]
    cards = [card(i, "H100 SXM", pci, f"0000:{16 * i + 1:02x}:00.0", nvlinks=links) for i in range(8)]
    return machine(pci, cards, nodes(2, 56), nvlinks=18)


def c2c() -> Machine:
    """Two GPUs, each joined to a processor by a coherent link instead of PCIe."""
    own = [endpoint(f"000{8 + i}:01:00.0", None, link(5, 16), i, link=link(5, 16)) for i in range(2)]
    return machine(
        own, [card(i, "GB200", own, f.address, c2c=True) for i, f in enumerate(own)], nodes(2, 72), nvlinks=18
    )


GPU1 = "0000:a1:00.0"
GEN1 = Fault("link_state", gpu=1, address=GPU1, link=link(1, 16))


def scenarios() -> dict[str, Scenario]:
    """Every machine by its file's name."""
    pcie = two_pcie()
    return {
        "2xpcie": Scenario(pcie, title="two Gen5 x16 GPUs, one a socket, in order"),
        "2xpcie-gpu1-gen1": Scenario(pcie, (GEN1,), title="GPU1 trains at Gen1 x16 under load"),
        "2xpcie-wrong-bytes": Scenario(
            pcie,
            tuple(Fault("wrong_bytes", gpu=0, peer=1, group=group) for group in ("peer_copy", "allreduce")),
            title="what goes from GPU to GPU arrives wrong",
        ),
        "2xpcie-hang": Scenario(pcie, (Fault("hang", gpu=1, group="allreduce"),), title="allreduce never answers"),
        "2xpcie-link-errors": Scenario(
            pcie,
            (Fault("link_errors", gpu=1, address=GPU1, rate=225.0),),
            title="GPU1's link counts 225 errors a second",
        ),
        "2xpcie-no-p2p": Scenario(two_pcie("RTX 4090", 4, p2p="GNS"), title="two GeForce cards: no P2P by design"),
        "3xpcie-no-p2p-switch": Scenario(geforces(), title="three GeForce cards, two of them below one switch"),
        "1xpcie-narrow-edge": Scenario(narrow_edge(), title="a Gen5 x16 GPU on a card whose edge is Gen4 x8"),
        "1xpcie-far-node": Scenario(
            one_gen3(),
            (Fault("node_to_gpu_capacity", gpu=0, node=1, rate=3.2e9),),
            title="the far node reaches the GPU at a quarter of the near one's rate",
        ),
        "1xpcie-4-nodes": Scenario(four_nodes(), title="four NUMA nodes, all alike"),
        "2xpcie-x4-hop": Scenario(x4_hop(), title="GPU1 hangs off a x4 chipset uplink"),
        "1xvm-blank-link": Scenario(
            blank_link(),
            (Fault("link_state", gpu=0, address="0000:00:05.0", link=link(3, 16)),),
            title="a virtual machine that hides the link",
        ),
        "1xvm-h200": Scenario(h200(), title="one Gen5 GPU in a virtual machine"),
        "4xvm-x8": Scenario(
            cloud_x8(),
            tuple(Fault("link_state", gpu=i, address=f"0000:00:{1 + i:02x}.0", link=link(4, 8)) for i in range(4)),
            title="x16 cards wired x8 by design",
        ),
        "2xa6000": Scenario(a6000s(), title="two A6000 with a waiting server, no NVLink bridge"),
        "2xa6000-gpu1-gen1": Scenario(a6000s(), (GEN1,), title="the same, GPU1 stays at Gen1 under load"),
        "1xsmall-bar1": Scenario(small_bar1(), title="a card of which 256 MiB are mapped"),
        "3xnps4": Scenario(nps4(), title="two sockets of four NUMA nodes each; three GPUs on three nodes"),
        "2xh100-nvl": Scenario(h100_nvl(), title="two PCIe H100 joined by 12 NVLinks"),
        "8xpcie-switches": Scenario(eight_pcie(), title="eight GPUs below four switches, two sockets"),
        "8xpcie-hung-pair": Scenario(
            eight_pcie(), (Fault("hang", gpu=2, peer=5, group="peer_copy"),), title="peer copies of GPU2 and GPU5 hang"
        ),
        "16xpcie-switches": Scenario(switched(4), title="sixteen GPUs below four switches, two sockets"),
        "16xpcie-three-faults": Scenario(
            switched(4, redirecting=(0,)),
            (
                *(Fault("pair_capacity", gpu=a, peer=b, rate=9.9e9) for a in range(4) for b in range(a + 1, 4)),
                Fault("wrong_bytes", gpu=5, peer=9, group="peer_copy"),
                Fault("pair_capacity", gpu=12, peer=14, rate=20e9),
            ),
            title="sixteen GPUs: the first switch redirects, one pair delivers wrong bytes, one is slow",
        ),
        "4xnvlink-bridges": Scenario(bridged(), title="four cards in two sockets, an NVLink bridge a socket"),
        "2xpcie-far-slow": Scenario(
            pcie,
            (Fault("pair_capacity", gpu=0, peer=1, rate=25e9),),
            title="peer copies across the sockets are slower than staged ones, as on many servers",
        ),
        "8xnvswitch": Scenario(nvswitch(), title="eight SXM GPUs on NVSwitch"),
        "2xc2c": Scenario(
            c2c(),
            tuple(Fault("node_to_gpu_capacity", gpu=g, node=1 - g, rate=115e9) for g in range(2)),
            title="coherent links; the far node is three times slower",
        ),
    }


def text(scenario: Scenario) -> str:
    """A scenario as JSON; what is unknown is left out."""
    plain = _known(msgspec.to_builtins(scenario))
    return msgspec.json.format(msgspec.json.encode(plain), indent=1).decode() + "\n"


def _known(value: Any) -> Any:
    if isinstance(value, dict):
        found = {key: _known(item) for key, item in value.items()}
        return {key: item for key, item in found.items() if item is not None and item != [] and item != {}}
    return [_known(item) for item in value] if isinstance(value, list | tuple) else value


def main() -> None:
    """Writes every scenario beside this file."""
    for name, scenario in scenarios().items():
        (HERE / f"{name}.json").write_text(text(scenario), encoding="utf-8")


if __name__ == "__main__":
    main()
