"""How the terminal shows things: colours, marks, bars, wrapped sentences. Nothing is said by colour alone."""

from __future__ import annotations

import textwrap
import unicodedata
from collections.abc import Mapping

from suite.records.run import Status
from suite.report.tables.words import MARKS

BAR = 10
# ANSI SGR codes (ECMA-48): red, yellow, magenta, green, grey.
_CODES: dict[Status, str] = {
    "FAIL": "31",
    "WARN": "33",
    "INDETERMINATE": "35",
    "PASS": "32",
    "NOT_SAMPLED": "90",
    "UNAVAILABLE": "90",
}


def wants_colour(terminal: bool, environment: Mapping[str, str]) -> bool:
    """Colour only on a terminal that has some, and never where NO_COLOR is set (no-color.org)."""
    return terminal and not environment.get("NO_COLOR") and environment.get("TERM") != "dumb"


def paint(text: str, status: Status | None, colour: bool) -> str:
    """The text in its status' colour; as it is where colour is off or there is no status."""
    return f"\x1b[{_CODES[status]}m{text}\x1b[0m" if colour and status and text else text


def strong(text: str, colour: bool) -> str:
    """Bold text."""
    return f"\x1b[1m{text}\x1b[0m" if colour and text else text


def marked(status: Status, text: str) -> str:
    """A verdict with its mark: '✗ FAIL'."""
    return f"{MARKS[status]} {text}"


def bar(fraction: float | None) -> str:
    """A fraction drawn ten wide; blank where it is not known, full from 1 on."""
    if fraction is None:
        return " " * BAR
    full = round(min(1.0, max(0.0, fraction)) * BAR)
    return "█" * full + "░" * (BAR - full)


def clean(text: str) -> str:
    """Printable text with single spaces."""
    return printable(" ".join(text.split()))


def printable(text: str) -> str:
    """A line without control and format characters: a name from a file must not steer the terminal."""
    return "".join(c if unicodedata.category(c)[0] != "C" else "?" for c in text)


def shorten(text: str, width: int) -> str:
    """At most `width` characters, '…' where something was cut."""
    return text if len(text) <= width else text[: max(0, width - 1)] + "…"


def wrapped(text: str, width: int, first: str = "", rest: str = "") -> list[str]:
    """Lines of a sentence, the first one after `first`, the others after `rest`."""
    return textwrap.wrap(clean(text), max(20, width), initial_indent=first, subsequent_indent=rest) or [first]
