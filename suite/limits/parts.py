"""What NVIDIA's GPUs are built with: memory, PCIe link, NVLink. Kept by hand; each row says where its figures stand.

Device ids: NVIDIA's open-gpu-kernel-modules 595.45.04, README.md, which also gives NVML's names; older and missing
ones: the PCI ID Repository (pci-ids.ucw.cz), 2026.08.22. Memory and link: the document in the row, else the
TechPowerUp GPU database as of December 2025, which also has the link of every row that names another document; it
rounds what is above 1000 GB/s, so there 512 bit × 28 Gbit/s and the like were reckoned again. Documents were read in
public copies or as others cite them. Rates are per direction; data sheets print both directions of NVLink together.
None: not known. NVLink is None also where a part has none: its rate then comes from the version that NVML gives.
"""

from __future__ import annotations

from dataclasses import dataclass

from suite.records.machine import GENERATION_GTS, LinkState


@dataclass(frozen=True)
class Part:
    """One GPU product. memory: bytes per second. nvlinks × nvlink_rate: bytes per second and direction.

    names: as NVML gives them, without NVIDIA, Tesla, GeForce. Parts may share an id or a name: see gpus.part.
    """

    device_ids: tuple[int, ...]
    names: tuple[str, ...]
    memory: float | None
    link: LinkState
    source: str
    nvlinks: int | None = None
    nvlink_rate: float | None = None

    @property
    def name(self) -> str:
        """The first of its names."""
        return self.names[0]


def _part(
    ids: tuple[int, ...],
    names: str | tuple[str, ...],
    memory_gb: float | None,
    link: LinkState,
    source: str,
    nvlink: tuple[int, float] | None = None,
) -> Part:
    """A row. memory_gb in GB/s; nvlink: links, GB/s of each and direction."""
    links, rate = (nvlink[0], nvlink[1] * 1e9) if nvlink else (None, None)
    memory = None if memory_gb is None else memory_gb * 1e9
    return Part(ids, (names,) if isinstance(names, str) else names, memory, link, source, links, rate)


_GEN3 = LinkState(GENERATION_GTS[3], 16)
_GEN4 = LinkState(GENERATION_GTS[4], 16)
_GEN5 = LinkState(GENERATION_GTS[5], 16)
_GEN4_X8 = LinkState(GENERATION_GTS[4], 8)
_GEN5_X8 = LinkState(GENERATION_GTS[5], 8)
_UNKNOWN = LinkState()

_TPU = "TechPowerUp GPU database"
_DELL = "Dell EMC Ready Solutions for AI: Deep Learning with NVIDIA, reference guide v1.0, page 17"
_A100 = "NVIDIA A100 datasheet (1758950-r4)"
_NVLINK3 = "Wikipedia, NVLink: 12 links of A100, 600 GB/s"
_GA102 = "NVIDIA Ampere GA102 whitepaper: four NVLinks of 14.0625 GB/s"
_H800 = "NVIDIA H800 datasheet"
_H100_MLPERF = "MLPerf Inference v3.1, NVIDIA's DGX-H100: 18 NVLinks, 900 GB/s"
_H200_MLPERF = "MLPerf Inference v4.1, NVIDIA's H200-SXM-141GBx8: 18 NVLinks, 900 GB/s"
_BLACKWELL = "NVIDIA Blackwell datasheet (3384703): NVLink 1.8 TB/s; 18 links: MLPerf Inference v6.0 systems"
_TWO_MEMORIES = f"link: {_TPU}; memory not known: cards with slower and with faster memory bear this name"

