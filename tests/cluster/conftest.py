"""What tests of the cluster share."""

import socket

import pytest

from tensorfleet.cluster.transport import wire


@pytest.fixture
def ends():
    """The two ends of a connection within this machine."""
    here, there = (wire.Channel(sock) for sock in socket.socketpair(socket.AF_UNIX))
    yield here, there
    here.close()
    there.close()
