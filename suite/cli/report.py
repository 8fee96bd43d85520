"""`lanecheck report [RUN]`: shows a run, and rebuilds its files from the journal where they lag behind."""

from __future__ import annotations

import argparse
import os
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from suite.cli import newest
from suite.errors import StoreError
from suite.records.run import Finding, Run
from suite.report import banner, flat, junit, markdown, prometheus, style, text
from suite.store import runs

_DATA = {"prometheus": prometheus.render, "junit": junit.render}
FORMATS = ("text", "md", "html", "json", "csv", "prometheus", "junit")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of `lanecheck report`."""
    parser.add_argument(
        "run", type=Path, nargs="?", metavar="RUN",
        help=f"a run's folder, its run.json or its run.jsonl. Default: the newest in {newest.REPORTS}/",
    )  # fmt: skip
    parser.add_argument("--format", choices=FORMATS, default="text", help="default: text")


def run(arguments: argparse.Namespace) -> int:
    """Prints the run. Raises StoreError. What is wrong with the run (incomplete, simulated) goes to stderr too where
    the format has no place to say it."""
    from suite.judge import findings as judge

    path = _chosen(arguments.run)
    found = runs.read(path)
    findings = judge.findings(found)
    headline = judge.headline(found, findings)
    if path.is_dir() and not runs.is_kept(path):
        _rebuild(path, found, findings)
    _print(_formatted(arguments.format, found, findings, headline))
    if arguments.format not in ("text", "md", "html"):
        for line in banner.warnings(found):
            print(line, file=sys.stderr)
    return 0


def _chosen(given: Path | None) -> Path:
    """The run that was named, or the newest: said on stderr, since stdout may go to a program."""
    if given is not None:
        return newest.check(given)
    path = newest.newest()
    print(f"the newest run: {path}", file=sys.stderr)
    return path


def _rebuild(folder: Path, found: Run, findings: Sequence[Finding]) -> None:
    """Writes run.json, report.md and report.html where one is missing or run.json lags behind the journal; where they
    cannot be written, stderr says so."""
    from suite import session

    reports = ("report.md", "report.html")
    if runs.is_current(folder, found) and all((folder / name).exists() for name in reports):
        return
    try:
        session.write(folder, found, findings)
        session.write_page(folder, found, findings)
    except StoreError as error:  # the run is whole and can be shown all the same
        print(_not_rebuilt(folder, error), file=sys.stderr)
        return
    print(f"run.json, report.md and report.html in {folder} were rebuilt", file=sys.stderr)


def _not_rebuilt(folder: Path, error: StoreError) -> str:
    """Why, without the advice that a run gets: this folder was named, and --report-dir is no option of ours."""
    cause = error.__cause__
    why = (cause.strerror or str(cause)).lower() if isinstance(cause, OSError) else str(error)
    return (
        f"run.json, report.md and report.html in {folder} lag behind the run shown here and could not be rebuilt "
        f"({why}): copy the folder to where you may write and name the copy"
    )


def _formatted(name: str, found: Run, findings: Sequence[Finding], headline: str) -> str:
    if name == "md":
        return markdown.render(found, findings, headline)
    if name == "html":
        return _html(found, findings, headline)
    if name == "json":
        return runs.encode(found).decode()
    if name == "csv":
        return flat.render(found)
    if name in _DATA:
        return _DATA[name](found, findings)
    colour = style.wants_colour(sys.stdout.isatty(), os.environ)
    width = min(text.WIDTH, shutil.get_terminal_size((text.WIDTH, 24)).columns)
    return text.summary(found, findings, headline, width=width, colour=colour)


def _html(found: Run, findings: Sequence[Finding], headline: str) -> str:
    from suite.report import html  # brings jinja2, which no other format needs

    return html.render(found, findings, headline)


def _print(content: str) -> None:
    """Writes to stdout; signs that its encoding lacks become '?'."""
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors="replace")
    sys.stdout.write(content)
    sys.stdout.flush()