_DATA_CENTRE: tuple[Part, ...] = (
    _part((0x15F9,), "P100-SXM2-16GB", 732, _GEN3, f"{_DELL}: 732 GB/s, NVLink 80 GB/s", (4, 20.0)),
    _part((0x15F8,), "P100-PCIE-16GB", 732.2, _GEN3, _TPU),
    _part((0x15F7,), "P100-PCIE-12GB", 549.1, _GEN3, _TPU),
    _part((0x1DB1,), "V100-SXM2-16GB", 900, _GEN3, f"{_DELL}: 900 GB/s, six NVLinks of 25 GB/s", (6, 25.0)),
    _part((0x1DB5,), "V100-SXM2-32GB", 900, _GEN3, f"{_DELL}: 900 GB/s, six NVLinks of 25 GB/s", (6, 25.0)),
    _part((0x1DB8,), "V100-SXM3-32GB", 981, _GEN3, _TPU),
    _part((0x1DB4,), "V100-PCIE-16GB", 900, _GEN3, "NVIDIA Tesla V100 PCIe product brief (PB-08744-001)"),
    _part((0x1DB6,), "V100-PCIE-32GB", 900, _GEN3, "NVIDIA Tesla V100 PCIe product brief (PB-08744-001)"),
    _part((0x1DF6,), "V100S-PCIE-32GB", 1134, _GEN3, "NVIDIA AI Enterprise 6, vGPU reference, Volta"),
    _part((0x1EB8,), "T4", 320, _GEN3, _TPU),
    _part((0x20B0,), "A100-SXM4-40GB", 1555, _GEN4, f"{_A100}; {_NVLINK3}", (12, 25.0)),
    _part((0x20B2,), "A100-SXM4-80GB", 2039, _GEN4, f"{_A100}; {_NVLINK3}", (12, 25.0)),
    _part((0x20B1, 0x20F1), "A100-PCIE-40GB", 1555, _GEN4, _A100),
    _part((0x20B5,), "A100 80GB PCIe", 1935, _GEN4, _A100),
    _part((0x20F3,), "A800-SXM4-80GB", 2040, _GEN4, _TPU),
    _part((0x20F5,), "A800 80GB PCIe", 1940, _GEN4, _TPU),
    _part((0x20F6,), "A800 40GB Active", 1555.2, _GEN4, "NVIDIA, A800 40GB Active, product page"),
    _part((0x20B7,), "A30", 933, _GEN4, "NVIDIA A30 datasheet"),
    _part((0x25B6,), "A2", 200.1, _GEN4_X8, _TPU),
    _part((0x25B6,), "A16", 200.1, _GEN4_X8, f"{_TPU}: each of the four GPUs of the board"),
    _part((0x2236,), "A10", 600, _GEN4, "NVIDIA A10 datasheet"),
    _part((0x2237,), "A10G", 600.2, _GEN4, _TPU),
    _part((0x2235,), "A40", 696, _GEN4, f"NVIDIA A40 datasheet: also NVLink 112.5 GB/s; {_GA102}", (4, 14.0625)),
    _part((0x27B8,), "L4", 300, _GEN4, "NVIDIA L4 product brief (PB-11316-001)"),
    _part((0x26B7, 0x26BA), "L20", 864, _GEN4, _TPU),
    _part((0x26B5,), "L40", 864, _GEN4, "NVIDIA, L40, product page"),
    _part((0x26B9,), "L40S", 864, _GEN4, "NVIDIA, L40S, product page"),
    _part((0x2321,), "H100 NVL", 3900, _GEN5, "NVIDIA, H100, product page"),
    _part((0x2331,), "H100 PCIe", 2040, _GEN5, f"{_TPU}; H100 PCIe product brief (PB-11133-001): above 2000 GB/s"),
    _part((0x2330,), "H100 80GB HBM3", 3350, _GEN5, f"NVIDIA H100 datasheet; {_H100_MLPERF}", (18, 25.0)),
    _part((0x2324,), "H800", 3350, _GEN5, _H800),
    _part((0x2322,), "H800 PCIe", 2040, _GEN5, _TPU),
    _part((0x233B,), "H200 NVL", 4800, _GEN5, "NVIDIA, H200, product page"),
    _part((0x2335,), "H200", 4800, _GEN5, f"NVIDIA H200 datasheet; {_H200_MLPERF}", (18, 25.0)),
    # Superchips: the GPU hangs on the processor by NVLink-C2C; what NVML shows as its PCIe link is not documented.
    _part((0x2342,), ("GH200 480GB", "GH200 120GB"), 4000, _UNKNOWN, "NVIDIA GH200 datasheet (3773000): 96 GB HBM3"),
    _part((0x2348,), "GH200 144G HBM3e", 4900, _UNKNOWN, "NVIDIA GH200 datasheet (3773000)"),
    _part((0x2941,), "GB200", 8000, _UNKNOWN, _BLACKWELL, (18, 50.0)),
    _part((0x2901,), "B200", 7700, _GEN5, f"{_BLACKWELL}; 7.7 TB/s and PCIe Gen5: HGX B200", (18, 50.0)),
    _part((0x3182,), "B300 SXM6 AC", 8000, _UNKNOWN, "Verda, NVIDIA B200 & B300; PCIe link: sources disagree"),
)

