"""GPUs that only one side has: by address, else by model; what is theirs alone is folded into one line."""

from __future__ import annotations

from dataclasses import replace

from suite.records.machine import Machine
from suite.records.path import path_to_root
from suite.store.compare import compare
from suite.store.compare_gpus import gone
from tests.data.machines import build
from tests.store.small import copy, run

TWO = build.two_pcie()


def _only(index: int) -> Machine:
    """One card of the two, which counts from 0 again."""
    return replace(TWO, gpus=(replace(TWO.gpus[index], index=0),), pairs=())


def test_a_card_is_known_by_its_address() -> None:
    assert [gpu.index for gpu in gone(TWO, _only(1))] == [0]
    assert [gpu.index for gpu in gone(TWO, _only(0))] == [1]
    assert gone(_only(0), TWO) == ()


def test_a_card_in_another_slot_is_no_loss_and_one_of_another_model_is() -> None:
    moved = replace(_only(1), gpus=(replace(_only(1).gpus[0], address="0000:f1:00.0"),))
    assert gone(_only(1), moved) == ()
    other = replace(moved, gpus=(replace(moved.gpus[0], name="Other GPU"),))
    assert [gpu.address for gpu in gone(_only(1), other)] == [TWO.gpus[1].address]


def test_all_that_is_of_a_lost_gpu_alone_is_one_difference() -> None:
    found = compare([run(copy(26.0, gpus=(0,)), machine=TWO)], [run(copy(26.0, gpus=(0,)), start=1, machine=_only(0))])
    assert list(map(str, found.machine)) == ["GPU1 (RTX PRO 6000, 0000:a1:00.0) is gone"]
    assert found.call == "worse"
    assert not found.notes[1:]


def test_cards_that_count_differently_now_are_told() -> None:
    found = compare([run(copy(26.0), machine=TWO)], [run(copy(26.0), start=1, machine=_only(1))])
    assert any(note.startswith("GPU1 is GPU0 now: cases are compared by these numbers") for note in found.notes)


def test_a_hop_further_up_names_the_gpus_below_it() -> None:
    whole = build.switched(2)
    hop = path_to_root(whole, whole.gpus[0].address or "").hops[1].lower
    narrow = [replace(f, link_max=build.link(3, 16)) if f.address == hop else f for f in whole.pci]
    runs = [run(copy(26.0)), run(copy(26.0), start=1)]
    old, new = (
        replace(one, machine=m) for one, m in zip(runs, (whole, replace(whole, pci=tuple(narrow))), strict=True)
    )
    (found,) = (d for d in compare([old], [new]).machine if d.what == f"link at {hop} possible")
    assert 0 in found.below
    assert set(found.below) < {gpu.index for gpu in whole.gpus}
