"""What the ranks send in a verified collective, and what each of them must get.

Values are whole numbers that are exact in the dtype, sums over all ranks too. They depend on rank, position and call:
swapped chunks, a rank counted twice, a lost chunk and a buffer of the call before all show.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch

from suite.errors import Unavailable
from suite.records.case import Operation, Plan

# Every whole number up to this is exact: 2 to the power of the significand's bits (IEEE 754; bfloat16 has 8).
EXACT = {"float32": 1 << 24, "float16": 1 << 11, "bfloat16": 1 << 8}
REDUCING: tuple[Operation, ...] = ("allreduce", "reduce_scatter")
# Elements made or compared at a time: what a processor's cache holds, and enough to keep a GPU busy.
BLOCK = {"cpu": 1 << 16, "cuda": 1 << 24}
_DISTINCT = 1 << 10  # values that a rank sends; more would tell nothing more


@dataclass(frozen=True)
class Message:
    """Sizes of one rank's message, in elements. total: of the larger buffer (nccl-tests' size column); chunk: of one
    rank's share of it."""

    operation: Operation
    rank: int
    world_size: int
    total: int
    chunk: int
    dtype: Any
    device: Any

    @property
    def source(self) -> int:
        """Elements that a rank gives."""
        return self.chunk if self.operation == "all_gather" else self.total

    @property
    def target(self) -> int:
        """Elements that a rank gets."""
        return self.chunk if self.operation == "reduce_scatter" else self.total


def message(plan: Plan, rank: int, device: Any) -> Message:
    """Elements of a plan's bytes; a scattered or gathered message has at least one element a rank."""
    if plan.dtype not in EXACT:
        raise Unavailable(f"{plan.dtype} cannot be verified: use {', '.join(EXACT)}")
    dtype = getattr(torch, plan.dtype)
    total = max(1, plan.bytes // dtype.itemsize)
    chunk = total
    if plan.operation in ("all_gather", "reduce_scatter", "all_to_all"):
        chunk = max(1, total // plan.world_size)
        total = chunk * plan.world_size
    return Message(plan.operation, rank, plan.world_size, total, chunk, dtype, device)


def fill(buffer: Any, sent: Message, call: int) -> None:
    """Writes what this rank sends in its call number `call`."""
    for first, count in _blocks(sent, buffer.numel()):
        buffer[first : first + count] = _values(sent, sent.rank, first, count, call)


def difference(buffer: Any, sent: Message, call: int) -> str | None:
    """The first element that this rank got wrong and how many are; None where all are right."""
    wrong, text = 0, ""
    for first, count in _blocks(sent, buffer.numel()):
        wanted = _wanted(sent, first, count, call)
        got = buffer[first : first + count]
        bad = torch.nonzero(got != wanted).flatten()
        if bad.numel() and not wrong:
            place = int(bad[0])
            text = f"element {first + place} is {float(got[place]):g}, not {float(wanted[place]):g}"
        wrong += bad.numel()
    return f"{wrong} of {buffer.numel()} elements are wrong; {text}" if wrong else None


def _wanted(sent: Message, first: int, count: int, call: int) -> Any:
    """What must be at [first, first + count) of this rank's target."""
    if sent.operation in REDUCING:
        offset = sent.rank * sent.chunk if sent.operation == "reduce_scatter" else 0
        return _sum(_values(sent, rank, first + offset, count, call) for rank in range(sent.world_size))
    if sent.operation == "broadcast":
        return _values(sent, 0, first, count, call)
    if sent.operation == "send_recv":
        return _values(sent, (sent.rank - 1) % sent.world_size, first, count, call)
    return _from_all(sent, first, count, call)


def _from_all(sent: Message, first: int, count: int, call: int) -> Any:
    """Chunks of all ranks one after another: their own (all_gather) or those meant for this rank (all_to_all)."""
    offset = sent.rank * sent.chunk if sent.operation == "all_to_all" else 0
    parts, end = [], first + count
    while first < end:
        rank, place = divmod(first, sent.chunk)
        length = min(sent.chunk - place, end - first)
        parts.append(_values(sent, rank, offset + place, length, call))
        first += length
    return torch.cat(parts)


def _sum(parts: Iterator[Any]) -> Any:
    total = next(parts)
    for part in parts:
        total += part
    return total


def _values(sent: Message, rank: int, first: int, count: int, call: int) -> Any:
    """A hash of position, rank and call, folded to whole numbers that stay exact when all ranks are summed."""
    word = torch.arange(first, first + count, dtype=torch.int32, device=sent.device)
    # Multiply and shift, in 32 bits that wrap (Knuth, The Art of Computer Programming, volume 3, section 6.4).
    word.mul_(-0x61C88647).add_(_wrapped(rank * 0x85EBCA6B + call * 0xC2B2AE35))
    word.bitwise_xor_(word >> 15).mul_(0x2C1B3C6D).bitwise_xor_(word >> 12)
    return word.bitwise_and_(_distinct(sent) - 1).to(sent.dtype)


def _distinct(sent: Message) -> int:
    """The largest power of two whose values stay exact when every rank's are summed, 1024 at most."""
    exact = EXACT[str(sent.dtype).removeprefix("torch.")]
    share = exact // sent.world_size if sent.operation in REDUCING else exact
    return max(2, min(_DISTINCT, 1 << (share.bit_length() - 1)))


def _wrapped(value: int) -> int:
    """The lower 32 bits as a signed number."""
    return (value + (1 << 31)) % (1 << 32) - (1 << 31)


def _blocks(sent: Message, elements: int) -> Iterator[tuple[int, int]]:
    block = BLOCK[sent.device.type]
    for first in range(0, elements, block):
        yield first, min(block, elements - first)
