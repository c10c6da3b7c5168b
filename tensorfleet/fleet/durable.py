"""`tf.fleet.durable`: a parameter server with a standby, in a cluster that is started by hand."""

from __future__ import annotations

from tensorfleet.base import errors, logging, settings
from tensorfleet.base.naming import export
from tensorfleet.cluster.durability.role import State
from tensorfleet.cluster.durability.told_places import told_places
from tensorfleet.cluster.server import Server
from tensorfleet.cluster.transport.connection import canonical, split_address


@export("fleet.durable")
def durable(server: Server, standby: str) -> Server:
    """Makes a server durable and starts it: what `sess.run` has returned survives its death. Returns the server.

    `server` is a `tf.train.Server` made with `start=False`. `standby` is the address (host:port) of the process that has a
    copy of its state: start that with `tensorfleet standby`, and `tensorfleet guard`, which decides which of the two
    leads. Steps wait until the guard has made its first decision.

    In a script that `tensorfleet run` starts, the command decides: with `--replicas 1` the server has the launcher's
    standby, else it has none.

    Raises `InvalidArgumentError` for an address that cannot be that of a standby, `FailedPreconditionError` for a server that
    was started already.
    """
    if not isinstance(server, Server):
        raise TypeError(f"server must be a tf.train.Server, but got {server!r}")
    if not isinstance(standby, str):
        raise TypeError(f"standby must be an address such as beta:2222, but got {standby!r}")
    if server.is_started:
        raise errors.FailedPreconditionError(
            None,
            None,
            f"{server.task} was started already, and clients may have changed its state. Make the tf.train.Server with "
            "start=False; tf.fleet.durable starts it.",
        )
    address = server.cluster.task_address(server.job, server.index)
    split_address(standby)
    if canonical(standby) == canonical(address):
        raise errors.InvalidArgumentError(
            None, None, f"{server.task} listens at {address} itself. Its standby needs an address of its own."
        )
    told = told_places(server.task, address)
    if not told and settings.SERVES():
        logging.warning(
            "%s has no standby: `tensorfleet run` starts it, and was not told to. Add --replicas 1.",
            server.task,
        )
    else:
        server.make_durable(told or [address, standby], State.WAITING)
    server.start()
    return server
