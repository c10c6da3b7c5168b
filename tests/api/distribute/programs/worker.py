"""A worker that adds up with the other until that one is gone, and then says which error it got."""

import json
import os
import signal
import sys
from pathlib import Path

import tensorfleet as tf
from tests.support.waiting import until


def main(dies, folder):
    added = Path(
        folder, "added"
    )  # by the other: killed before that, its first run would be the one that fails
    loaded = json.loads(os.environ["TF_CONFIG"])
    index = loaded["task"]["index"]
    server = tf.train.Server(loaded["cluster"], "worker", index)
    strategy = tf.distribute.experimental.MultiWorkerMirroredStrategy()
    with strategy.scope():
        total = strategy.reduce(tf.distribute.ReduceOp.SUM, strategy.run(lambda: tf.constant(1.0)))
    with tf.Session(server.target) as sess:
        assert sess.run(total) == 2.0
        if index == int(dies):
            until(added.exists, "the other's first run")
            os.kill(os.getpid(), signal.SIGKILL)
        added.touch()
        try:
            sess.run(total)
        except (tf.errors.UnavailableError, tf.errors.AbortedError) as error:
            print("told", type(error).__name__, flush=True)
    os._exit(0)


if __name__ == "__main__":
    main(*sys.argv[1:])
