"""Connecting to a task: the quickest way there, and the proof of the token before anything is read."""

from __future__ import annotations

import contextlib
import errno
import os
import socket
import struct
import sys
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from tensorfleet.base import errors
from tensorfleet.cluster.messages import Hello, Welcome
from tensorfleet.cluster.transport import handshake, moved_addresses, tls, wire
from tensorfleet.kernels.interruptible_calls import Background

if TYPE_CHECKING:
    import ssl

#: An entry of `socket.getaddrinfo`: family, kind, protocol, canonical name, address.
AddressInfo: TypeAlias = tuple[socket.AddressFamily, socket.SocketKind, int, str, tuple[Any, ...]]
HANDSHAKE_SECONDS = 10.0
_LONGEST_COMMAND = 200  # characters of a command line in an error
SILENT = "it accepted the connection and said nothing"
LOOPBACK = {"localhost", "127.0.0.1", "::1", "[::1]"}


def split_address(address: str) -> tuple[str, int]:
    """Host and port of "host:port"; spaces around them do not count."""
    host, port = (part.strip() for part in address.rpartition(":")[::2])
    if not host or not port.isdigit() or not 0 <= int(port) < 65536:
        raise errors.InvalidArgumentError(
            None, None, f'Could not interpret "{address}" as a host-port pair: write it as "host:port".'
        )
    return host.strip("[]"), int(port)


def is_loopback(host: str) -> bool:
    """Whether an address can be reached from this machine only."""
    return host in LOOPBACK or host.startswith("127.")


def canonical(address: str) -> str:
    """An address with one spelling for this machine, of which there are several."""
    host, _, port = address.rpartition(":")
    return f"127.0.0.1:{port}" if is_loopback(host.strip("[] ")) else address


def local_name(host: str, port: int) -> str:
    """The name under which the task at a loopback address can also be reached, without TCP. It has no file."""
    at = "127.0.0.1" if host == "localhost" else host
    return f"\0tensorfleet-{os.getuid()}-{at}-{port}"


def joined(host: str, port: int) -> str:
    """Host and port as one address."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def listen_at(host: str, port: int) -> list[socket.socket]:
    """Sockets that listen at a port of every address that a host's name stands for on this machine."""
    result: list[socket.socket] = []
    failure: OSError | None = None
    known = addresses(host, port, HANDSHAKE_SECONDS)
    chosen = port  # by the system, when the port is 0
    for family, at in dict.fromkeys((family, at) for family, _, _, _, at in known):
        try:
            result.append(socket.create_server((at[0], chosen, *at[2:]), family=family, backlog=256))
            chosen = result[0].getsockname()[1]
        except OSError as e:
            if e.errno == errno.EADDRINUSE and port:
                for one in result:
                    one.close()
                raise
            failure = e  # an address of another machine, or of a kind this one does not have
    if not result:
        raise failure or OSError(f"there is no address of {host}")
    return result


def user_of(port: int) -> str:
    """Which process of this machine listens at a port, as far as this user may know: " (process 12: python x.py)"."""
    import psutil  # 25 ms, for this error only

    try:
        for one in psutil.net_connections("tcp"):
            if one.status == psutil.CONN_LISTEN and one.laddr and one.laddr.port == port and one.pid:
                command = " ".join(psutil.Process(one.pid).cmdline())[:_LONGEST_COMMAND]
                return f" (process {one.pid}: {command})"
    except (psutil.Error, OSError):
        pass  # a system that does not tell
    return ""


def has_local_names() -> bool:
    """Whether this system has sockets with names that are not files."""
    return sys.platform == "linux"


def open_socket(address: str, seconds: float) -> socket.socket:
    """A connected socket: within this machine a local one where there is one, else TCP, with TLS if that is on."""
    host, port = split_address(address)
    limit = time.monotonic() + seconds
    # If anything is wrong with the local socket (no server, another user's), TCP is tried, and has the better error.
    if is_loopback(host) and has_local_names():
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        sock.settimeout(seconds)
        try:
            sock.connect(local_name(host, port))
            if _is_ours(sock):
                return tuned(sock)
        except OSError:
            pass
        sock.close()
    sock = _over_tcp(host, port, limit)
    try:
        tuned(sock)
        context = tls.for_client()
        return sock if context is None else _over_tls(sock, context, address, limit)
    except BaseException:
        sock.close()
        raise


def _over_tcp(host: str, port: int, limit: float) -> socket.socket:
    """A connection to the first address of a host that takes one, all of it before `limit`."""
    failure: OSError | None = None
    for family, kind, protocol, _, at in addresses(host, port, _left(limit)):
        sock = socket.socket(family, kind, protocol)
        try:
            sock.settimeout(_left(limit))
            sock.connect(at)
            return sock
        except OSError as e:
            sock.close()
            failure = failure or e
        except BaseException:
            sock.close()
            raise
    raise failure or OSError(f"there is no address of {host}")


def _over_tls(sock: socket.socket, context: ssl.SSLContext, address: str, limit: float) -> socket.socket:
    """TLS on a connection, before `limit`. Raises an error of its own for a server that answers in plain text."""
    import ssl

    host = split_address(address)[0]
    secure = context.wrap_socket(sock, server_hostname=host, do_handshake_on_connect=False)
    try:
        secure.settimeout(_left(limit))
        secure.do_handshake()
        return secure
    except TimeoutError:
        secure.close()
        raise TimeoutError(SILENT) from None
    except ssl.SSLError as e:
        rest = _unread(secure) if tls.is_plain_text(e) else None
        secure.close()
        if rest is not None:
            raise handshake.answered_in_plain(address, rest) from None
        raise
    except BaseException:
        secure.close()
        raise


