"""What a cause is: the row of the catalogue that a verdict points to."""

from __future__ import annotations

from dataclasses import dataclass

from suite.records.run import Status


@dataclass(frozen=True)
class Cause:
    """One thing that can be said of a case, or of the machine as a whole.

    fires: the evidence it needs. finding: the sentence of the verdict; {fields} are filled in by the rule.
    advice: what to do, naming the setting, part or command. confirm: what would show that this cause is the right one.
    """

    name: str
    status: Status
    fires: str
    finding: str
    advice: str | None = None
    confirm: str | None = None
