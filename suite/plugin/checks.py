"""The `check` fixture's object: one case from its call in a benchmark to its pytest outcome."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from suite.errors import SuiteError
from suite.plan import cases, peers
from suite.plugin import collect, lists, sentences
from suite.plugin.replay import replay
from suite.plugin.state import EXIT_FAILED, State
from suite.records.case import Operation
from suite.records.run import Result

SKIPPED = ("UNAVAILABLE", "NOT_SAMPLED")
DOUBTFUL = ("WARN", "INDETERMINATE")
ENDED = pytest.StashKey[bool]()


@dataclass(frozen=True)
class Check:
    """Measures and judges the benchmark that calls it. Called once in a benchmark."""

    benchmark: Any
    item: pytest.Item
    state: State

    def __call__(self, operation: Operation, **plan: Any) -> Result:
        """operation and plan: as in suite.records.case.Plan. Fails, skips or passes the benchmark by its verdict."""
        return self._outcome(lambda: self._result(operation, plan))

    def one_a_class(self, operation: Operation, *, gpus: tuple[int, int], **plan: Any) -> Result:
        """As a call, but in quick for one pair of GPUs of each class, and for pairs that disagree with theirs. The
        others are skipped, represented by a named one."""
        return self._outcome(
            lambda: self._represented(operation, gpus) or self._result(operation, plan | {"gpus": gpus})
        )

    def _outcome(self, ask: Callable[[], Result]) -> Result:
        if self.item.stash.get(ENDED, False):
            pytest.fail("a benchmark calls check() once: write one function a case", pytrace=False)
        self.benchmark.skipped = True  # holds if Ctrl-C comes now; pytest-benchmark sets it again at the case's end
        result = ask()
        self.item.stash[ENDED] = True
        if result.verdict is None:
            raise AssertionError(f"{result.case} has no verdict")
        self.item.user_properties += sentences.properties(result)
        if result.verdict.status in SKIPPED:
            pytest.skip(sentences.skip(result))
        self._replay(result)
        if result.verdict.status == "FAIL" or (self.state.strict and result.verdict.status in DOUBTFUL):
            lists.fail(self.item, sentences.failure(result))
        return result

    def _represented(self, operation: Operation, pair: tuple[int, int]) -> Result | None:
        """The result that names the pair which stands for this one; None where this one is to be measured."""
        if collect.why_unavailable(self.item) is not None or self.state.settings.effort == "full":
            return None
        session = self.state.start()
        stand = self.state.representatives().instead_of(pair, session.results)
        if stand is None:
            return None
        case = collect.case_of(self.item)
        return session.keep(cases.represented(case, operation, pair, collect.of_another_pair(case, pair, stand)))

    def _result(self, operation: Operation, given: dict[str, Any]) -> Result:
        session = self.state.start()
        case = collect.case_of(self.item)
        reason = collect.why_unavailable(self.item)
        try:
            if reason is not None:
                return session.keep(cases.unavailable(case, operation, reason))
            plan = cases.complete(session.machine, self.state.settings, case, operation, **given)
            given_up = peers.given_up(session.results, plan.gpus, plan.p2p) if operation in cases.PEERS else None
            if given_up is not None:
                return session.keep(cases.unavailable(case, operation, given_up))
            if self.state.measures_here and operation != "link_under_load":
                session.see_links(plan.gpus)
            return session.check(plan)
        except SuiteError as error:  # what is measured cannot be kept (a full disk): going on would be in vain
            pytest.exit(str(error), returncode=EXIT_FAILED)

    def _replay(self, result: Result) -> None:
        """A slow result is kept: it is the 'before' of a repair. The time that wrong bytes took means nothing."""
        if result.verified is False:
            self.benchmark.has_error = True
        elif result.samples_s:
            replay(self.benchmark, self.state.clock, result)


def excuse(item: pytest.Item, benchmark: Any, report: pytest.TestReport) -> None:
    """Tells pytest-benchmark that an unused fixture is right here: a case that hung or broke has nothing to replay."""
    if benchmark is not None and benchmark.stats is None and (report.failed or item.stash.get(ENDED, False)):
        benchmark.skipped = True


def progress(report: pytest.TestReport) -> tuple[str, str, tuple[str, dict[str, bool]]] | None:
    """Category, letter and word of a case that passed with a doubt: 'w' and 'i'. None leaves it to pytest."""
    if report.when != "call" or report.outcome != "passed":
        return None
    properties = dict(report.user_properties)
    status = properties.get("verdict")
    if status not in DOUBTFUL:
        return None
    word = f"{status} ({str(properties.get('cause')).replace('_', ' ')})"
    return "passed", "w" if status == "WARN" else "i", (word, {"yellow": True})
