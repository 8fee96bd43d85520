"""Makes the sample reports anew: `python tools/samples.py`.

reports/sample-simulated-8gpu is simulated and kept as a compressed journal; of every other sample (measured on a real
machine) only the reports are made again from its run.
"""

from __future__ import annotations

import gzip
import subprocess
import sys
import tempfile
from pathlib import Path

from suite import session
from suite.judge import findings
from suite.report import markdown
from suite.store import journal, runs

ROOT = Path(__file__).parents[1]
REPORTS = ROOT / "reports"
SIMULATED = REPORTS / "sample-simulated-8gpu"
MACHINE = "tests/data/machines/8xpcie-switches.json"


def main() -> None:
    """Simulates, then renders every sample."""
    SIMULATED.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        simulate(Path(scratch))
    for folder in sorted(REPORTS.glob("sample-*")):
        run = runs.read(folder)
        found = findings.findings(run)
        (folder / "report.md").write_text(markdown.render(run, found, findings.headline(run, found)))
        session.write_page(folder, run, found)
        print(f"{folder.relative_to(ROOT)}: {len(run.results)} results")


def simulate(scratch: Path) -> None:
    """Runs the benchmarks on the simulated machine and keeps the journal."""
    command = [sys.executable, "-m", "pytest", "-q", "benchmarks/", "--machine", MACHINE, "--report-dir", str(scratch)]
    subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    (lines,) = scratch.glob(f"*/{journal.NAME}")
    (SIMULATED / journal.KEPT).write_bytes(gzip.compress(lines.read_bytes(), mtime=0))


if __name__ == "__main__":
    main()
