"""The first line of a comparison: the gravest loss first, how many went which way, and how sure it is."""

from __future__ import annotations

from dataclasses import replace

from suite.records.comparison import Difference
from suite.records.machine import Machine
from suite.records.run import Verdict
from suite.report import compare_words as words
from suite.store.compare import compare
from tests.store.small import FAIL, GEN1, GEN4, MACHINE, copy, link, run, runs

OTHER = "host_copy/device_to_host/gpu1/node0/256MiB"


def test_losses_beside_a_gain_open_with_both_counts_and_the_gravest_loss() -> None:
    back = {"operation": "device_to_host"}
    before = run(copy(20.0), copy(26.0, OTHER, **back))
    after = run(copy(26.0), copy(6.5, OTHER, **back), start=1)
    said = words.headline(compare([before], [after]))
    assert said.startswith("mixed: 1 worse, 1 better. GPU1: device_to_host 26.0 GB/s → 6.50 GB/s")


def test_a_set_that_lost_most_comes_before_a_single_gpu_that_lost_little() -> None:
    both = {"operation": "all_gpus_host_to_device", "gpus": (0, 1)}
    before = run(copy(26.0), copy(50.0, "host_copy/all", **both))
    after = run(copy(22.0), copy(12.0, "host_copy/all", **both), start=1)
    assert words.sentences(compare([before], [after]))[0].startswith("GPU0, GPU1: ")


def test_one_run_a_side_is_probable_and_four_are_sure() -> None:
    one = words.headline(compare([run(copy(26.0))], [run(copy(20.0), start=1)]))
    four = words.headline(compare(runs((26.0, 26.1, 25.9, 26.0)), runs((20.0, 20.1, 19.9, 20.0), start=10)))
    assert "probably worse" in one
    assert "worse" in four
    assert "probably" not in four


def test_a_change_within_the_spread_of_one_runs_rounds_is_inconclusive() -> None:
    rounds = (0.008, 0.010, 0.012, 0.014, 0.016)  # seconds: the middle half spans a third of the median
    noisy = copy(20.0, samples_s=rounds)
    (change,) = compare([run(copy(26.0))], [run(noisy, start=1)]).changes
    assert change.call == "inconclusive"
    assert "the rounds of one run differ by 33 %" in change.why
    (large,) = compare([run(copy(26.0))], [run(copy(2.9, samples_s=rounds), start=1)]).changes
    assert large.call == "worse"


def test_another_number_of_threads_is_noted() -> None:
    found = compare([run(copy(26.0, threads=4))], [run(copy(26.0, threads=8), start=1)])
    assert any("Copied by another number of threads" in note and "4 before, 8 after" in note for note in found.notes)
    assert "copied by 4 threads before, 8 after" in found.changes[0].why
    same = compare([run(copy(26.0))], [run(copy(26.0), start=1)])
    assert not any("threads" in note for note in same.notes)


def test_a_link_that_changed_under_load_leaves_nothing_probable_about_its_gpus_numbers() -> None:
    pair = {"operation": "peer_write", "gpus": (0, 1)}
    fast = run(link(GEN4, 52.0), copy(26.0), copy(24.0, "peer", **pair))
    slow = run(link(GEN1, 6.0), copy(2.9), copy(2.9, "peer", **pair), start=1)
    said = words.sentences(compare([fast], [slow]))
    assert len(said) == 2
    assert all(sentence.endswith(": worse.") for sentence in said)
    faster = run(link(GEN1, 52.0), copy(26.0))
    assert words.sentences(compare([faster], [run(link(GEN4, 52.0), copy(20.0), start=1)]))[0].endswith(
        "probably worse."
    )


def test_a_hop_further_up_that_changed_under_load_explains_the_gpus_below_it() -> None:
    found = compare([run(copy(26.0))], [run(copy(13.0), start=1)])
    hop = Difference("link at 0000:10:01.0 under load", "Gen4 x16", "Gen3 x16", below=(1,))
    assert words.sentences(replace(found, machine=(hop,))) == (
        "GPU1, link at 0000:10:01.0 Gen4 x16 → Gen3 x16 under load; host_to_device 26.0 GB/s → 13.0 GB/s (×0.50, 45 % "
        "of the ceiling): worse.",
    )
    assert words.sentences(replace(found, machine=(replace(hop, below=(0,)),)))[0].endswith("probably worse.")


def test_the_fix_worked_only_where_the_links_of_the_gpus_are_right_now() -> None:
    pair = {"operation": "peer_write", "gpus": (0, 1)}
    narrow = replace(link(GEN4, 20.0), verdict=Verdict("WARN", "downtrained_width"))
    before = run(link(GEN1, 6.0), copy(2.9, "peer", FAIL, **pair))
    after = run(narrow, copy(12.0, "peer", **pair), start=1)
    (peers,) = (s for s in words.sentences(compare([before], [after])) if s.startswith("GPU0, GPU1"))
    assert peers.endswith("better, but not all of it is right yet.")
    right = run(link(GEN4, 52.0), copy(24.0, "peer", **pair), start=1)
    assert any(s.endswith("the fix worked.") for s in words.sentences(compare([before], [right])))


def _without(index: int) -> Machine:
    return replace(MACHINE, gpus=tuple(gpu for gpu in MACHINE.gpus if gpu.index != index))


def test_a_gpu_that_is_gone_leads_the_headline_and_one_that_came_too() -> None:
    both, one = run(copy(26.0, gpus=(0,))), run(copy(26.0, gpus=(0,)), start=1, machine=_without(1))
    assert words.headline(compare([both], [one])) == (
        "GPU1 (Example GPU, 0000:b1:00.0) is gone. No change beyond noise in 1 case."
    )
    assert words.headline(compare([one], [both])).startswith(
        "GPU1 (Example GPU, 0000:b1:00.0) is there now, and was not before. No change"
    )
    none = run(copy(26.0, gpus=(0,)), start=1, machine=replace(MACHINE, gpus=()))
    assert words.headline(compare([both], [none])).count(" is gone. ") == 2


def test_where_only_the_host_varied_the_headline_says_first_that_the_gpu_paths_did_not() -> None:
    gloo = {"operation": "allreduce", "backend": "gloo", "gpus": ()}
    before, after = run(copy(26.0), copy(2.0, "gloo", **gloo)), run(copy(26.1), copy(1.0, "gloo", **gloo), start=1)
    said = words.headline(compare([before], [after]))
    assert said.startswith("GPU paths: no change beyond noise in 1 case. On the host: gloo 2.00 GB/s → 1.00 GB/s")
    lost = run(copy(13.0), copy(1.0, "gloo", **gloo), start=1)
    assert words.headline(compare([before], [lost])).startswith("GPU1: host_to_device")
