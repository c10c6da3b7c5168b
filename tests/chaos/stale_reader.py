"""Trains and reads from the standby at the same time: python stale_reader.py CLUSTER HALF.

Makes the file HALF in the middle of the training, and ends when that is over; no read may be older than the one before.
"""

import json
import sys
from pathlib import Path

import tensorfleet as tf
from tests.support.waiting import SECONDS, in_background

STEPS = 400


def main(cluster, half):
    server = tf.train.Server(json.loads(cluster), "worker", 0)
    with tf.device("/job:ps/task:0"):
        total = tf.get_variable("total", [], tf.int64, tf.zeros_initializer())
        add = tf.assign_add(total, 1)
    acknowledged, seen = [0], [0]
    with tf.Session(server.target) as sess, tf.Session(server.target) as reading:
        sess.run(total.initializer)

        def train():
            for _ in range(STEPS):
                acknowledged.append(int(sess.run(add)))

        training = in_background(train)
        with tf.fleet.stale_reads(reading) as reader:
            while not training.done():
                seen.append(int(reader.run(total)))
                assert seen[-1] >= seen[-2], seen[-2:]
                if len(acknowledged) > STEPS // 2:
                    Path(half).touch()
            training.result(SECONDS)
            assert acknowledged == list(range(STEPS + 1))
            assert reader.from_standbys > 5


if __name__ == "__main__":
    main(*sys.argv[1:])
