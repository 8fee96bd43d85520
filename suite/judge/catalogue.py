"""Every cause that lanecheck can name. `python -m suite.judge.catalogue` prints docs/verdicts.md from it."""

from __future__ import annotations

from suite.judge.cause import Cause
from suite.judge.causes_baseline import BASELINE
from suite.judge.causes_copies import COPIES
from suite.judge.causes_link import LINK
from suite.judge.causes_other import FAILURES, MACHINE, NEUTRAL
from suite.judge.causes_peers import PEERS
from suite.judge.document import render

GROUPS: tuple[tuple[str, tuple[Cause, ...]], ...] = (
    ("In order, or nothing to say", NEUTRAL),
    ("Failures", FAILURES),
    ("The link", LINK),
    ("Copies and memory", COPIES),
    ("Peers and collectives", PEERS),
    ("Beside a baseline", BASELINE),
    ("The machine as a whole", MACHINE),
)
CAUSES: dict[str, Cause] = {cause.name: cause for _, group in GROUPS for cause in group}


def document() -> str:
    """docs/verdicts.md: statuses, every cause, every threshold."""
    return render(GROUPS)


if __name__ == "__main__":
    print(document(), end="")
