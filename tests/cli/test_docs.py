"""docs/comparing.md: what it shows is what comes out."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

from suite.cli import COMMANDS
from suite.store import compare_statistics

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "comparing.md").read_text(encoding="utf-8")


def _session() -> tuple[list[str], str]:
    """The commands of the simulated example, and the output shown of the last one."""
    block = next(b for b in re.findall(r"^```console\n(.*?)^```", PAGE, re.M | re.S) if "--machine" in b)
    commands = [line.removeprefix("$ ") for line in block.splitlines() if line.startswith("$ ")]
    return commands, block.rpartition("$ ")[2].partition("\n")[2]


def test_the_simulated_repair_reads_as_shown(tmp_path: Path) -> None:
    commands, shown = _session()
    environment = {
        **os.environ,
        "PYTEST_ADDOPTS": f"--report-dir={tmp_path} --baseline-dir={tmp_path}",
        "COLUMNS": "100",
    }
    for command in commands:
        words = shlex.split(command)
        module = "pytest" if words[0] == "pytest" else "suite"
        extra = [] if module == "pytest" else [f"--baseline-dir={tmp_path}"]
        done = subprocess.run(
            [sys.executable, "-m", module, *words[1:], *extra],
            cwd=ROOT, env=environment, capture_output=True, text=True, timeout=120, check=False,
        )  # fmt: skip
    assert done.stdout.startswith(shown)
    assert done.returncode == 0


def test_every_command_that_is_named_is_there() -> None:
    named = set(re.findall(r"`lanecheck (\w+)", PAGE))
    assert {"baseline", "compare"} <= named <= COMMANDS.keys()


def test_the_gates_that_are_named_are_those_of_the_code() -> None:
    one_run = (compare_statistics.ONE_RUN, compare_statistics.ONE_RUN_HOST)
    gates = (compare_statistics.LEAST, *one_run, compare_statistics.ONE_BOOT_EACH)
    assert gates == (0.03, 0.10, 0.25, 0.05)
    assert all(f"{gate * 100:.0f} %" in PAGE for gate in gates)