_SERVER_EDITION = f"NVIDIA, RTX PRO 6000 Blackwell Server Edition, product page: 1597 GB/s; link: {_TPU}"
_RTX_PRO_6000 = "NVIDIA RTX PRO 6000 Blackwell Workstation Edition datasheet (3519208)"
_WORKSTATION: tuple[Part, ...] = (
    _part((0x1E30,), ("Quadro RTX 6000", "Quadro RTX 8000"), 672, _GEN3, "NVIDIA Quadro RTX 6000, 8000 datasheets"),
    _part((0x1EB0,), "Quadro RTX 5000", 448, _GEN3, "NVIDIA Quadro RTX 5000 datasheet"),
    _part((0x1EB1,), "Quadro RTX 4000", 416, _GEN3, _TPU),
    _part((0x2230,), "RTX A6000", 768, _GEN4, f"NVIDIA RTX A6000 datasheet; {_GA102}", (4, 14.0625)),
    _part((0x2233,), "RTX A5500", 768, _GEN4, f"NVIDIA RTX A5500 datasheet; {_GA102}", (4, 14.0625)),
    _part((0x2231,), "RTX A5000", 768, _GEN4, f"NVIDIA, RTX A5000, product page; {_GA102}", (4, 14.0625)),
    _part((0x2232,), "RTX A4500", 640, _GEN4, f"{_TPU}; {_GA102}", (4, 14.0625)),
    _part((0x24B0,), "RTX A4000", 448, _GEN4, "NVIDIA RTX A4000 datasheet"),
    _part((0x2531,), "RTX A2000", 288, _GEN4, _TPU),
    _part((0x2571,), "RTX A2000 12GB", 288, _GEN4, _TPU),
    _part((0x25B0,), "RTX A1000", 192, _GEN4_X8, _TPU),
    _part((0x25B2,), "RTX A400", 96, _GEN4_X8, _TPU),
    _part((0x26B1,), "RTX 6000 Ada Generation", 960, _GEN4, "NVIDIA, RTX 6000 Ada Generation, product page"),
    _part(
        (0x26B3,), "RTX 5880 Ada Generation", None, _GEN4, f"link: {_TPU}; memory: sources disagree, 864 and 960 GB/s"
    ),
    _part((0x26B2,), "RTX 5000 Ada Generation", 576, _GEN4, "NVIDIA, RTX 5000 Ada Generation, product page"),
    _part((0x27B1,), "RTX 4500 Ada Generation", 432, _GEN4, "NVIDIA, RTX 4500 Ada Generation, product page"),
    _part((0x27B2,), "RTX 4000 Ada Generation", 360, _GEN4, _TPU),
    _part((0x27B0,), "RTX 4000 SFF Ada Generation", 280, _GEN4, _TPU),
    _part((0x28B0,), "RTX 2000 Ada Generation", 256, _GEN4_X8, _TPU),
    _part((0x28B0,), "RTX 2000E Ada Generation", None, _UNKNOWN, "no public figure found"),
    _part((0x2BB5,), "RTX PRO 6000 Blackwell Server Edition", 1597, _GEN5, _SERVER_EDITION),
    _part((0x2BB1,), "RTX PRO 6000 Blackwell Workstation Edition", 1792, _GEN5, _RTX_PRO_6000),
    _part(
        (0x2BB4,),
        "RTX PRO 6000 Blackwell Max-Q Workstation Edition",
        1792,
        _GEN5,
        "NVIDIA RTX PRO 6000 Blackwell Max-Q Workstation Edition datasheet (3519233)",
    ),
    _part(
        (0x2BB3,),
        ("RTX PRO 5000 Blackwell", "RTX PRO 5000 72GB Blackwell"),
        1344,
        _GEN5,
        "NVIDIA RTX PRO 5000 Blackwell datasheet (3658700)",
    ),
    _part((0x2C31,), "RTX PRO 4500 Blackwell", 896, _GEN5, "NVIDIA RTX PRO 4500 Blackwell datasheet (5108623)"),
    _part((0x2C34,), "RTX PRO 4000 Blackwell", 672, _GEN5, "NVIDIA RTX PRO 4000 Blackwell datasheet"),
    _part(
        (0x2C33,),
        "RTX PRO 4000 Blackwell SFF Edition",
        432,
        _GEN5_X8,
        "NVIDIA RTX PRO 4000 Blackwell SFF datasheet (4016700)",
    ),
    _part((0x2D30,), "RTX PRO 2000 Blackwell", 288, _GEN5_X8, _TPU),
)

