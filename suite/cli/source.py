"""Where a machine that is shown comes from: nobody may take a recording, or a made-up machine, for this one."""

from __future__ import annotations

from pathlib import Path

from suite.records.scenario import Scenario
from suite.report.style import printable


def sentence(scenario: Scenario, path: Path) -> str:
    """One sentence. A scenario has a title or faults, a recording has neither."""
    if scenario.title is None and not scenario.faults:
        return printable(f"Recorded machine ({path.name}): nothing was asked of the machine that this runs on.")
    faults = len(scenario.faults)
    hidden = (
        f"; {faults} fault{'' if faults == 1 else 's'} show{'s' if faults == 1 else ''} under load" if faults else ""
    )
    return printable(f"SIMULATED machine ({path.name}): {scenario.title or 'no title'}{hidden}.")
