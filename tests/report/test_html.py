"""The HTML report: one file that fetches nothing, says the answer first, and holds whatever names there are."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import replace
from html import unescape
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from typing import get_args

import pytest

from suite.records.comparison import Call, Change, Comparison, Difference, Side
from suite.records.machine import Gpu, GpuPair, LinkState, Machine
from suite.records.run import Run
from suite.report import html
from suite.report.html import curves, nvlinks, tree
from suite.report.tables.model import Cell, Column, Table
from tests.report import samples
from tests.report.sample_machine import GEN4_X4

RUNS = (samples.sound, samples.troubled, samples.without_gpu, samples.incomplete, samples.hostile)
CHROMIUM = next(filter(None, map(shutil.which, ("chromium-headless-shell", "chromium", "chromium-browser"))), None)
VOID = {"meta", "br", "hr", "img", "input", "link"}


class Outline(HTMLParser):
    """Checks that tags close in order; collects what the tests ask for."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def _page(run: Run) -> str:
    return html.render(run, samples.FINDINGS, samples.HEADLINE)


def _words(page: str) -> str:
    return unescape(re.sub(r"<[^>]*>", " ", page.split("</style>")[1].split("<script>")[0]))


@pytest.mark.parametrize("make", RUNS)
def test_every_page_is_well_formed_and_has_unique_ids(make: Callable[[], Run]) -> None:
    outline = Outline(_page(make()))
    assert outline.open == []
    ids = [attributes["id"] for _, attributes in outline.tags if "id" in attributes]
    assert len(set(ids)) == len(ids)


@pytest.mark.parametrize("make", RUNS)
def test_a_page_names_no_place_to_fetch_from(make: Callable[[], Run]) -> None:
    outline = Outline(_page(make()))
    for tag, attributes in outline.tags:
        assert tag not in ("link", "iframe", "img", "object", "embed")
        assert "src" not in attributes
        assert (attributes.get("href") or "#").startswith("#")
        assert not [name for name in attributes if name.startswith("on") or name == "style"]


def test_the_policy_allows_only_the_page_s_own_style_and_script() -> None:
    page = _page(samples.sound())
    policy = next(str(a["content"]) for t, a in Outline(page).tags if t == "meta" and "http-equiv" in a)
    assert policy.startswith("default-src 'none'")
    assert "unsafe" not in policy
    for tag in ("style", "script"):
        inside = page.split(f"<{tag}>")[1].split(f"</{tag}>")[0]
        assert f"'sha256-{base64.b64encode(hashlib.sha256(inside.encode()).digest()).decode()}'" in policy


def test_the_answer_comes_first_and_findings_carry_their_advice() -> None:
    words = _words(_page(samples.troubled()))
    answer = words.index(samples.HEADLINE)
    assert answer < words.index("22 FAIL") < words.index("GPU2 runs at Gen1 x16 under load, although")
    assert "What to do:" in words


def test_an_incomplete_simulated_run_says_both_before_the_answer() -> None:
    words = _words(_page(samples.incomplete()))
    assert (
        words.index("SIMULATED: no hardware") < words.index("INCOMPLETE: only 9 of 120") < words.index(samples.HEADLINE)
    )
    assert words.count("SIMULATED") == 1


def test_hostile_names_stay_text() -> None:
    page = _page(samples.hostile())
    assert page.count("<script") == 1
    assert "\x1b" not in page
    assert "\u202e" not in page


@pytest.mark.parametrize("page_width", ["wide", "narrow"])
def test_links_in_the_picture_say_what_they_are_and_could_be(page_width: str) -> None:
    page = _page(samples.troubled())
    picture = page[page.index(f'class="picture machine {page_width}"') :].split("</svg>")[0]
    words = unescape(re.sub(r"<[^>]*>", "|", picture))
    assert "✗ Gen1 x16" in words
    assert "could be Gen4 x16" in words
    assert words.count("✓ Gen4 x16") == 5
    assert [f"GPU{n}" in words for n in range(4)] == [True] * 4
    assert ("socket 1" in words) == (page_width == "wide")


