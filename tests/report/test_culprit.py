"""A hop that a verdict names is drawn as a warning, and probe calls the same link by the same name as a report."""

from __future__ import annotations

from suite.report.html import machine as picture
from suite.report.html import tree
from suite.report.machine import render
from suite.report.tables.machine import links
from tests.data.machines import build
from tests.judge.pipeline import run

X4_HOP = build.scenarios()["2xpcie-x4-hop"]


def test_the_hop_that_a_warning_names_has_no_tick() -> None:
    edges = [place.edge for place in tree.everything(tree.build(run(X4_HOP, groups=("link",)).run)) if place.edge]
    culprit = next(edge for edge in edges if str(edge.possible) == "Gen4 x4")
    assert culprit.health == "short"
    assert picture.edge_words(culprit)[0] == "! Gen4 x4"
    assert [edge.health for edge in edges if edge is not culprit] == ["full", "full"]


def test_probe_and_report_mean_the_gpus_own_link_by_what_it_could_be() -> None:
    table = links(run(X4_HOP, groups=("link",)).run)
    assert table is not None
    place = [column.name for column in table.columns].index("could be")
    could = {row[place].text for row in table.rows}
    probed = render(X4_HOP.machine, width=200)
    assert could == {"Gen4 x8"}
    rows = [line for line in probed.splitlines() if "RTX 3090" in line and "0000:" in line]
    assert len(rows) == 2
    assert all("Gen4 x8" in row and "Gen4 x4" not in row for row in rows)
