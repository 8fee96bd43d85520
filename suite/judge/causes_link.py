"""Causes that a link's state under load shows."""

from __future__ import annotations

from suite.judge.cause import Cause

RESEAT = (
    "Reseat the card and the riser, try another slot or riser, "
    "and set the slot's link speed in the BIOS to its maximum or Auto"
)

LINK: tuple[Cause, ...] = (
    Cause(
        "downtrained_speed",
        "FAIL",
        "the link's speed under load is below what both ends of the hop support, and no target speed was set so low",
        "{who} runs at {load} under load, although {ends} support {possible}{loses}.",
        RESEAT + "; then look for a retimer's or the board's firmware update.",
        "`lspci -vv -s {lower}` under load: LnkSta below LnkCap on both ends; another slot or riser trains "
        "to full speed.",
    ),
    Cause(
        "configured_speed",
        "WARN",
        "as downtrained_speed, but the port's target link speed (LnkCtl2) names the speed that is seen",
        "{who} runs at {load} under load because {hop} is set to that target speed; {ends} support {possible}{loses}.",
        "Set the slot's link speed in the BIOS to Auto or its maximum, or undo the setpci or driver option "
        "that limits it.",
        "LnkCtl2's target speed rises and the link retrains to it.",
    ),
    Cause(
        "slower_than_card",
        "INDETERMINATE",
        "the speed under load is below the GPU's own, and the port above it is hidden or does not say what it supports",
        "{who} runs at {load} under load and could do {possible} itself; what the other end of {hop} "
        "supports is not visible.",
        "Run lanecheck on the host instead of in the virtual machine, or look up the slot in the board's manual.",
        "The host's `lspci -vv` of the root port: its LnkCap speed.",
    ),
    Cause(
        "downtrained_width",
        "WARN",
        "the width under load is below what both ends support, and nothing says whether that is wiring or a fault",
        "{who} runs at {load} under load, although {ends} support {possible}: slot wiring, "
        "bifurcation or a fault{loses}.",
        "Look up the slot's wiring and the BIOS bifurcation setting; if it should be wider, reseat the card "
        "or change the riser.",
        "The board's manual, an equal slot at full width, or link errors on this one.",
    ),
    Cause(
        "width_fault",
        "FAIL",
        "the width under load is below what both ends support, and equal GPUs run wider or the hop counts errors",
        "{who} runs at {load} under load, although {ends} support {possible}, and {reason}{loses}.",
        "Reseat the card, clean its contacts, change the riser or cable; check the BIOS bifurcation of this one slot.",
        "The card trains to full width in a slot where another one does.",
    ),
    Cause(
        "as_expected",
        "PASS",
        "the link is below what both ends support, and the manifest (`--expect`) says that this is right",
        "{who} runs at {load} under load, as the manifest expects; {ends} support {possible}.",
    ),
    Cause(
        "not_as_expected",
        "FAIL",
        "the link under load is slower or narrower than the manifest (`--expect`) says",
        "{who} runs at {load} under load, the manifest expects {expected}.",
        RESEAT + "; check the BIOS bifurcation of this slot. If the manifest is wrong, correct it.",
        "`lspci -vv` under load: LnkSta; the same card in another slot.",
    ),
    Cause(
        "link_idle_only",
        "INDETERMINATE",
        "the link was read, but never while a transfer ran",
        "{who} was read at {idle} and not under load: an idle GPU lowers its link to save power, so that "
        "this says nothing.",
        "Measure under load: run the link cases with `pytest benchmarks/`.",
        "The link's state over at least half a second of copies.",
    ),
    Cause(
        "link_hidden",
        "INDETERMINATE",
        "a virtual machine shows no state of the link, not even under load",
        "{who}'s link is hidden by the virtual machine ({vm}); only the measured bandwidth speaks for it.",
        "Run `lanecheck probe` on the host, or compare with an equal instance.",
        "The host's `lspci -vv` while this guest copies.",
    ),
    Cause(
        "link_unknown",
        "INDETERMINATE",
        "neither sysfs nor NVML says the link's speed and width under load",
        "{who}'s link does not say its speed and width under load.",
        "Run as root so that config space can be read, or update the kernel and the driver.",
        "`lspci -vv` as root shows LnkSta.",
    ),
    Cause(
        "link_beyond_its_ends",
        "INDETERMINATE",
        "the link is read faster or wider under load than its ends support, and no virtual machine makes them up",
        "{who} is read at {load} under load, although {ends} support no more than {possible}: one of the two "
        "readings is wrong.",
        "Run once as root so that config space is read, and compare both ends with nvidia-smi; update the kernel, "
        "the driver and the board's firmware.",
        "`lspci -vv -s {lower}` under load: LnkSta not above LnkCap at either end.",
    ),
    Cause(
        "retraining",
        "WARN",
        "the link's state changed while the transfer ran",
        "{who}'s link changed its state {changes} times in {seconds} of transfer.",
        "Set ASPM to off (`pcie_aspm=off`, BIOS ASPM Disabled), check power and cooling; if it stays, change "
        "riser or slot.",
        "No changes with ASPM off; or LnkSta's bandwidth-management bit set again after each run.",
    ),
    Cause(
        "signal_integrity",
        "FAIL",
        "correctable errors or replays rise fast under load, or any uncorrectable error was counted, at "
        "either end of a hop",
        "{who} counted {errors} in {seconds} of transfer on {hop}: the signal is bad.",
        "Reseat the card and its riser or cable, shorten the riser, try the slot one generation lower, "
        "update retimer firmware.",
        "Errors stop one generation lower, or follow the riser to another slot: `aer_dev_correctable` of both ends.",
    ),
    Cause(
        "link_errors",
        "WARN",
        "correctable errors or replays under load, more than the specification allows but few",
        "{who} counted {errors} in {seconds} of transfer on {hop}: more than a link in order does.",
        "Repeat with a longer run; if they return, reseat the card and its riser.",
        "The counters in `aer_dev_correctable` of both ends keep rising.",
    ),
    Cause(
        "platform_limited",
        "PASS",
        "the GPU supports more than the port it is attached to, and the link runs at all that the port supports",
        "{who} runs at {load}: {hop} supports no more, the GPU itself {device}.",
        "Nothing is wrong. More needs another slot, riser, chipset or processor.",
        "`lspci -vv`: LnkCap of the port.",
    ),
    Cause(
        "slot_uneven",
        "WARN",
        "the GPU's slot supports less than the GPU, and an equal GPU of this machine has a wider path",
        "{who} gets {cost}: its slot ({hop}) supports only {load}, {sibling}'s path has {wider}.",
        "Move the card to a slot that hangs off the processor at full width; chipset and M.2 slots are often x4.",
        "The board's manual: which slot has which lanes; the same card in the other slot.",
    ),
    Cause(
        "upstream_hop_narrower",
        "PASS",
        "a hop further up supports less than the GPU's own link, on all equal GPUs alike",
        "{who}'s own link looks wider, but its path is bound by {hop} above it, {load}.",
        "Nothing is wrong. More needs a slot that hangs off the processor at full width.",
        "`lspci -tv` shows the hop; its port's LnkCap.",
    ),
    Cause(
        "upstream_hop_uneven",
        "WARN",
        "a hop further up supports less than the GPU's own link, and an equal GPU of this machine has a wider path",
        "{who} gets {cost}: the hop above its slot ({hop}) is only {load}, {sibling}'s path has {wider}.",
        "Move the card to a slot that hangs off the processor at full width; chipset and M.2 slots are often x4.",
        "The board's manual: which slot shares which lanes; the same card in the other slot.",
    ),
)
