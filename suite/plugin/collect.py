"""From the machine to the list of cases: parameters, names, order, and the marker that carries the replay's clock."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from suite.plan import axes, order
from suite.plugin import floors
from suite.plugin.replay import Clock
from suite.plugin.state import State
from suite.records.machine import Machine
from suite.units import format_bytes

FIXTURE = "check"
UNAVAILABLE = "unavailable"
SIZE_AXES = ("size", "message", "sweep_size", "pageable_size", "few_message", "graph_message")
# Of collectives: cases that agree in these share a pool of ranks, which takes seconds to start.
POOL_AXES = (
    ("world_size", "most_ranks"),
    ("gpu_world_size", "most_gpu_ranks", "shared_world_size"),
    ("transport", "placed_transport"),
    ("tuning", "graph_tuning", "host_buffers"),
    ("ranks_placed",),
)


def is_case(item: pytest.Item) -> bool:
    """Whether a test is one of ours: it uses the `check` fixture."""
    return FIXTURE in getattr(item, "fixturenames", ())


def parametrize(metafunc: pytest.Metafunc, state: State) -> None:
    """Gives a benchmark's arguments their values on this machine; where there are none, one item with the reason."""
    marked = _marked(metafunc)
    wanted = [name for name in axes.NAMES if name in metafunc.fixturenames and name not in marked]
    if not wanted:
        return
    found = _values(wanted, state)
    if state.expected.floors:
        state.functions.append(_whole(metafunc, wanted, state, known=isinstance(found, list) and not marked))
    if isinstance(found, str):
        nothing = pytest.param(*[None] * len(wanted), id=UNAVAILABLE, marks=pytest.mark.unavailable(found))
        metafunc.parametrize(wanted, [nothing])
        return
    for name, values in zip(wanted, found, strict=True):
        metafunc.parametrize(name, [value for value, _ in values], ids=[text for _, text in values])


def _whole(metafunc: pytest.Metafunc, wanted: Sequence[str], state: State, *, known: bool) -> floors.Function:
    """A benchmark as a full run without any restriction has it."""
    asked = replace(state.settings, effort="full", sizes=None, gpus=None, nodes=None, world_sizes=None)
    found = [axes.values(name, state.machine(), asked) for name in wanted] if known else []
    ids = tuple(tuple(text for _, text in values) for values in found if not isinstance(values, str))
    name = function_name(metafunc.module.__name__, metafunc.function.__name__)
    return floors.Function(name, ids if known else None)


def check_floors(config: pytest.Config, items: Sequence[pytest.Item], state: State) -> None:
    """Raises pytest.UsageError for a floor that no run on this machine would look at. Not where a GPU is missing: its
    cases are missing with it, and that is said as what it is."""
    if not state.expected.floors or not floors.is_whole(config) or state.lacks_gpu():
        return
    sentence = floors.misspelt(state.expected.floors, [case_of(i) for i in items if is_case(i)], state.functions)
    if sentence is not None:
        raise pytest.UsageError(f"--expect {config.getoption('expect')}: {sentence}")


def why_unavailable(item: pytest.Item) -> str | None:
    """The reason of a case that cannot be measured here."""
    marker = item.get_closest_marker(UNAVAILABLE)
    return str(marker.args[0]) if marker else None


def case_of(item: pytest.Item) -> str:
    """A case's name: 'host_copy/host_to_device/gpu0/node0/64MiB'; of one that is unavailable file and function."""
    ids = [] if why_unavailable(item) else _ids(item)
    return "/".join([_function(item), *ids])


def of_another_pair(case: str, pair: tuple[int, int], other: tuple[int, int]) -> str:
    """The name of the same case of another pair of GPUs."""
    own, wanted = (f"gpu{a}_gpu{b}" for a, b in (pair, other))
    return "/".join(wanted if part == own else part for part in case.split("/"))


def group_of(item: pytest.Item) -> str:
    """First part of the case's name: 'host_copy'."""
    return case_of(item).partition("/")[0]


def curve_of(item: pytest.Item) -> str:
    """The case's name without its size: what belongs into one of pytest-benchmark's groups."""
    params = _params(item)
    size = next((params[name] for name in SIZE_AXES if params.get(name)), None)
    ids = [text for text in _ids(item) if size is None or text != format_bytes(size)]
    return "/".join([_function(item), *ids]) if size else _function(item)


