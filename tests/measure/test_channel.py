"""The pipe between parent and worker: messages and signs of life, however they are cut."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest

from suite.measure.channel import SIGN_OF_LIFE, Channel


@pytest.fixture
def ends() -> Iterator[tuple[Channel, socket.socket]]:
    ours, theirs = socket.socketpair()
    channel = Channel(ours)
    yield channel, theirs
    channel.close()
    theirs.close()


def test_a_message_may_come_in_pieces(ends: tuple[Channel, socket.socket]) -> None:
    channel, worker = ends
    worker.sendall(b'{"a":')
    assert channel.receive() is None
    worker.sendall(b"1}\n")
    assert channel.receive() == b'{"a":1}'


def test_empty_lines_are_signs_of_life_and_cost_no_message(ends: tuple[Channel, socket.socket]) -> None:
    channel, worker = ends
    worker.sendall(b"\n\n")
    assert channel.receive() == SIGN_OF_LIFE
    worker.sendall(b"\n{")
    assert channel.receive() is None
    worker.sendall(b"}\n")
    assert channel.receive() == b"{}"
    assert channel.receive() is None


def test_the_end_of_the_worker_is_no_message(ends: tuple[Channel, socket.socket]) -> None:
    channel, worker = ends
    worker.close()
    with pytest.raises(EOFError):
        channel.receive()
