"""GPUs that only one of two machines has. A card is known by its address, and elsewhere by its model: one that moved to
another slot is no loss."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from suite.records.comparison import Difference
from suite.records.machine import Gpu, Machine
from suite.records.run import Run


def gone(before: Machine, after: Machine) -> tuple[Gpu, ...]:
    """GPUs of `before` that `after` lacks. Swapped: GPUs that came."""
    staying = {gpu.address for gpu in after.gpus if gpu.address}
    known = {gpu.address for gpu in before.gpus if gpu.address}
    left = [gpu for gpu in before.gpus if gpu.address not in staying]
    moved = [gpu.name for gpu in after.gpus if gpu.address not in known]
    lost = []
    for gpu in left:
        if gpu.name in moved:
            moved.remove(gpu.name)
        else:
            lost.append(gpu)
    return tuple(lost)


def differences(before: Sequence[Run], after: Sequence[Run]) -> Iterator[Difference]:
    """One for each GPU that is gone or came, by the newest run of each side."""
    old, new = before[-1].machine, after[-1].machine
    for gpu in gone(old, new):
        yield Difference(name(gpu), "there", None, gpu=gpu.index, whole=True)
    for gpu in gone(new, old):
        yield Difference(name(gpu), None, "there", gpu=gpu.index, whole=True)


def folded(before: Sequence[Run], after: Sequence[Run]) -> set[str]:
    """Addresses on the way to GPUs that are gone or came, and to no other GPU: what they say goes without saying."""
    old, new = before[-1].machine, after[-1].machine
    return _own(old, gone(old, new)) | _own(new, gone(new, old))


def renumbered(before: Sequence[Run], after: Sequence[Run]) -> Iterator[str]:
    """Cards that have another index now: cases are compared by index."""
    old, new = before[-1].machine, after[-1].machine
    indices = {gpu.address: gpu.index for gpu in old.gpus if gpu.address}
    pairs = [(indices[gpu.address], gpu.index) for gpu in new.gpus if gpu.address in indices]
    told = [f"GPU{one} is GPU{two} now" for one, two in pairs if one != two]
    if told:
        yield f"{', '.join(told)}: cases are compared by these numbers, so that they are of other cards."


def name(gpu: Gpu) -> str:
    """'GPU1 (RTX PRO 6000, 0000:a1:00.0)'."""
    return f"GPU{gpu.index} ({', '.join(part for part in (gpu.name, gpu.address) if part)})"


def _own(machine: Machine, lost: Sequence[Gpu]) -> set[str]:
    others = [gpu for gpu in machine.gpus if gpu not in lost]
    return _ways(machine, lost) - _ways(machine, others)


def _ways(machine: Machine, gpus: Sequence[Gpu]) -> set[str]:
    return {function.address for gpu in gpus for function in machine.ancestors(gpu.address)}
