r"""The first bytes of a connection: who is there, in which version, with which token.

    client   PREFACE, nonce
    server   PREFACE, nonce, proof                or a refusal: "TENSORFLEET/2 tls\r\n\r\n"
    client   proof                                or DISAGREES, when the server's proof is wrong

Everything else that may be at the other end says something else first. Each such case has an error of its own at the
client, and a line in the server's log. Decisions only: sockets are in connection.py and listener.py.
"""

from __future__ import annotations

import re
import secrets
import threading

from tensorfleet.base import errors
from tensorfleet.cluster.messages import VERSION
from tensorfleet.cluster.transport.token import proof, same

_NAME = b"TENSORFLEET/"
PREFACE = b"%s%d\r\n\r\n" % (_NAME, VERSION)
NONCE = 32
PROOF = 32
#: what a client sends in place of its proof to a server with another token
DISAGREES = b"another token".ljust(PROOF, b"\0")
OPENING = len(PREFACE) + NONCE
_TLS_HANDSHAKE, _TLS_ALERT = 0x16, 0x15
_SAYS = re.compile(rb"TENSORFLEET/(\d{1,9})(?: (\w{1,20}))?\r\n\r\n")
_SAYS_MORE_SOON = re.compile(rb"TENSORFLEET/\d{0,9}(?: \w{0,20})?(?:\r(?:\n\r?)?)?")
_SETTINGS = b"\x04\x00\x00\x00\x00\x00"  # an HTTP/2 server's first frame, after three bytes of length
_WEB = (b"GET ", b"HEAD ", b"POST ", b"PUT ", b"DELETE ", b"OPTIONS ", b"CONNECT ", b"PATCH ", b"TRACE ")


class Refused(ConnectionError):
    """Why a server does not let somebody in, and the answer that tells it (nothing for programs that are not ours)."""

    def __init__(self, reason: str, answer: bytes = b"") -> None:
        super().__init__(reason)
        self.reason, self.answer = reason, answer


def _refusal(why: str) -> bytes:
    return b"%s%d %s\r\n\r\n" % (_NAME, VERSION, why.encode())


# -- the server's side --------------------------------------------------------------------------------


def is_tls(first: bytes) -> bool:
    """Whether a connection begins as TLS does."""
    return first[:1] in (bytes([_TLS_HANDSHAKE]), bytes([_TLS_ALERT]))


def check_opening(heard: bytes) -> None:
    """Raises `Refused` as soon as the first bytes of a connection cannot become a client's opening."""
    if heard.startswith(PREFACE) or PREFACE.startswith(heard):
        return
    said = _SAYS.match(heard)
    if said is not None:
        raise Refused(
            f"it speaks version {int(said[1])} of TensorFleet's protocol, and this server version {VERSION}. Install the same "
            "TensorFleet everywhere.",
            _refusal("version"),
        )
    if _SAYS_MORE_SOON.fullmatch(heard):
        return  # another version, perhaps
    if is_tls(heard):
        raise Refused(
            "it speaks TLS, and this server does not. Set TENSORFLEET_TLS for both, or for neither.",
            _refusal("plain"),
        )
    raise Refused(f"it is not a TensorFleet client, but {_what(heard)}.")


def refuse_plain(heard: bytes) -> Refused:
    """Why a server that speaks TLS does not let in somebody who does not."""
    if heard.startswith(_NAME) or _NAME.startswith(heard):
        return Refused(
            "it does not speak TLS, and this server does. Set TENSORFLEET_TLS for both, or for neither.",
            _refusal("tls"),
        )
    return Refused(f"it is not a TensorFleet client, but {_what(heard)}.")


def challenge(secret: bytes, opening: bytes) -> tuple[bytes, bytes]:
    """What to answer to a client's opening, and the proof that must come then."""
    theirs, mine = opening[len(PREFACE) :], secrets.token_bytes(NONCE)
    return PREFACE + mine + proof(secret, b"server", theirs, mine), proof(secret, b"client", mine, theirs)


def check_proof(heard: bytes, due: bytes) -> None:
    """Raises `Refused` when a client has not proved the token."""
    if not same(heard, due):
        raise Refused(
            "it has another cluster token. Set the same TENSORFLEET_TOKEN (or TENSORFLEET_TOKEN_FILE) for every task and "
            "client."
        )


def left_early(heard: bytes, challenged: bool) -> Refused | None:
    """Why somebody is not let in who has gone: None for one who never said anything, as those who look for open ports do."""
    if challenged:
        return Refused("it left before it had proved the cluster token.")
    return Refused(f"it left after {len(heard)} bytes: {_what(heard)}.") if heard else None


def too_slow(heard: bytes, challenged: bool) -> Refused:
    """Why somebody is not let in who does not go on."""
    if challenged or (PREFACE.startswith(heard) and heard):
        return Refused("it did not prove the cluster token in time.")
    return Refused("it said nothing, or too little, for too long.")