def test_the_narrow_picture_has_every_place_in_a_row_of_its_own_within_its_width() -> None:
    page = _page(samples.large())
    picture = page[page.index('class="picture machine narrow"') :].split("</svg>")[0]
    boxes = re.findall(r'<rect x="([\d.]+)" y="([\d.]+)" width="([\d.]+)"', picture)
    places = list(tree.everything(tree.build(samples.large())))
    assert len(boxes) == len({y for _, y, _ in boxes}) == len(places) > 20
    assert all(float(x) + float(width) <= 360 for x, _, width in boxes)


def test_the_shades_of_a_matrix_are_of_links_and_not_of_copies_within_a_gpu() -> None:
    cells = [[Cell("0"), Cell("900", "PASS", sort=900.0), Cell("50", "PASS", sort=50.0)]]
    cells += [[Cell("1"), Cell("25", "PASS", sort=25.0), Cell("900", "PASS", sort=900.0)]]
    table = Table("", (Column("from"), Column("0"), Column("1")), tuple(map(tuple, cells)), heat=True)
    shades = html._shades(table)
    assert [shades.get(id(cell)) for row in cells for cell in row] == [None, None, 9, None, 4, None]


def test_a_link_that_was_never_watched_is_called_idle_and_not_slow() -> None:
    run = replace(samples.sound(), results=())
    edges = [p.edge for p in tree.everything(tree.build(run)) if p.kind == "gpu"]
    assert [e.health for e in edges if e] == ["idle", "idle"]


def test_a_gpu_whose_path_and_node_are_hidden_is_drawn_all_the_same() -> None:
    run = replace(samples.without_gpu(), machine=Machine(gpus=(Gpu(0, "vGPU", link=LinkState()),)))
    places = list(tree.everything(tree.build(run)))
    assert [p.label for p in places] == ["NUMA node unknown", "GPU0"]
    assert places[1].edge is not None
    assert places[1].edge.health == "unknown"
    assert "not visible" in _page(run)


def _joined(*pairs: tuple[int, int, int]) -> list[nvlinks.Joined]:
    gpus = tuple(Gpu(index, "made up") for index in range(4))
    return nvlinks.joined(Machine(gpus=gpus, pairs=tuple(GpuPair(a, b, nvlinks=links) for a, b, links in pairs)))


def test_nvlinks_are_drawn_once_for_each_set_of_gpus_that_they_join() -> None:
    assert [one.gpus for one in _joined((0, 2, 4), (1, 3, 4), (0, 1, 0))] == [(0, 2), (1, 3)]
    ring = _joined((0, 1, 2), (1, 2, 2), (2, 3, 1), (0, 3, 2))
    assert ring == [nvlinks.Joined((0, 1, 2, 3), ("1 link", "2 links", "not between all of them"))]
    assert _joined() == []
    assert _joined((0, 9, 4)) == []  # the machine has no GPU9


def test_the_picture_names_the_gpus_that_nvlinks_join() -> None:
    run = samples.sound()
    pair = GpuPair(run.machine.gpus[0].index, run.machine.gpus[1].index, nvlinks=4)
    page = _page(replace(run, machine=replace(run.machine, pairs=(pair,))))
    wide = page[page.index("machine wide") : page.index("machine narrow")]
    assert f"NVLink between GPU{pair.first}, GPU{pair.second}: 4 links" in wide
    assert wide.count('class="nvlink"') == 1
    assert "nvlink" not in _page(replace(run, machine=replace(run.machine, pairs=()))).split("</style>")[1]


def test_a_narrow_hop_above_two_gpus_is_marked() -> None:
    run = samples.sound()
    pci = tuple(
        replace(f, link=GEN4_X4, link_max=GEN4_X4) if f.port_type == "upstream_port" else f for f in run.machine.pci
    )
    switch = next(
        p
        for p in tree.everything(tree.build(replace(run, machine=replace(run.machine, pci=pci))))
        if p.kind == "switch" and p.children
    )
    assert switch.edge is not None
    assert switch.edge.narrowest


