"""Two sets of runs side by side: whether they may be compared, what changed in the machine, what in the numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from suite.errors import StoreError
from suite.records.comparison import Call, Change, Comparison, Missing, Side
from suite.records.machine import Machine
from suite.records.run import Run
from suite.store import baselines, compare_cases, compare_gpus, compare_machine
from suite.store.compare_cases import Cases

ORDER: tuple[Call, ...] = ("worse", "better", "inconclusive", "same")


def compare(
    before: Sequence[Run],
    after: Sequence[Run],
    *,
    names: tuple[str, str] = ("before", "after"),
    again: Sequence[Run] = (),
    force: bool = False,
) -> Comparison:
    """What changed from some runs to others, at least one each. again: runs made after those, which must show a called
    change once more. Raises StoreError, one sentence, where the two say nothing about each other; force: compares all
    the same and says so."""
    _check_distinct(before, after, again)
    reasons = tuple(why_not(before, (*after, *again)))
    if reasons and not force:
        raise StoreError(f"{'; '.join(reasons)}: add --force to compare all the same")
    old, new = compare_cases.collect(before), compare_cases.collect(after)
    each = boot_each(before, after)
    changes = tuple(_changes(old, new, each))
    if again:
        changes = tuple(_repeated(changes, old, compare_cases.collect(again)))
    missing = tuple(_missing(old, new))
    return Comparison(
        before=_side(names[0], before),
        after=_side(names[1], after),
        call="worse" if _lost(before, after) else overall([change.call for change in changes]),
        machine=compare_machine.differences(before, after),
        changes=changes,
        missing=missing,
        forced=reasons,
        notes=(*_notes(before, after), *_threads(old, new)),
        busy=compare_machine.busy(before, (*after, *again)),
    )


def _lost(before: Sequence[Run], after: Sequence[Run]) -> bool:
    return bool(compare_gpus.gone(before[-1].machine, after[-1].machine))


def overall(calls: Sequence[Call]) -> Call:
    """The call that is said first of many: worse before better, and 'inconclusive' only where nothing is called."""
    return next((call for call in ORDER if call in calls), "same")


def why_not(before: Sequence[Run], after: Sequence[Run]) -> Iterator[str]:
    """Why two sets of runs say nothing about each other, a clause each; nothing where they do."""
    questions: tuple[tuple[str, Callable[[Run], object]], ...] = (
        ("one is simulated and the other one measured", lambda run: run.simulated),
        ("the effort differs", lambda run: run.settings.effort),
    )
    for sentence, ask in questions:
        old, new = {ask(run) for run in before}, {ask(run) for run in after}
        if old != new:
            told = f" ({_listed(old)} before, {_listed(new)} after)" if sentence.startswith("the") else ""
            yield f"{sentence}{told}"
    yield from _other_machine(before[-1].machine, after[-1].machine)


def one_machine(runs: Sequence[Run]) -> Iterator[str]:
    """Why some runs cannot be of one baseline, a clause each; nothing where they can."""
    for run in runs[1:]:
        yield from why_not(runs[:1], (run,))


def boot_each(before: Sequence[Run], after: Sequence[Run]) -> bool:
    """Every side was made in one boot, and these are two: what differs from boot to boot counts as change."""
    old, new = _boots(before), _boots(after)
    return old is not None and new is not None and len(old) == 1 and len(new) == 1 and old != new


def _other_machine(old: Machine, new: Machine) -> Iterator[str]:
    """A changed slot, BIOS, driver or a lost GPU leave it the same machine; another board or processor do not."""
    known: dict[str, tuple[object, object]] = {
        "host name": (old.host_name, new.host_name),
        "board": (old.environment.board, new.environment.board),
        "CPU": (old.cpu.model, new.cpu.model),
        "virtual machine": (old.environment.virtual_machine, new.environment.virtual_machine),
    }
    for what, (one, two) in known.items():
        if one and two and one != two:
            yield f"these are different machines ({what} {one} before, {two} after)"
            return
    models = [{gpu.name for gpu in machine.gpus} for machine in (old, new)]
    if all(models) and not models[0] & models[1]:
        yield f"these are different machines (GPUs {_listed(models[0])} before, {_listed(models[1])} after)"


def _listed(values: set[object] | set[str]) -> str:
    return ", ".join(sorted(map(str, values)))


def _check_distinct(before: Sequence[Run], after: Sequence[Run], again: Sequence[Run]) -> None:
    groups = (("BEFORE", before), ("AFTER", after), ("--again", again))
    seen: list[tuple[str, Run]] = []
    for name, runs in groups:
        for run in runs:
            twin = next((where for where, other in seen if baselines.same_run(run, other)), None)
            if twin is not None:
                raise StoreError(
                    f"the run of {run.started or 'an unknown time'} is given twice ({twin} and {name}): a run says "
                    "nothing about itself, leave it out on one side"
                )
            seen.append((name, run))


def _side(name: str, runs: Sequence[Run]) -> Side:
    boots = _boots(runs)
    return Side(
        name=name,
        runs=len(runs),
        boots=len(boots) if boots is not None else None,
        started=tuple(run.started for run in runs if run.started),
        incomplete=sum(1 for run in runs if not run.complete),
        simulated=any(run.simulated for run in runs),
    )


def _boots(runs: Sequence[Run]) -> set[str] | None:
    boots = {run.machine.environment.boot for run in runs}
    return None if None in boots else {boot for boot in boots if boot is not None}


def _changes(old: dict[str, Cases], new: dict[str, Cases], each: bool) -> Iterator[Change]:
    for case, after in new.items():
        before = old.get(case)
        if before is not None and compare_cases.comparable(before, after):
            yield compare_cases.change(before, after, boot_each=each)


def _repeated(changes: Sequence[Change], old: dict[str, Cases], again: dict[str, Cases]) -> Iterator[Change]:
    """A called case must show the same once more; where it does not, nothing is called."""
    for change in changes:
        known = again.get(change.case)
        yield compare_cases.confirmed(change, old[change.case], known) if change.call in ("worse", "better") else change


def _missing(old: dict[str, Cases], new: dict[str, Cases]) -> Iterator[Missing]:
    """Cases with numbers that the other side lacks. None of them passes in silence."""
    for case in dict.fromkeys([*old, *new]):
        one, two = old.get(case), new.get(case)
        if one is not None and two is not None:
            if not compare_cases.comparable(one, two) and (one.values or two.values):
                yield compare_cases.missing(one, two)
        elif one is not None and one.values:
            yield Missing(case, "before", "not in the runs after")
        elif two is not None and two.values:
            yield Missing(case, "after", "not in the runs before")


def _notes(before: Sequence[Run], after: Sequence[Run]) -> Iterator[str]:
    for name, runs in (("before", before), ("after", after)):
        boots = _boots(runs)
        if len(runs) > 1 and boots is not None and len(boots) == 1:
            yield f"The {len(runs)} runs {name} were made in one boot: what differs from boot to boot is not in them."
        broken = sum(1 for run in runs if not run.complete)
        if broken:
            yield f"{broken} of {len(runs)} runs {name} {'was' if broken == 1 else 'were'} broken off before the end."
        yield from (f"Of the runs {name}: {note}" for run in runs for note in run.notes)
    if min(len(before), len(after)) == 1:
        where = "a side" if len(before) == len(after) else "before" if len(before) == 1 else "after"
        yield (
            f"One run {where}: only changes above 10 % are called, of gloo and host memory above 25 %; from four "
            "runs a side on, changes above 3 % are."
        )
    yield from compare_gpus.renumbered(before, after)
    yield from _settings(before[-1], after[-1])


def _threads(old: dict[str, Cases], new: dict[str, Cases]) -> Iterator[str]:
    """Cases that another number of threads measured: that alone can make a difference."""
    counts = [(c, old[c].last.threads, new[c].last.threads) for c in new if c in old]
    other = [f"{case} ({one} before, {two} after)" for case, one, two in counts if one != two]
    if other:
        more = f" and {len(other) - 3} more" if len(other) > 3 else ""
        yield f"Copied by another number of threads: {', '.join(other[:3])}{more}."


def _settings(before: Run, after: Run) -> Iterator[str]:
    for name in ("sizes", "gpus", "nodes", "world_sizes"):
        old, new = getattr(before.settings, name), getattr(after.settings, name)
        if old != new:
            words = [", ".join(map(str, one)) if one else "all" for one in (old, new)]
            yield f"Asked for other {name.replace('_', ' ')}: {words[0]} before, {words[1]} after."
