"""Causes that only a baseline (`--baseline`) can show."""

from __future__ import annotations

from suite.judge.cause import Cause

BASELINE: tuple[Cause, ...] = (
    Cause(
        "link_below_baseline",
        "FAIL",
        "the link under load is slower or narrower than in every run of the baseline (`--baseline`)",
        "{who} runs at {load} under load, {before} in the baseline {name}.",
        "Undo what was changed since, or reseat the card and the riser and check the slot's speed and bifurcation in "
        "the BIOS; `lanecheck compare {name} RUN` lists what else changed.",
        "The link of the baseline, after the change is undone.",
    ),
    Cause(
        "worse_than_baseline",
        "FAIL",
        "the case is worse than in the baseline by more than its gate (docs/comparing.md), and was so when measured "
        "once more",
        "{who}: {measured}, {before} in the baseline {name} ({change}){hint}.",
        "`lanecheck compare {name} RUN` lists what changed in the machine; stop other programs (`nvidia-smi`) and "
        "repeat.",
        "The baseline's number on an idle machine, or after the change is undone.",
    ),
    Cause(
        "gpu_gone",
        "FAIL",
        "a GPU of the baseline's newest run is not on this machine: not at its address, and no other of its model",
        "{who} is gone: it is in the baseline and not on this machine.",
        "Look for Xid 79 and PCIe errors in `dmesg`, then at `lspci`: if the card is there, restart the driver or the "
        "machine; if not, check its seat, its riser and its power cables. If it was taken out, save a new baseline.",
        "`nvidia-smi -L` and `lspci` list it again.",
    ),
    Cause(
        "as_baseline",
        "PASS",
        "the machine alone cannot tell whether this is right, and it is as in the baseline, which did not fail here",
        "{who}: {measured}, as in the baseline {name} ({before}, {runs}).",
    ),
)
