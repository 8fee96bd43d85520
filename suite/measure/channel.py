"""The pipe between the parent and one worker: JSON messages, one a line, over a socket pair."""

from __future__ import annotations

import socket

CHUNK = 1 << 16


class Channel:
    """The parent's end. It never blocks: a worker that stops within an answer costs no more than a deadline."""

    def __init__(self, end: socket.socket) -> None:
        end.setblocking(False)
        self._socket = end
        self._received = bytearray()

    def fileno(self) -> int:
        """For selectors."""
        return self._socket.fileno()

    def send(self, message: bytes) -> None:
        """One message without line breaks. Raises OSError where the worker is gone or does not read."""
        self._socket.sendall(message + b"\n")

    def receive(self) -> bytes | None:
        """The message, None while it is incomplete. Raises EOFError where the worker closed its end by ending."""
        try:
            chunk = self._socket.recv(CHUNK)
        except BlockingIOError:
            return None
        except ConnectionError as error:
            raise EOFError(str(error)) from error
        if not chunk:
            raise EOFError("the worker closed its end")
        self._received += chunk
        if not self._received.endswith(b"\n"):
            return None
        message = bytes(self._received[:-1])
        self._received.clear()
        return message

    def close(self) -> None:
        """The worker sees the end of its requests. Safe to call twice."""
        self._socket.close()
