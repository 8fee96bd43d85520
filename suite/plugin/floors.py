"""A manifest's floors that fit no case: a misspelt one would never fail, and must not look as if it were kept."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from fnmatch import fnmatchcase
from itertools import product
from pathlib import Path

import pytest

_WILD = "*?["


@dataclass(frozen=True)
class Function:
    """A benchmark with the ids of its axes as a full run without any restriction has them. ids: None where they are
    not known, as of what is unavailable on this machine."""

    name: str
    ids: tuple[tuple[str, ...], ...] | None

    def cases(self) -> Iterator[str]:
        """The names of its cases."""
        return ("/".join((self.name, *chosen)) for chosen in product(*self.ids or ()))

    def may_fit(self, pattern: str) -> bool:
        """Whether a floor may be of one of its cases."""
        head = pattern[: next((at for at, sign in enumerate(pattern) if sign in _WILD), len(pattern))]
        if not (head.startswith(self.name) or self.name.startswith(head)):
            return False
        return self.ids is None or any(fnmatchcase(case, pattern) for case in self.cases())


def unmet(floors: Collection[str], cases: Sequence[str]) -> list[str]:
    """Floors that fit none of some cases."""
    return [pattern for pattern in floors if not any(fnmatchcase(case, pattern) for case in cases)]


def misspelt(floors: Collection[str], cases: Sequence[str], functions: Sequence[Function]) -> str | None:
    """A sentence on the first floor that fits no case of this machine, whatever is asked for; None where all may."""
    for pattern in unmet(floors, cases):
        if not any(function.may_fit(pattern) for function in functions):
            near = get_close_matches(pattern, cases, n=1)
            hint = f"did you mean {near[0]}?" if near else "correct it, or take it out"
            return f"the manifest's floor of {pattern} fits no case of this machine: {hint}"
    return None


def is_whole(config: pytest.Config) -> bool:
    """Whole folders were asked for: of single files the floors of others are no mistake."""
    here = config.invocation_params.dir
    return all("::" not in given and (here / Path(given)).is_dir() for given in config.args)
