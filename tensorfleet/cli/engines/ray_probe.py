"""Whether the head of a Ray cluster listens at an address. Ray's library asks another program for minutes, or for ever.

The head is a gRPC server. One call without a token tells it from others: it answers, if only that it wants a token.
"""

from __future__ import annotations

import socket
import time

_METHOD = b"/ray.rpc.NodeInfoGcsService/GetClusterId"
_DATA, _HEADERS, _RESET, _SETTINGS, _GOAWAY = 0, 1, 3, 4, 7
_END_OF_STREAM, _END_OF_HEADERS = 1, 4
_FRAME_BYTES = 9  # of a frame's own header
_STREAM = 1
_UNIMPLEMENTED = b"\x0212"  # the value of `grpc-status`, with its length
_MAX_BYTES = 1 << 16  # a head says a few hundred


def call() -> bytes:
    """The call, as HTTP/2 has it: the preface, settings, the headers, an empty message."""
    post, over_http = b"\x83", b"\x86"  # entries of HPACK's table
    headers = post + over_http + b"\x04" + _text(_METHOD) + b"\x01" + _text(b"ray")
    for name, value in ((b"te", b"trailers"), (b"content-type", b"application/grpc")):
        headers += b"\0" + _text(name) + _text(value)
    return (
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
        + _frame(_SETTINGS, 0, 0, b"")
        + _frame(_HEADERS, _END_OF_HEADERS, _STREAM, headers)
        + _frame(_DATA, _END_OF_STREAM, _STREAM, bytes(5))
    )


class HeadAnswer:
    """Reads the answer to the call. No sockets, no clock."""

    def __init__(self) -> None:
        #: whether it speaks HTTP/2, as far as it has said anything
        self.speaks = False
        self._unread = b""

    def take(self, received: bytes) -> bool | None:
        """Takes some bytes: True if a head answers, False if something else does, None if that is not known yet."""
        self._unread += received
        while len(self._unread) >= _FRAME_BYTES:
            kind, flags = self._unread[3], self._unread[4]
            if not self.speaks and kind != _SETTINGS:
                return False
            end = _FRAME_BYTES + int.from_bytes(self._unread[:3], "big")
            if end > _MAX_BYTES:
                return False
            if len(self._unread) < end:
                return None
            stream = int.from_bytes(self._unread[5:_FRAME_BYTES], "big")
            payload, self._unread = self._unread[_FRAME_BYTES:end], self._unread[end:]
            self.speaks = True
            verdict = _verdict(kind, flags, payload) if stream == _STREAM or kind == _GOAWAY else None
            if verdict is not None:
                return verdict
        return None


def is_head(host: str, port: int, seconds: float) -> bool:
    """Asks whether a head is there. A gRPC server that is slow to answer may be one. Raises OSError if nobody listens."""
    limit = time.monotonic() + seconds
    answer = HeadAnswer()
    with socket.create_connection((host, port), seconds) as connection:
        try:
            connection.sendall(call())
            while (left := limit - time.monotonic()) > 0:
                connection.settimeout(left)
                received = connection.recv(4096)
                verdict = answer.take(received) if received else False
                if verdict is not None:
                    return verdict
        except OSError:  # silent, or hung up
            pass
    return answer.speaks


def _verdict(kind: int, flags: int, payload: bytes) -> bool | None:
    if kind in (_RESET, _GOAWAY) or (kind == _HEADERS and _UNIMPLEMENTED in payload):
        return False
    # A refusal comes as headers alone, anything else with a message.
    return True if kind == _DATA or (kind == _HEADERS and flags & _END_OF_STREAM) else None


def _frame(kind: int, flags: int, stream: int, payload: bytes) -> bytes:
    return len(payload).to_bytes(3, "big") + bytes((kind, flags)) + stream.to_bytes(4, "big") + payload


def _text(value: bytes) -> bytes:
    """A short text, as HPACK has it."""
    return bytes((len(value),)) + value