def test_every_operation_with_three_sizes_has_a_curve_with_its_ceilings() -> None:
    charts = {chart.title: chart for chart in curves.charts(samples.troubled())}
    assert set(charts) == {
        "Host copies: host→device, bandwidth",
        "Host copies: device→host, bandwidth",
        "Host copies: both ways, bandwidth",
        "Allreduce, nccl, busbw",
        "Allreduce, nccl, latency",
        "Allreduce, gloo, busbw",
        "Allreduce, gloo, latency",
    }
    one = charts["Host copies: host→device, bandwidth"]
    assert one.caption == "4 paths; 3.20 GB/s to 26.0 GB/s at 256MiB; all ceilings 28.8 GB/s."
    assert one.picture.count("s-FAIL") == 6
    assert "✗ GPU 2, node 1" in one.picture


def test_a_kernel_s_single_size_is_no_point_of_the_copy_engine_s_curve() -> None:
    run = samples.sound()
    last = next(r for r in run.results if r.case == f"host_copy/host_to_device/gpu0/node0/{samples.SIZES[-1]}B")
    limits = replace(last.limits, now=27.2e9) if last.limits else None
    kernel = replace(last, case="host_copy/sm", engine="sm", limits=limits)
    before, after = (curves.charts(replace(run, results=found))[0] for found in (run.results, (*run.results, kernel)))
    assert after == before


def test_copies_with_and_without_p2p_are_curves_of_their_own() -> None:
    run = samples.sound()
    copies = [replace(r, case=f"{r.case}/{p2p}", p2p=p2p) for r in run.results if r.bandwidth for p2p in (True, False)]
    labels = curves.charts(replace(run, results=tuple(copies)))[0].picture
    assert "node 0, P2P<" in labels
    assert "node 0, P2P off<" in labels


def test_labels_at_the_edge_of_a_curve_do_not_overlap() -> None:
    for chart in curves.charts(samples.large()) + curves.charts(samples.troubled()):
        places = sorted(float(y) for y in re.findall(r'y="([\d.]+)" class="(?:ceiling|curve)-label"', chart.picture))
        assert all(below - above >= 15.9 for above, below in pairwise(places))


def test_one_value_at_every_size_can_be_drawn() -> None:
    run = samples.without_gpu()
    flat = tuple(replace(r, latency_s=1e-5, bandwidth=1e9) for r in run.results if r.group == "allreduce")
    assert len(curves.charts(replace(run, results=flat))) == 2


def test_2000_results_of_16_gpus_stay_below_5_mb() -> None:
    run = samples.large()
    assert len(run.results) > 2000
    assert len(_page(run).encode()) < 5_000_000


def _compared(*changes: Change) -> str:
    sides = Side("baseline spring", 3, simulated=True), Side("this run", 1, simulated=True)
    machine = (Difference("link under load", "Gen4 x16", "Gen1 x16", 1),)
    comparison = Comparison(*sides, "worse", machine, changes)
    return html.render(samples.incomplete(), samples.FINDINGS, samples.HEADLINE, comparison)


def _change(case: str, before: float | None, after: float | None, call: Call) -> Change:
    ratio = after / before if before and after else None
    return Change(case, "host_to_device", 1 << 28, (1,), "bandwidth", call, "by 88 %", before, after, ratio)


def test_before_and_after_are_drawn_where_a_baseline_is_given() -> None:
    page = _compared(
        _change("host_copy/a<b>", 27.2e9, 3.4e9, "worse"),
        _change("host_copy/same", 27.0e9, 27.0e9, "same"),
        _change("host_copy/broke", 27.0e9, None, "worse"),
    )
    assert Outline(page).open == []
    words = _words(page)
    assert words.index("Findings") < words.index("Before and after") < words.index("All results")
    assert "link under load: Gen4 x16 → Gen1 x16" in words
    assert "27.2 GB/s → 3.40 GB/s, worse" in words
    assert page.count('class="before"') == 1  # the others lack a number or did not change: they are in the tables alone
    assert not re.search(r"<th[^>]*></th>", page)
    assert words.count("SIMULATED") == 1
    assert "Before and after" not in _words(_page(samples.incomplete()))


