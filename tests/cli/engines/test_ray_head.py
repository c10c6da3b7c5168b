"""When the head of a Ray cluster is gone, and when it is only slow."""

import socket
import threading

from tensorfleet.cli.engines import ray_head
from tensorfleet.cli.engines.ray_head import HeadSilence, HeadWatch


def test_a_head_is_gone_after_so_long_a_silence():
    silence = HeadSilence(30.0)
    assert [silence.look(False, now) for now in (10.0, 20.0, 39.0, 41.0)] == [None, None, None, 31.0]


def test_a_head_that_answers_again_is_not_gone():
    silence = HeadSilence(30.0)
    assert [silence.look(now == 30.0, now) for now in (1.0, 29.0, 30.0, 32.0, 61.0)] == [None] * 5
    assert silence.look(False, 62.0) == 30.0


def test_the_loss_is_told_once_as_a_sentence(monkeypatch):
    monkeypatch.setattr(ray_head, "_LOOK_SECONDS", 0.01)
    monkeypatch.setattr(HeadSilence.__init__, "__defaults__", (0.0,))
    closed, told, heard = threading.Event(), [], threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as head:
        address = f"127.0.0.1:{head.getsockname()[1]}"
        HeadWatch(address, closed, lambda text: (told.append(text), heard.set())).start()
        assert not told
    assert heard.wait(30)
    closed.set()
    assert told == [
        f"The head of the Ray cluster at {address} has not answered for 0 s. Start the cluster again, then this run, "
        "which goes on from its last checkpoint."
    ]