def _unread(sock: socket.socket) -> bytes:
    """What has come and was not read, as bytes, whatever was made of those before them."""
    try:
        return socket.socket.recv(sock, handshake.OPENING, socket.MSG_DONTWAIT)
    except OSError:
        return b""


def _left(limit: float) -> float:
    """Seconds until then, and a moment at least."""
    return max(limit - time.monotonic(), 0.05)


_lookups: dict[tuple[str, int], Background] = {}  # under way
os.register_at_fork(after_in_child=_lookups.clear)


def addresses(host: str, port: int, seconds: float) -> Sequence[AddressInfo]:
    """The addresses of a host, as `getaddrinfo` gives them. Whom that asks may never answer: it is waited for so long."""
    if is_loopback(host):
        return socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    with contextlib.suppress(socket.gaierror):  # nobody needs to be asked for a number
        return socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST)
    lookup = _lookups.get((host, port))
    if lookup is None:  # else somebody has asked already, and perhaps given up
        lookup = Background(socket.getaddrinfo, (host, port, 0, socket.SOCK_STREAM), f"lookup-{host}")
        _lookups[host, port] = lookup
    if not lookup.done.wait(seconds):
        raise TimeoutError(f"looking up the name {host} took longer than {seconds:.1f} s")
    _lookups.pop((host, port), None)
    infos: list[AddressInfo] = lookup.outcome()
    return infos


def _is_ours(sock: socket.socket) -> bool:
    """Whether a process of this user has the other end: anybody can take a name."""
    credentials = sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    return struct.unpack("3i", credentials)[1] in (os.getuid(), 0)


def is_on_this_machine(sock: socket.socket) -> bool:
    """Whether the other end of a connection is on this machine."""
    return sock.family == socket.AF_UNIX or is_loopback(sock.getpeername()[0].removeprefix("::ffff:"))


def other_end(sock: socket.socket, at: Any) -> tuple[str, str]:
    """Who has connected, for the log: the machine, and the address or the process."""
    if sock.family != socket.AF_UNIX:
        return at[0], joined(at[0], at[1])
    credentials = sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    return "this machine", f"process {struct.unpack('3i', credentials)[0]} of this machine"


def tuned(sock: socket.socket) -> socket.socket:
    """A socket set up for small messages at once and large ones in large pieces."""
    if sock.family != socket.AF_UNIX:
        # A step waits for each answer: Nagle's algorithm would hold back its last bytes.
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    else:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)
    return sock


def connect(address: str, secret: bytes, hello: Hello, seconds: float) -> tuple[wire.Channel, Welcome]:
    """Connects, proves the token and checks the other side's proof; gives the channel and the welcome."""
    try:
        return _connect(address, secret, hello, seconds)
    except OSError as e:
        if tls.is_refusal(e):
            raise tls.refused(address, e) from None
        raise


def _connect(address: str, secret: bytes, hello: Hello, seconds: float) -> tuple[wire.Channel, Welcome]:
    limit = time.monotonic() + seconds
    sock = open_socket(moved_addresses.current(address), seconds)
    try:
        _prove(sock, address, secret, limit)
        channel = wire.Channel(sock)
        channel.say(hello)
        sock.settimeout(_left(limit))
        welcome = channel.receive().read(Welcome)
        sock.settimeout(None)
        return channel, welcome
    except BaseException:
        sock.close()
        raise


def _prove(sock: socket.socket, address: str, secret: bytes, limit: float) -> None:
    """Checks that the other side is a server of the same cluster, and proves the same of this process."""
    secure = hasattr(sock, "pending")
    said, mine = handshake.opening()
    sock.settimeout(_left(limit))
    sock.sendall(said)
    answer = b""
    while len(answer) < handshake.OPENING + handshake.PROOF:
        answer += _some(sock, handshake.OPENING + handshake.PROOF - len(answer), not answer, limit)
        handshake.check_answer(address, answer, secure)
    try:
        proof = handshake.check_servers_proof(address, answer, mine, secret)
    except errors.UnauthenticatedError:
        with contextlib.suppress(OSError):  # it may have gone
            sock.sendall(handshake.DISAGREES)
        raise
    sock.sendall(proof)


def _some(sock: socket.socket, most: int, is_first: bool, limit: float) -> bytes:
    """Up to so many bytes, as they come."""
    sock.settimeout(_left(limit))
    try:
        result = sock.recv(most)
    except TimeoutError:
        raise TimeoutError(SILENT if is_first else "it stopped in the middle of its answer") from None
    if not result:
        raise ConnectionError("it closed the connection without proving the cluster token")
    return result


def welcome(sock: socket.socket, mine: Welcome, largest: int) -> tuple[wire.Channel, Hello]:
    """The first frames of a connection whose token has been proved."""
    sock.settimeout(HANDSHAKE_SECONDS)
    channel = wire.Channel(sock, largest, asks=False)
    hello = channel.receive().read(Hello)
    channel.say(mine)
    sock.settimeout(None)
    return channel, hello