def arrange(items: list[pytest.Item], machine: Machine) -> None:
    """Puts our cases last, in the order that verdicts need, and keeps one item of a function that is unavailable."""
    items[:] = _once(items)
    functions: dict[str, int] = {}
    pools: dict[tuple[object, ...], int] = {}
    for item in items:
        functions.setdefault(_function(item) if is_case(item) else "", len(functions))
        pools.setdefault(_pool(item), len(pools))
    items.sort(key=lambda item: _rank(item, functions, pools, machine) if is_case(item) else ())


def mark(item: pytest.Item, clock: Clock) -> None:
    """Adds one `benchmark` marker in front that has all others in it: pytest-benchmark reads the closest one only."""
    merged: dict[str, Any] = {"group": curve_of(item)}
    for marker in reversed(list(item.iter_markers("benchmark"))):
        merged.update(marker.kwargs)
    item.add_marker(pytest.mark.benchmark(**{**merged, "timer": clock}), append=False)


def _values(wanted: Sequence[str], state: State) -> list[axes.Values] | str:
    try:
        machine = state.machine()
    except pytest.UsageError as error:
        # Raised here it would be a collection error; after collecting it is the usage error that it is.
        state.broken = error
        return str(error)
    found = [axes.values(name, machine, state.settings) for name in wanted]
    reason = next((values for values in found if isinstance(values, str)), None)
    return reason if reason is not None else [values for values in found if not isinstance(values, str)]


def _marked(metafunc: pytest.Metafunc) -> set[str]:
    """Arguments that the benchmark parametrises itself."""
    names: set[str] = set()
    for marker in metafunc.definition.iter_markers("parametrize"):
        given = marker.args[0] if marker.args else marker.kwargs.get("argnames", ())
        names.update(name.strip() for name in (given.split(",") if isinstance(given, str) else given))
    return names


def _once(items: list[pytest.Item]) -> list[pytest.Item]:
    seen: set[tuple[object, str]] = set()
    kept = []
    for item in items:
        key = (getattr(item, "module", None), _name(item))
        if not (is_case(item) and why_unavailable(item)):
            kept.append(item)
        elif key not in seen:
            seen.add(key)
            kept.append(item)
    return kept


def _pool(item: pytest.Item) -> tuple[object, ...]:
    """What the ranks of a collective are started for; NCCL's own choice where a benchmark names no transport."""
    params = _params(item) if is_case(item) else {}
    found = [next((params[name] for name in names if name in params), None) for names in POOL_AXES]
    if found[1] is not None and found[2] is None:
        found[2] = "default"
    return tuple(found)


def _rank(
    item: pytest.Item, functions: dict[str, int], pools: dict[tuple[object, ...], int], machine: Machine
) -> tuple[object, ...]:
    """Group, pool, function, GPU, then near before far: a verdict on a far node looks at the near one."""
    params = _params(item)
    gpu = params.get("gpu")
    return (
        order.key(case_of(item)),
        pools[_pool(item)],
        functions[_function(item)],
        gpu if isinstance(gpu, int) else -1,
        _crossings(params, machine),
    )


def _crossings(params: dict[str, Any], machine: Machine) -> int:
    """How many of a case's places lie on another NUMA node than its memory."""
    node = params.get("node")
    gpu = machine.gpu(params["gpu"]) if params.get("gpu") is not None else None
    places = [params.get("target_node"), params.get("cpu_node"), gpu.numa_node if gpu else None]
    return sum(place is not None and place != node for place in places) if node is not None else 0


def _function(item: pytest.Item) -> str:
    module = getattr(item, "module", None)
    return function_name(module.__name__ if module else item.path.stem, _name(item))


def function_name(module: str, function: str) -> str:
    """How the cases of a benchmark begin: 'host_copy/host_to_device'."""
    return f"{module.rpartition('.')[2].removeprefix('test_')}/{function.removeprefix('test_')}"


def _name(item: pytest.Item) -> str:
    return getattr(item, "originalname", None) or item.name


def _params(item: pytest.Item) -> dict[str, Any]:
    callspec = getattr(item, "callspec", None)
    return dict(callspec.params) if callspec else {}


def _ids(item: pytest.Item) -> list[str]:
    """No axis has a '-' inside an id, so that pytest's joint is ours."""
    callspec = getattr(item, "callspec", None)
    return callspec.id.split("-") if callspec else []
