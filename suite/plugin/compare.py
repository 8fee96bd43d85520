"""pytest-benchmark's comparisons: what it records of the machine, what it groups, and which cases it does not see."""

from __future__ import annotations

import operator
from collections import defaultdict
from collections.abc import Callable
from typing import Any

import pytest

from suite.plugin import sentences
from suite.plugin.state import State
from suite.records.machine import Machine

Facts = dict[str, str | int | bool | None]
NAMED = 3  # cases named in a sentence; of the others their number is enough
# What a clock frequency was at one moment makes every two runs differ; the host's name is private.
DROPPED = ("hz_actual", "hz_actual_friendly")


def facts(machine: Machine, *, simulated: bool) -> Facts:
    """What must agree for two runs to be comparable. Holds no name, serial number or address."""
    software = machine.software
    return {
        "simulated": simulated,
        "machine": sentences.machine(machine, simulated=False),
        "packages": machine.cpu.packages,
        "driver": software.driver,
        "cuda_driver": software.cuda_driver,
        "torch": software.torch,
        "nccl": software.nccl,
        "kernel": software.kernel,
    }


def update_machine_info(info: dict[str, Any], state: State) -> None:
    """Adds our facts, and takes out what is private or never the same twice."""
    info["lanecheck"] = facts(state.machine(), simulated=state.simulated)
    if not state.host_name:
        info.pop("node", None)
    for name in DROPPED:
        info.get("cpu", {}).pop(name, None)


def compare_machine_info(info: dict[str, Any], baseline: dict[str, Any], state: State) -> None:
    """Notes what differs between the two machines. Raises pytest.UsageError where one is simulated and one is not."""
    now, before = info.get("lanecheck", {}), baseline["machine_info"].get("lanecheck")
    # pytest-benchmark's own hook runs next and cannot be kept from it; told that both are equal it has nothing to say
    # (else it warns of every kernel's build date, and with a storage outside the current folder it ends pytest).
    baseline["machine_info"] = info
    if before is None:
        state.notes.append("The baseline was not saved by lanecheck: whether it is of this machine cannot be told.")
        return
    if bool(before.get("simulated")) != bool(now.get("simulated")):
        kinds = ["measured", "simulated"]
        raise pytest.UsageError(
            f"the baseline is {kinds[bool(before.get('simulated'))]} and this run is "
            f"{kinds[bool(now.get('simulated'))]}: the two say nothing about each other"
        )
    changed = [f"{name} {before.get(name)} → {now.get(name)}" for name in now if before.get(name) != now.get(name)]
    if changed:
        state.notes.append(f"The baseline was saved under other conditions: {'; '.join(changed)}.")


def missing(benchmarks: Any) -> list[str]:
    """Sentences about cases that a comparison does not cover: they would pass in silence."""
    measured = {bench.fullname for bench in benchmarks.benchmarks if bench}
    found = []
    for path, baseline in benchmarks.compared_mapping.items():
        new, lost = sorted(measured - baseline.keys()), sorted(baseline.keys() - measured)
        if new:
            found.append(f"Not compared, since the baseline {path} does not have them: {_some(new)}.")
        if lost:
            found.append(f"In the baseline {path}, but without samples in this run: {_some(lost)}.")
    return found


def groups(benchmarks: list[dict[str, Any]], group_by: str) -> list[tuple[str | None, list[dict[str, Any]]]] | None:
    """pytest-benchmark's groups in the order of the run, sizes ascending in each; a case may lack a parameter that is
    grouped by. None where no case is ours: then pytest-benchmark's own grouping holds."""
    if not any(_is_ours(bench) for bench in benchmarks):
        return None
    found: dict[str | None, list[dict[str, Any]]] = defaultdict(list)
    for bench in benchmarks:
        labels = [_label(bench, part) for part in group_by.split(",")]
        found[" ".join(label for label in labels if label) or None].append(bench)
    for members in found.values():
        members.sort(key=_size)
    return list(found.items())


def _is_ours(bench: dict[str, Any]) -> bool:
    return "case" in (bench.get("extra_info") or {})


def _size(bench: dict[str, Any]) -> tuple[int, str]:
    return int((bench.get("extra_info") or {}).get("bytes", 0)), str(bench["name"])


def _label(bench: dict[str, Any], grouping: str) -> str | None:
    if grouping.startswith("param:"):
        name = grouping.removeprefix("param:")
        params = bench.get("params") or {}
        return f"{name}={params[name]}" if name in params else None
    value = _LABELS[grouping](bench)
    return str(value) if value else None


_LABELS: dict[str, Callable[[dict[str, Any]], object]] = {
    "group": operator.itemgetter("group"),
    "name": operator.itemgetter("name"),
    "fullname": operator.itemgetter("fullname"),
    "param": operator.itemgetter("param"),
    "func": lambda bench: bench["name"].split("[")[0],
    "fullfunc": lambda bench: bench["fullname"].split("[")[0],
}


def _some(names: list[str]) -> str:
    more = len(names) - NAMED
    return ", ".join(names[:NAMED]) + (f" and {more} more" if more > 0 else "")
