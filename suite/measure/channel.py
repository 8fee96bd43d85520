"""The pipe between the parent and one worker: JSON messages, one a line, over a socket pair. An empty line is a sign
of life: the worker is still measuring."""

from __future__ import annotations

import socket

CHUNK = 1 << 16
SIGN_OF_LIFE = b""


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
        """The message, SIGN_OF_LIFE, or None while a message is incomplete. Raises EOFError where the worker closed its
        end by ending."""
        try:
            chunk = self._socket.recv(CHUNK)
        except BlockingIOError:
            return None
        except ConnectionError as error:
            raise EOFError(str(error)) from error
        if not chunk:
            raise EOFError("the worker closed its end")
        self._received += chunk
        message = self._received.lstrip(b"\n")
        if message and not message.endswith(b"\n"):
            return None
        self._received.clear()
        return bytes(message[:-1]) if message else SIGN_OF_LIFE

    def close(self) -> None:
        """The worker sees the end of its requests. Safe to call twice."""
        self._socket.close()
