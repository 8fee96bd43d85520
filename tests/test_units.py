"""Prefixes are read and written in one place."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from suite import units


@given(st.integers(1, 1 << 50))
def test_a_formatted_size_reads_back(size: int) -> None:
    assert units.parse_bytes(units.format_bytes(size)) == size


@given(st.text(max_size=12))
def test_any_text_is_a_size_or_a_value_error(text: str) -> None:
    with contextlib.suppress(ValueError):
        assert units.parse_bytes(text) > 0


def test_a_range_doubles() -> None:
    assert units.parse_sizes("8..64,1KiB") == (8, 16, 32, 64, 1024)


@pytest.mark.parametrize("text", ["", "8..", "64..8", "0", "4KB", "x..y", "-8"])
def test_a_bad_range_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"size|empty"):
        units.parse_sizes(text)


def test_rates_are_decimal_and_keep_three_digits() -> None:
    assert units.format_bandwidth(55.34e9) == "55.3 GB/s"
    assert units.format_bandwidth(2.9e9) == "2.90 GB/s"
    assert units.format_bandwidth(None) == "–"


def test_times_carry_their_unit() -> None:
    assert units.format_seconds(1176e-9) == "1.18 µs"
    assert units.format_seconds(450e-9) == "450 ns"
    assert units.format_seconds(None) == "–"


def test_unknown_is_not_zero_percent() -> None:
    assert units.format_percent(None) == "–"
    assert units.format_percent(0.953) == "95 %"


def test_a_column_of_gigabytes_has_no_unit_and_keeps_small_rates() -> None:
    assert [units.format_gigabytes(r) for r in (126e9, 55.34e9, 2.9e9, 0.0812e9, 4e5, 2e4)] == [
        "126",
        "55.3",
        "2.90",
        "0.081",
        "0.0004",
        "<0.0001",
    ]
    assert units.format_gigabytes(None) == "–"
