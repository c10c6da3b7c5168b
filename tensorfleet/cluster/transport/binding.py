"""Where a server listens: at its address in the ClusterSpec, or where TENSORFLEET_BIND says.

The two differ where connections are passed on to the task: behind a NAT or a load balancer, at a cloud machine's public
address, in a container with mapped ports, behind the name of a service. Others dial the address in the ClusterSpec.
"""

from __future__ import annotations

import contextlib
import errno
import socket
import time

from tensorfleet.base import errors, logging, settings
from tensorfleet.cluster.transport import connection
from tensorfleet.cluster.transport.peers import patience
from tensorfleet.cluster.transport.token import configured

BIND = settings.BIND.name
_LOG_EVERY_SECONDS = 5.0
_RETRY_SECONDS = 0.5


def place(host: str, port: int) -> tuple[str, int]:
    """Where to listen for a task with this address: TENSORFLEET_BIND is a host, or a host and a port."""
    given = settings.BIND()
    if not given:
        return host, port
    is_host = given.count(":") > 1 and not given.startswith("[")  # an IPv6 address
    if is_host or ":" not in given or given.endswith("]"):
        return given.strip("[]"), port
    try:
        return connection.split_address(given)
    except errors.InvalidArgumentError:
        raise errors.InvalidArgumentError(
            None,
            None,
            f'{BIND} is "{given}". Write a host ("0.0.0.0", "[::]") or a host and a port ("0.0.0.0:2222").',
        ) from None


def bind(task: str, address: str, alone: bool) -> tuple[list[socket.socket], str]:
    """The sockets at which a task listens, and its address: with the port that the system chose, if it is 0 there."""
    host, port = connection.split_address(address)
    at, bound = place(host, port)
    if not (connection.is_loopback(host) and connection.is_loopback(at)) and not configured():
        raise errors.FailedPreconditionError(
            None,
            None,
            f"{task} would listen at {connection.joined(at, bound)}, where other machines can reach it, but no cluster "
            "token is set. Set TENSORFLEET_TOKEN (or TENSORFLEET_TOKEN_FILE) to the same secret on every task, or use "
            "localhost.",
        )
    sockets = listen(task, address, at, bound)
    if not port:
        port = sockets[0].getsockname()[1]
        address = connection.joined(host, port)
    if host in ("0.0.0.0", "::") and not alone:
        logging.warning(
            "%s listens at %s. Other machines cannot reach it there: give it a name or address of its own in the "
            "ClusterSpec, and set TENSORFLEET_BIND=%s to listen at every address.",
            task,
            address,
            host,
        )
    has_same_port = sockets[0].getsockname()[1] == port  # else something in between passes connections on
    if connection.is_loopback(host) and has_same_port and connection.has_local_names():
        # A quicker way for processes of this machine, which can also share memory over it.
        local = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        with contextlib.suppress(OSError):  # taken by a task of another cluster: TCP will do
            local.bind(connection.local_name(host, port))
            local.listen(256)
            sockets.append(local)
    return sockets, address


def listen(task: str, address: str, host: str, port: int) -> list[socket.socket]:
    """Sockets that listen for a task at a place. A name that nobody knows yet is waited for."""
    began = last_logged = time.monotonic()
    limit = began + patience()
    where = f"{connection.joined(host, port)}"
    if where != address:
        where += f" ({BIND}; its address is {address})"
    while True:
        try:
            return connection.listen_at(host, port)
        except (socket.gaierror, TimeoutError) as e:
            now, why = time.monotonic(), e.strerror or str(e)
            if now >= limit:
                raise _unresolved(task, host, now - began, why) from None
        except OSError as e:
            raise _failed(task, where, port, e) from None
        if now - last_logged >= _LOG_EVERY_SECONDS:
            last_logged = now
            logging.warning(
                "%s waits for the name %s to resolve, to listen there (for %d s: %s). Is it spelled right? %s sets another place "
                "to listen.",
                task,
                host,
                now - began,
                why,
                BIND,
            )
        time.sleep(min(_RETRY_SECONDS, max(limit - time.monotonic(), 0.0)))


def _unresolved(task: str, host: str, waited: float, why: str) -> errors.OpError:
    return errors.DeadlineExceededError(
        None,
        None,
        f"Could not start gRPC server: waited {waited:.0f} s for the name {host} of {task} to resolve: {why}. Correct it in the "
        f"ClusterSpec, or set {BIND}=0.0.0.0 to listen at every address of this machine.",
    )


def _failed(task: str, where: str, port: int, error: OSError) -> errors.OpError:
    advice = "Is another task (or an earlier run) still using that port?"
    if error.errno == errno.EADDRNOTAVAIL:
        advice = (
            "That is not an address of this machine. If connections to it are passed on to this machine (NAT, a load balancer, "
            f"a container's port map), set {BIND}=0.0.0.0, or the host and port that they arrive at."
        )
    user = connection.user_of(port) if port and error.errno == errno.EADDRINUSE else ""
    return errors.UnknownError(
        None,
        None,
        f"Could not start gRPC server: {task} cannot listen at {where}: {error.strerror or error}{user}. {advice}",
    )
