"""What pytest-benchmark saved and what its gate found, said beside our report: the last screen is what is read."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

SAVED = ("Saved benchmark data in", "Wrote benchmark data in")
NAMED = 3  # regressions named in a sentence; of the others their number is enough
_HEARD = pytest.StashKey[list[str]]()


@contextmanager
def overheard(config: pytest.Config) -> Iterator[None]:
    """Keeps where pytest-benchmark saves to: its logger is silent without its table, and says it above our section."""
    benchmarks = config.pluginmanager.getplugin("pytest-benchmark")
    if benchmarks is None:
        yield
        return
    heard = config.stash.setdefault(_HEARD, [])
    logger, info = benchmarks.logger, benchmarks.logger.info

    def keep(text: str, *arguments: Any, **options: Any) -> None:
        if text.startswith(SAVED):
            heard.append(text)
        else:
            info(text, *arguments, **options)

    logger.info = keep
    try:
        yield
    finally:
        logger.info = info


def tell(reporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Writes one line for each file that was saved, then the regressions."""
    for line in config.stash.get(_HEARD, ()):
        reporter.write_line(line)
    benchmarks = config.pluginmanager.getplugin("pytest-benchmark")
    sentence = regressions(benchmarks) if benchmarks is not None else None
    if sentence:
        reporter.write_line(sentence, red=True)


def regressions(benchmarks: Any) -> str | None:
    """'2 regressions against 0001_before: …'; None where nothing regressed. A case that fails two gates is one."""
    cases = list(dict.fromkeys(name for name, _ in benchmarks.performance_regressions))
    if not cases:
        return None
    more = f" and {len(cases) - NAMED} more" if len(cases) > NAMED else ""
    against = ", ".join(path.stem for path in benchmarks.compared_mapping)
    count = "1 regression" if len(cases) == 1 else f"{len(cases)} regressions"
    return f"{count} against {against}: {', '.join(cases[:NAMED])}{more}"