PROBE = """
const errors = [];
addEventListener("error", (event) => errors.push(String(event.message)));
addEventListener("securitypolicyviolation", (event) => errors.push(event.violatedDirective));
addEventListener("load", () => {
  const table = [...document.querySelectorAll("table.sortable")].find((t) => t.textContent.includes("ceiling"));
  const place = [...table.tHead.rows[0].cells].findIndex((c) => c.textContent.trim() === "GB/s");
  const column = () => [...table.tBodies[0].rows].map((row) => Number(row.cells[place].dataset.sort));
  const click = () => table.tHead.rows[0].cells[place].querySelector("button").click();
  click(); const up = column(); click(); const down = column();
  const said = document.createElement("output");
  said.textContent = JSON.stringify({
    errors, up, down, aria: table.tHead.rows[0].cells[place].getAttribute("aria-sort"),
    wide: document.documentElement.scrollWidth, page: document.documentElement.clientWidth,
    fetched: performance.getEntriesByType("resource").length,
    pictures: [...document.querySelectorAll("svg.picture")].filter((p) => p.checkVisibility()).length,
  });
  document.body.append(said);
});
"""


def _opened(tmp_path: Path, page: str, width: int) -> dict[str, object]:
    """What the page says of itself in a real browser. The probe's digest is added to the policy."""
    digest = base64.b64encode(hashlib.sha256(PROBE.encode()).digest()).decode()
    path = tmp_path / "report.html"
    probed = page.replace("script-src ", f"script-src 'sha256-{digest}' ".replace("'", "&#39;"), 1)
    path.write_text(probed.replace("<body>", f"<body><script>{PROBE}</script>", 1))
    done = subprocess.run(
        [str(CHROMIUM), "--headless", "--no-sandbox", f"--window-size={width},900", "--dump-dom", path.as_uri()],
        capture_output=True,
        text=True,
        timeout=60,
    )
    found: dict[str, object] = json.loads(unescape(done.stdout.split("<output>")[1].split("</output>")[0]))
    return found


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium")
@pytest.mark.parametrize("width", [1280, 400])
def test_a_browser_opens_it_without_error_sorts_a_table_and_fetches_nothing(tmp_path: Path, width: int) -> None:
    found = _opened(tmp_path, _page(samples.troubled()), width)
    assert found["errors"] == []
    assert found["fetched"] == 0
    assert found["pictures"] == 8
    assert found["up"] == sorted(found["up"])  # type: ignore[call-overload]
    assert found["down"] == sorted(found["up"], reverse=True)  # type: ignore[call-overload]
    assert found["aria"] == "descending"
    assert found["wide"] == found["page"]  # the page itself never scrolls sideways


def test_collectives_that_differ_in_more_than_the_size_are_curves_of_their_own() -> None:
    usual = samples.gloo(2)
    other = [replace(result, in_place=False, case=f"{result.case}/out") for result in usual]
    bandwidth, _latency = curves.charts(replace(samples.sound(), results=(*usual, *other)))
    assert [name.partition(":")[0] for name in bandwidth.named] == ["✓ 2 ranks", "✓ 2 ranks, out of place"]


def test_no_state_of_a_link_shares_its_name_with_a_class_that_hides() -> None:
    css = (Path(html.__file__).parent / "page.css").read_text()
    hidden = {
        name for names in re.findall(r"([^{}]+)\{ display: none; \}", css) for name in re.findall(r"\.(\w+)", names)
    }
    assert {"narrow", "wide", "less"} <= hidden
    assert not hidden & set(get_args(tree.Health))
