"""A result together with what it may be compared with, and the sentences that a verdict is made of."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from operator import attrgetter
from statistics import median, quantiles
from typing import Any, TypeVar

from suite.judge.catalogue import CAUSES
from suite.judge.thresholds import DEFAULT, Thresholds
from suite.records.case import LinkWatch
from suite.records.expect import NOTHING, Expectations, ExpectedGpu
from suite.records.machine import Gpu, Machine
from suite.records.run import Result, Verdict
from suite.units import format_bandwidth

Key = TypeVar("Key", bound=Hashable)


@dataclass(frozen=True)
class View:
    """One result, the machine, the results that came before it, the thresholds in force, and the manifest."""

    result: Result
    machine: Machine
    so_far: Sequence[Result] = ()
    thresholds: Thresholds = DEFAULT
    expected: Expectations = NOTHING

    @property
    def who(self) -> str:
        """The GPUs of the case in words; the NUMA node where it has no GPU."""
        if not self.result.gpus:
            return "the host" if self.result.memory_node is None else f"node {self.result.memory_node}"
        one_to_other = self.result.group in ("peer_copy", "host_staging") and len(self.result.gpus) == 2
        return gpu_words(self.result.gpus, " → " if one_to_other else ", ")

    @property
    def gpu(self) -> Gpu | None:
        """The GPU of a case with one GPU."""
        return self.machine.gpu(self.result.gpus[0]) if len(self.result.gpus) == 1 else None

    @property
    def measured(self) -> str:
        """The bandwidth in words."""
        return format_bandwidth(self.result.bandwidth)

    @property
    def seconds(self) -> float | None:
        """The median time of one operation; None where there are no samples."""
        return median(self.result.samples_s) if self.result.samples_s else None

    @property
    def spread(self) -> float:
        """Interquartile range over median of the samples; 0 with fewer than two."""
        samples = self.result.samples_s
        if len(samples) < 2:
            return 0.0
        low, middle, high = quantiles(samples, n=4, method="inclusive")
        return (high - low) / middle if middle else 0.0

    @property
    def best(self) -> float | None:
        """The bandwidth of the fastest sample, bytes/s."""
        if not self.result.samples_s or self.result.bandwidth is None or not min(self.result.samples_s):
            return None
        return self.result.bandwidth * median(self.result.samples_s) / min(self.result.samples_s)

    def manifest(self, gpu: Gpu) -> ExpectedGpu | None:
        """What the manifest says of a GPU."""
        return self.expected.of(self.machine, gpu)

    def watch(self, gpu: int) -> LinkWatch | None:
        """The link watch of a GPU: the case's own, else the latest one before it."""
        if self.result.link is not None and self.result.gpus[:1] == (gpu,):
            return self.result.link
        earlier = (r.link for r in reversed(self.so_far) if r.link is not None and r.gpus[:1] == (gpu,))
        return next(earlier, None)

    def alike(self, *differing: str) -> Iterator[Result]:
        """Earlier results with a trustworthy bandwidth or latency that agree in everything but the fields named."""
        same = _sameness(differing)
        own = same(self.result)
        for other in self.so_far:
            if same(other) == own and other.verified is not False and other.error is None and other.samples_s:
                yield other

    def equal_gpus(self, gpu: Gpu) -> Iterator[Gpu]:
        """Other GPUs of the same model."""
        return (g for g in self.machine.gpus if g.name == gpu.name and g.index != gpu.index)


_SAME = (
    "operation", "bytes", "gpus", "memory_node", "target_node", "engine", "memory", "chunk_bytes", "world_size",
    "transport", "graph", "backend", "p2p", "dtype", "in_place", "tuning", "ranks_placed", "ranks_as",
)  # fmt: skip


@cache
def _sameness(differing: tuple[str, ...]) -> Callable[[Result], tuple[Any, ...]]:
    """What two results must agree in. Asked of every earlier result by every rule: as fast as can be."""
    return attrgetter(*(field for field in _SAME if field not in differing))


def passed(result: Result) -> bool:
    """Judged, and in order."""
    return result.verdict is not None and result.verdict.status == "PASS"


def fastest(results: Iterable[Result], key: Callable[[Result], Key]) -> dict[Key, Result]:
    """Of the results that share a key the one with the highest bandwidth; those without one are left out."""
    best: dict[Key, Result] = {}
    for one in results:
        if one.bandwidth and (key(one) not in best or one.bandwidth > (best[key(one)].bandwidth or 0.0)):
            best[key(one)] = one
    return best


def say(cause: str, *extra: str, binding: str | None = None, **words: Any) -> Verdict:
    """A verdict of the catalogue: its sentence with the words filled in, then further evidence.

    Raises KeyError where the catalogue's sentence needs a word that is not given: a mistake in the rule.
    """
    row = CAUSES[cause]
    advice = row.advice.format_map(_Lenient(words)) if row.advice else None
    return Verdict(row.status, cause, (row.finding.format(**words), *(e for e in extra if e)), advice, binding)


def gpu_words(gpus: Sequence[int], between: str = ", ") -> str:
    """'GPU0', 'GPU0, GPU1', and 'GPU0 to GPU7' for a row of more than three."""
    if len(gpus) > 3 and list(gpus) == list(range(gpus[0], gpus[-1] + 1)):
        return f"GPU{gpus[0]} to GPU{gpus[-1]}"
    return between.join(f"GPU{g}" for g in gpus)


class _Lenient(dict[str, Any]):
    """Leaves braces that have no word as they are."""

    def __missing__(self, key: str) -> str:
        return "{" + key + "}"
