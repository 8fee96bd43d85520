"""The benchmarks that ship, on machines that ship: from a physical fault to pytest's exit status."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from suite.store import runs
from tests.plugin.conftest import ROOT

MACHINES = ROOT / "tests" / "data" / "machines"
# hypothesis' plugin imports all of hypothesis at the end of every pytest.
ENVIRONMENT = {**os.environ, "PYTEST_ADDOPTS": "-p no:hypothesispytest"}
HEAVY = ("torch", "cupy", "numpy", "scipy", "matplotlib")


def pytest_on(machine: str, reports: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """The shipped benchmarks on a shipped machine."""
    given = ["benchmarks/", f"--machine={MACHINES / machine}", f"--report-dir={reports}", *arguments]
    return subprocess.run(
        [sys.executable, "-m", "pytest", *given], cwd=ROOT, env=ENVIRONMENT, capture_output=True, text=True, check=False
    )


def test_a_gpu_at_gen1_under_load_is_called_so(tmp_path: Path) -> None:
    done = pytest_on("2xpcie-gpu1-gen1.json", tmp_path, "-k", "under_load or host_to_device", "--sizes=64MiB")
    assert done.returncode == pytest.ExitCode.TESTS_FAILED, done.stdout
    assert "Gen1 x16 under load" in done.stdout
    assert "SIMULATED" in done.stdout
    (folder,) = tmp_path.iterdir()
    verdicts = {r.case: r.verdict for r in runs.read(folder).results if r.verdict}
    assert verdicts["link/under_load/gpu0"].status == "PASS"
    assert verdicts["link/under_load/gpu1"].status == "FAIL"
    assert "downtrained" in verdicts["link/under_load/gpu1"].cause


def test_a_right_machine_passes_with_warnings_as_errors(tmp_path: Path) -> None:
    done = pytest_on("2xpcie.json", tmp_path, "--sizes=64MiB", "-W", "error")
    assert done.returncode == 0, done.stdout
    assert " failed" not in done.stdout


def test_collecting_imports_nothing_heavy() -> None:
    program = (
        "import sys, pytest; status = pytest.main(['--collect-only', '-q', 'benchmarks/']); "
        f"print('STATUS', int(status), [name for name in {HEAVY} if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, env=ENVIRONMENT, capture_output=True, text=True, check=False
    )
    assert "STATUS 0 []" in done.stdout, done.stdout + done.stderr
