"""Markdown that can be pasted into an issue, whatever the names in it are."""

from __future__ import annotations

import re

from suite.records.run import Finding
from suite.report import markdown
from tests.report import samples


def _rendered(name: str) -> str:
    return markdown.render(getattr(samples, name)(), samples.FINDINGS, samples.HEADLINE)


def test_the_headline_is_the_title() -> None:
    assert _rendered("troubled").splitlines()[0] == f"# {samples.HEADLINE}"


def test_an_incomplete_simulated_run_says_both_on_top() -> None:
    top = _rendered("incomplete").split("## ")[0]
    assert top.startswith("# SIMULATED: INCOMPLETE: ")
    assert "> **Only 9 of 120 planned cases" in top


def test_every_row_of_a_table_has_the_cells_of_its_head() -> None:
    for name in ("troubled", "hostile", "without_gpu", "large"):
        for table in re.findall(r"(?:^\|.*\n)+", _rendered(name), re.MULTILINE):
            cells = {len(re.findall(r"(?<!\\)\|", line)) for line in table.splitlines()}
            assert len(cells) == 1, table


def test_hostile_names_stay_text() -> None:
    shown = _rendered("hostile")
    assert "<script" not in shown
    assert "\x1b" not in shown
    assert "\u202e" not in shown
    assert r"\`tick\`" in shown


def test_text_means_itself() -> None:
    assert markdown.escape("a*b_c|d`e[f]<g>~h\\") == r"a\*b\_c\|d\`e\[f\]&lt;g&gt;\~h" + "\\\\"
    assert markdown.escape("ask @someone about #12") == "ask @<!-- -->someone about #<!-- -->12"
    assert markdown.escape('it\'s & "so"') == 'it\'s &amp; "so"'
    assert markdown.escape("two\nlines") == "two lines"


def test_code_spans_cannot_be_left() -> None:
    assert markdown.code("a`b|c") == r"`a'b\|c`"


def test_an_issue_takes_it_in_one_piece() -> None:
    """GitHub refuses a body of more than 65,536 characters (its API's limit)."""
    assert len(_rendered("large")) < 65_536


def test_what_is_in_order_is_worth_knowing_and_no_finding() -> None:
    known = Finding("PASS", "no_bridge", "GPU0", "GPU0 has no bridge.", "Fit one.", ("link/gpu0",))
    shown = markdown.render(samples.sound(), (known,), samples.HEADLINE)
    assert "## Worth knowing\n\n- GPU0 has no bridge. Fit one.\n" in shown
    assert "## Findings" not in shown