def _what(said: bytes) -> str:
    """What a program is, from the first bytes that it says."""
    if is_tls(said):
        return "a program that speaks TLS"
    if said.startswith(b"PRI * HTTP/2"):
        return (
            "a gRPC client, such as TensorFlow's own. A TensorFleet cluster takes TensorFleet programs only: "
            "run that one with `python -m tensorfleet SCRIPT`"
        )
    if said[3:9] == _SETTINGS:
        return "a gRPC server, such as TensorFlow's own"
    if said.startswith((b"HTTP/", b"<html", b"<HTML", b"<!DOCTYPE")):
        return "a web server"
    if said.startswith(_WEB):
        return "a web client (a browser, or a health check)"
    if said.startswith(b"SSH-"):
        return "an SSH server"
    return f"another program, which says {said[:20]!r}"


# -- the client's side --------------------------------------------------------------------------------


def opening() -> tuple[bytes, bytes]:
    """What a client says first, and the nonce in it."""
    mine = secrets.token_bytes(NONCE)
    return PREFACE + mine, mine


def check_answer(address: str, heard: bytes, secure: bool) -> None:
    """Raises the error for a server whose first bytes cannot become the answer to an opening."""
    if heard.startswith(PREFACE) or PREFACE.startswith(heard):
        return
    said = _SAYS.match(heard)
    if said is not None:
        raise _refused_by(address, int(said[1]), (said[2] or b"").decode())
    if _SAYS_MORE_SOON.fullmatch(heard):
        return
    if is_tls(heard) and not secure:
        raise _without_tls(address)
    raise errors.FailedPreconditionError(
        None,
        None,
        f"{address} is not a TensorFleet task, but {_what(heard)}. Check the address in the ClusterSpec; is another program "
        "using that port?",
    )


def answered_in_plain(address: str, rest: bytes) -> errors.OpError:
    """The error for a server that answers TLS in plain text, from what is left of the text: TLS has read its first bytes."""
    if rest and any(_refusal("plain")[n:] == rest for n in range(1, 12)):
        return _with_tls(address)
    return errors.FailedPreconditionError(
        None,
        None,
        f"{address} is not a TensorFleet task, but another program, which does not speak TLS. Check the address in the "
        "ClusterSpec; is another program using that port?",
    )


def check_servers_proof(address: str, answer: bytes, mine: bytes, secret: bytes) -> bytes:
    """The client's proof, after the server's was right. Raises UnauthenticatedError when it was not."""
    theirs = answer[len(PREFACE) : OPENING]
    if not same(answer[OPENING:], proof(secret, b"server", mine, theirs)):
        raise errors.UnauthenticatedError(
            None,
            None,
            f"The task at {address} has another cluster token than this process. Give every task the same one: set "
            "TENSORFLEET_TOKEN (or TENSORFLEET_TOKEN_FILE) where each is started.",
        )
    return proof(secret, b"client", theirs, mine)


def _refused_by(address: str, version: int, why: str) -> errors.OpError:
    if version == VERSION and why == "tls":
        return _without_tls(address)
    if version == VERSION and why == "plain":
        return _with_tls(address)
    return errors.UnimplementedError(
        None,
        None,
        f"The task at {address} speaks version {version} of TensorFleet's protocol, and this process version {VERSION}. "
        "Install the same TensorFleet everywhere.",
    )


def _without_tls(address: str) -> errors.OpError:
    return errors.UnauthenticatedError(
        None,
        None,
        f"{address} speaks TLS, and this process does not. Set TENSORFLEET_TLS to the folder with the cluster's certificates "
        "here too (or start every task without it).",
    )


def _with_tls(address: str) -> errors.OpError:
    return errors.UnauthenticatedError(
        None,
        None,
        f"The task at {address} does not speak TLS, and this process does. Start it with TENSORFLEET_TLS too (or unset it "
        "here, and for every other task).",
    )


# -- the log ------------------------------------------------------------------------------------------


class RefusalLog:
    """Decides which refusals become lines of the log: one a minute for each host and reason, however many come."""

    _QUIET_SECONDS = 60.0
    _MAX_REMEMBERED = 256  # hosts and reasons that are remembered

    def __init__(self) -> None:
        self._logged: dict[tuple[str, str], float] = {}
        self._unlogged: dict[tuple[str, str], int] = {}
        self._lock = threading.Lock()

    def line(self, host: str, reason: str, now: float) -> str | None:
        """The words for a refusal now, or None when they were said a moment ago."""
        key = host, reason
        with self._lock:
            if now - self._logged.get(key, -self._QUIET_SECONDS) < self._QUIET_SECONDS:
                self._unlogged[key] = self._unlogged.get(key, 0) + 1
                return None
            for old in [k for k, at in self._logged.items() if now - at >= self._QUIET_SECONDS and k != key]:
                del self._logged[old]
                self._unlogged.pop(old, None)
            if len(self._logged) >= self._MAX_REMEMBERED:
                return None
            self._logged[key] = now
            more = self._unlogged.pop(key, 0)
        return f"{reason} ({more} more since the last such line)" if more else reason
