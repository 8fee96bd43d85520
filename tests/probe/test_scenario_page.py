"""docs/recording.md describes scenarios as the code reads them."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import get_args

import msgspec

from suite.probe import recording
from suite.records.scenario import Fault, FaultKind
from tests.data.machines import build

PAGE = (Path(__file__).parents[2] / "docs" / "recording.md").read_text(encoding="utf-8")


def test_every_kind_of_fault_is_in_the_table_with_fields_that_it_has() -> None:
    rows = re.findall(r"^\| `(\w+)` \| ([^|]+) \|", PAGE, re.MULTILINE)
    assert [kind for kind, _ in rows] == list(get_args(FaultKind))
    assert {name for _, fields in rows for name in re.findall(r"`(\w+)`", fields)} <= set(Fault.__dataclass_fields__)


def test_the_example_is_read_with_a_machine_put_in(tmp_path: Path) -> None:
    example = json.loads(PAGE.partition("```json")[2].partition("```")[0])
    example["machine"] = msgspec.to_builtins(build.two_pcie())
    (tmp_path / "one.json").write_text(json.dumps(example))
    found = recording.load(tmp_path / "one.json")
    assert found.faults == (Fault("hop_capacity", address="0000:a1:00.0", rate=30e9),)
    assert (found.noise, found.seed, found.title) == (0.01, 1, "GPU1's slot lets 30 GB/s through")
