"""The sample reports that are checked in: their run can be read, and says what their reports say."""

from __future__ import annotations

from pathlib import Path

import pytest
from markupsafe import escape

from suite.judge import findings
from suite.report import banner, html, markdown
from suite.store import runs

ROOT = Path(__file__).parents[2]
SAMPLES = sorted((ROOT / "reports").glob("sample-*"))


def test_there_is_a_sample_of_a_machine_with_eight_gpus() -> None:
    assert "sample-simulated-8gpu" in [folder.name for folder in SAMPLES]


@pytest.mark.parametrize("folder", SAMPLES, ids=lambda folder: folder.name)
def test_a_sample_says_what_its_run_says(folder: Path) -> None:
    run = runs.read(folder)
    found = findings.findings(run)
    title = banner.titled(run, findings.headline(run, found))
    shown = f"<title>{escape(title)}</title>"
    assert run.complete
    assert run.simulated == ("simulated" in folder.name)
    assert (folder / "report.md").read_text().startswith(f"# {markdown.escape(title)}\n")
    assert shown in (folder / "report.html").read_text()
    assert shown in html.render(run, found, findings.headline(run, found))


@pytest.mark.parametrize("folder", SAMPLES, ids=lambda folder: folder.name)
def test_a_sample_is_small(folder: Path) -> None:
    assert sum(path.stat().st_size for path in folder.iterdir()) < 3_000_000
