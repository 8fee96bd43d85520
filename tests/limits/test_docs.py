"""docs/limits.md shows the numbers that the code has."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from suite.limits import gpus, healthy, pcie

DOCUMENT = (Path(__file__).parents[2] / "docs" / "limits.md").read_text()


def rows(heading: str) -> list[list[str]]:
    """The cells of the table whose first column has this heading, without its head."""
    lines = iter(DOCUMENT.splitlines())
    for line in lines:
        if line.startswith(f"| {heading} |"):
            next(lines)
            return [[cell.strip() for cell in row.strip("|").split("|")] for row in _table(lines)]
    raise AssertionError(f"docs/limits.md has no table headed {heading!r}")


def _table(lines: Iterator[str]) -> Iterator[str]:
    for line in lines:
        if not line.startswith("|"):
            return
        yield line


def gb(*rates: float) -> str:
    return " / ".join(f"{rate / 1e9:.2f}" for rate in rates)


@pytest.mark.parametrize("gen", pcie.GENERATIONS)
def test_the_table_of_ceilings_is_what_the_code_computes(gen: int) -> None:
    one_way = [gb(pcie.device_to_host(gen, 16, m), pcie.host_to_device(gen, 16, m, 4096)) for m in (128, 256, 512)]
    both = pcie.both_ways(gen, 16, 256, 4096)
    sm = gb(pcie.device_to_host(gen, 16, 256, engine="sm"), pcie.host_to_device(gen, 16, 256, 4096, engine="sm"))
    sm_both = gb(pcie.both_ways(gen, 16, 256, 4096, engine="sm").device_to_host)
    both_cell = gb(both.device_to_host, both.host_to_device)
    assert rows("gen")[gen - 1] == [str(gen), gb(pcie.raw(gen, 16)), *one_way, both_cell, sm, sm_both]


def test_the_table_of_healthy_fractions_is_the_code_s() -> None:
    assert rows("operation") == [
        [r.operation, r.engine, str(r.gen or "any"), f"{r.low:.2f} to {r.high:.2f}", r.source] for r in healthy.HEALTHY
    ]


def test_the_table_of_latencies_is_the_code_s() -> None:
    assert rows("latency") == [[name, words] for name, words in healthy.LATENCIES.items()]


def test_the_table_of_parts_is_the_code_s() -> None:
    expected = []
    for part in gpus.PARTS:
        link = str(part.link) if part.link.known else "–"
        memory = f"{part.memory / 1e9:g}" if part.memory is not None else "–"
        nvlink = f"{part.nvlinks} × {part.nvlink_rate / 1e9:g}" if part.nvlink_rate else "–"
        expected.append([", ".join(part.names), link, memory, nvlink, part.source])
    assert rows("part") == expected
