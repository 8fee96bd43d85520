"""Damaged descriptions of machines: every command shows them or says one sentence; no input makes a traceback."""

from __future__ import annotations

import contextlib
import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from suite.cli import main
from tests.data.machines import build

ESCAPE = "\x1b[31mred"
NAMES = ("2xpcie", "2xpcie-x4-hop", "2xa6000", "2xc2c", "8xnvswitch")
ORIGINALS = {name: build.text(build.scenarios()[name]) for name in NAMES}
WORDS = ["", "x", ESCAPE, "0000:00:00.0", "0000:20:01.0", "0000:a1:00.0", "endpoint", "downstream_port", "SYS", "OK"]
NUMBERS = [0, -1, 1, 3, 255, 10**9, -(10**18), 2.5, 1e300, 1e-300]
ANYTHING = st.sampled_from([None, True, [], {}, [[]], [0], ["a"], "gone", *WORDS, *NUMBERS])


def places(value: Any, place: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """Where every value of a document stands."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield (*place, key)
        yield from places(item, (*place, key))


def replaced(document: Any, place: tuple[str | int, ...], value: object) -> None:
    """Puts a value in a place; 'gone' takes it away."""
    for key in place[:-1]:
        document = document[key]
    if value == "gone":
        del document[place[-1]]
    else:
        document[place[-1]] = value


@st.composite
def damaged(draw: st.DrawFn) -> str:
    document = json.loads(ORIGINALS[draw(st.sampled_from(NAMES))])
    for _ in range(draw(st.integers(1, 3))):
        replaced(document, draw(st.sampled_from(list(places(document)))), draw(ANYTHING))
    return json.dumps(document)


def answered(*words: str) -> tuple[int, str, str]:
    out, error = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(error):
        status = main(words)
    return status, out.getvalue(), error.getvalue()


@settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=damaged())
def test_a_damaged_machine_is_shown_or_refused_in_one_sentence(tmp_path: Path, text: str) -> None:
    file = tmp_path / "m.json"
    file.write_text(text)
    for words in (["probe"], ["limits", "--gpu", "0", "--explain"], ["limits", "--pair", "0", "1"]):
        status, out, error = answered(*words, "--machine", str(file))
        assert status in (0, 4)
        assert "\x1b" not in out + error
        assert (error.count("\n") == 1) == (status == 4)


@pytest.mark.parametrize("place", [("machine", "gpus", 0, "name"), ("title",), ("machine", "pairs", 0, "p2p_read")])
def test_words_of_a_file_do_not_steer_the_terminal(tmp_path: Path, place: tuple[str | int, ...]) -> None:
    document = json.loads(ORIGINALS["2xpcie"])
    replaced(document, place, ESCAPE)
    (tmp_path / "m.json").write_text(json.dumps(document))
    status, out, _ = answered("probe", "--machine", str(tmp_path / "m.json"))
    assert status == 0
    assert "?[31mred" in out


def test_a_field_that_is_not_known_is_named_without_steering_the_terminal(tmp_path: Path) -> None:
    (tmp_path / "m.json").write_text(json.dumps({"gpus": [], ESCAPE: 1}))
    status, _, error = answered("probe", "--machine", str(tmp_path / "m.json"))
    assert (status, error) == (4, "lanecheck probe: m.json has a field that is not known: ?[31mred\n")
