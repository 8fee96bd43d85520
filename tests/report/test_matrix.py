"""The matrices of copies between GPUs read as nvbandwidth's and p2pBandwidthLatencyTest's do, with verdicts."""

from __future__ import annotations

from dataclasses import replace

from suite.records.case import Operation
from suite.records.run import Failure, Result, Status, Verdict
from suite.report.tables import matrix
from suite.report.tables.model import Table

GB = 1e9


def pair(
    one: int, other: int, operation: Operation = "peer_write", status: Status = "PASS", **fields: object
) -> Result:
    given = {"p2p": True, "engine": "copy-engine", "bandwidth": 50 * GB, "samples_s": (1e-3,) * 5, **fields}
    return Result(
        f"peer_copy/{operation}/gpu{one}_gpu{other}", operation, 1 << 24, gpus=(one, other),
        verdict=Verdict(status, "healthy"), **given,
    )  # fmt: skip


def all_pairs(operation: Operation = "peer_write", **fields: object) -> list[Result]:
    return [pair(a, b, operation, **fields) for a in range(3) for b in range(3) if a != b]


def texts(table: Table) -> list[list[str]]:
    return [[cell.text for cell in row] for row in table.rows]


def test_p2p_on_and_off_are_two_matrices() -> None:
    on, off = all_pairs(bandwidth=50 * GB), all_pairs(p2p=False, bandwidth=22 * GB)
    first, second = matrix.peers("Peer copies", [*off, *on])
    assert first.title == "Peer copies: write to a peer, P2P off, 16MiB, GB/s"
    assert second.title == "Peer copies: write to a peer, P2P on, 16MiB, GB/s"
    assert texts(first)[0] == ["0", "", "22.0", "22.0"]
    assert texts(second)[2] == ["2", "50.0", "50.0", ""]


def test_a_pair_that_is_not_in_order_keeps_its_mark_and_wrong_bytes_show_no_rate() -> None:
    results = all_pairs()
    results[0] = pair(0, 1, status="FAIL", bandwidth=None, verified=False)
    results[1] = pair(0, 2, status="FAIL", bandwidth=9.9 * GB)
    results[2] = pair(1, 0, status="FAIL", bandwidth=None, samples_s=(), error=Failure("hang", "no answer"))
    (table,) = matrix.peers("Peer copies", results)
    assert [(cell.text, cell.status) for cell in table.rows[0][2:]] == [("wrong data", "FAIL"), ("9.90", "FAIL")]
    assert (table.rows[1][1].text, table.rows[1][1].status) == ("hang", "FAIL")


def test_a_pair_without_p2p_is_not_applicable_beside_pairs_with_it() -> None:
    results = all_pairs()
    results[0] = pair(0, 1, status="UNAVAILABLE", bandwidth=None, samples_s=())
    assert texts(matrix.peers("Peer copies", results)[0])[0] == ["0", "", "n/a", "50.0"]
    none = all_pairs(status="UNAVAILABLE", bandwidth=None, samples_s=())
    assert matrix.peers("Peer copies", none) == []


def test_the_diagonal_holds_copies_within_one_gpu() -> None:
    within = [replace(pair(g, g, "device_local_copy", p2p=None, bandwidth=400 * GB), gpus=(g,)) for g in range(3)]
    (table,) = matrix.peers("Peer copies", [*within, *all_pairs()])
    assert [row[place + 1].text for place, row in enumerate(table.rows)] == ["400"] * 3
    assert table.notes


def test_small_copies_are_a_matrix_of_microseconds() -> None:
    (table,) = matrix.peers("Peer copies", all_pairs("peer_latency", bandwidth=None, latency_s=2.5e-6))
    assert table.title.endswith("µs")
    assert texts(table)[0] == ["0", "", "2.50", "2.50"]


def test_a_read_says_who_fetches_from_whom() -> None:
    (table,) = matrix.peers("Peer copies", all_pairs("peer_read"))
    assert table.columns[0].name == "by\\from"


def test_what_only_a_representative_was_asked_is_a_row_and_no_matrix() -> None:
    both = pair(0, 1, "peer_both_ways")
    assert len(matrix.peers("Peer copies", [*all_pairs(), both])) == 1
    assert matrix.beside([*all_pairs(), both]) == [both]
