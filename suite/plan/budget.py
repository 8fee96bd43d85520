"""About how long cases take, before anything is measured: what keeps a quick run quick."""

from __future__ import annotations

from suite.records.case import LATENCIES, Plan
from suite.records.flows import flows

# Chosen, not measured yet on a machine of several GPUs: bytes a second of a peer copy, of one that the driver stages,
# and of filling and comparing; seconds of a case besides; copies that find out how long a sample must be.
DIRECT, STAGED, LOOKED_AT = 20e9, 8e9, 1e9
BESIDES_S, PILOT = 0.04, 10
# A GPU that was left alone for a second is woken for so long (suite.measure.cuda.timing).
WAKE_S = 0.3


def seconds(plan: Plan) -> float:
    """Seconds of one case between GPUs, waking not counted."""
    if plan.operation in LATENCIES:
        return BESIDES_S
    count = len(flows(plan)) if len(plan.gpus) > 1 else 1
    copies = plan.rounds * (plan.iterations + plan.warmup) + PILOT
    rate = STAGED if plan.p2p is False else DIRECT
    return BESIDES_S + plan.bytes * count * (copies / (rate * max(1, count // 2)) + 1 / LOOKED_AT)