_CONSUMER: tuple[Part, ...] = (
    _part((0x1D81,), "TITAN V", 651.3, _GEN3, _TPU),
    _part((0x1E02,), "TITAN RTX", 672, _GEN3, _TPU),
    _part((0x1E04, 0x1E07), "RTX 2080 Ti", 616, _GEN3, _TPU),
    _part((0x1E81,), "RTX 2080 SUPER", 495.9, _GEN3, _TPU),
    _part((0x1E82, 0x1E87), "RTX 2080", 448, _GEN3, _TPU),
    _part((0x1E84,), "RTX 2070 SUPER", 448, _GEN3, _TPU),
    _part((0x2203,), "RTX 3090 Ti", 1008, _GEN4, f"{_TPU}: 384 bit × 21 Gbit/s; {_GA102}", (4, 14.0625)),
    _part((0x2204,), "RTX 3090", 936.2, _GEN4, f"{_TPU}; {_GA102}", (4, 14.0625)),
    _part((0x2208,), "RTX 3080 Ti", 912.4, _GEN4, _TPU),
    _part((0x2206, 0x2216), "RTX 3080", 760.3, _GEN4, f"{_TPU}: 10 GB"),
    _part((0x220A,), "RTX 3080", 912.4, _GEN4, f"{_TPU}: 12 GB"),
    _part((0x2482, 0x2207), "RTX 3070 Ti", 608.3, _GEN4, _TPU),
    _part((0x2484, 0x2488), "RTX 3070", 448, _GEN4, _TPU),
    _part((0x2486, 0x2489, 0x2414), "RTX 3060 Ti", 448, _GEN4, f"{_TPU}: GDDR6"),
    _part((0x24C9,), "RTX 3060 Ti", 608.3, _GEN4, f"{_TPU}: GDDR6X"),
    _part((0x2503, 0x2504, 0x2487, 0x2544), "RTX 3060", None, _GEN4, _TWO_MEMORIES),
    _part((0x2507, 0x2582), "RTX 3050", 224, _GEN4_X8, f"{_TPU}: 8 GB"),
    _part((0x2584,), "RTX 3050", 168, _GEN4_X8, f"{_TPU}: 6 GB"),
    _part((0x2684,), "RTX 4090", 1008, _GEN4, f"{_TPU}: 384 bit × 21 Gbit/s"),
    _part((0x2685,), "RTX 4090 D", 1008, _GEN4, f"{_TPU}: 384 bit × 21 Gbit/s"),
    _part((0x2702, 0x2703), "RTX 4080 SUPER", 736.3, _GEN4, _TPU),
    _part((0x2704,), "RTX 4080", 716.8, _GEN4, _TPU),
    _part((0x2705, 0x2689), "RTX 4070 Ti SUPER", 672.3, _GEN4, _TPU),
    _part((0x2782,), "RTX 4070 Ti", 504.2, _GEN4, _TPU),
    _part((0x2783,), "RTX 4070 SUPER", 504.2, _GEN4, _TPU),
    _part((0x2786, 0x2709), "RTX 4070", None, _GEN4, _TWO_MEMORIES),
    _part((0x2803, 0x2805, 0x2788), "RTX 4060 Ti", 288, _GEN4_X8, _TPU),
    _part((0x2882, 0x2808), "RTX 4060", 272, _GEN4_X8, _TPU),
    _part((0x2B85,), "RTX 5090", 1792, _GEN5, f"{_TPU}: 512 bit × 28 Gbit/s"),
    _part((0x2B87,), "RTX 5090 D", 1792, _GEN5, f"{_TPU}: 512 bit × 28 Gbit/s"),
    _part((0x2B8C,), "RTX 5090 D v2", 1344, _GEN5, "NVIDIA, GeForce RTX 5090 D v2, product page"),
    _part((0x2C02,), "RTX 5080", 960, _GEN5, _TPU),
    _part((0x2C05,), "RTX 5070 Ti", 896, _GEN5, _TPU),
    _part((0x2F04,), "RTX 5070", 672, _GEN5, _TPU),
    _part((0x2D04,), "RTX 5060 Ti", 448, _GEN5_X8, _TPU),
    _part((0x2D05,), "RTX 5060", 448, _GEN5_X8, _TPU),
    _part((0x2D83,), "RTX 5050", 320, _GEN5_X8, _TPU),
)

PARTS: tuple[Part, ...] = (*_DATA_CENTRE, *_WORKSTATION, *_CONSUMER)
