"""Every command in the README and in docs/ runs."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
# `make bench` installs from the network and `make test` runs this test; CI calls make itself.
NOT_HERE = ("make ", "pre-commit ")


def commands(path: Path) -> list[str]:
    """The lines of a page's `sh` blocks: each line is one command; `# …` after it says where else it applies."""
    blocks = re.findall(r"^```sh\n(.*?)^```", path.read_text(), re.M | re.S)
    lines = (line.strip() for block in blocks for line in block.splitlines())
    return [line for line in lines if line and not line.startswith(("#", *NOT_HERE))]


def documented() -> list[tuple[str, str]]:
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
    return [(page.name, command) for page in pages for command in commands(page)]


def environment(tmp_path: Path) -> dict[str, str]:
    """As a user's shell with .venv active, and nothing written into the checkout."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return {**os.environ, "PATH": path, "PYTEST_ADDOPTS": f"--report-dir={tmp_path}", "PYTEST_PLUGINS": ""}


def test_the_readme_has_commands() -> None:
    assert len(commands(ROOT / "README.md")) >= 6


@pytest.mark.parametrize(("page", "command"), documented(), ids=lambda text: str(text)[:60])
def test_a_documented_command_runs(page: str, command: str, tmp_path: Path) -> None:
    words = shlex.split(command, comments=True)
    done = subprocess.run(
        words, cwd=ROOT, env=environment(tmp_path), capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, f"{page}: {command}\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}"
