"""A client that adds for ever and keeps a ledger: python adder.py TARGET PAIR LEDGER FIRST.

PAIR is the number of the worker that computes and of the ps that keeps the counter and a mark for each addition. The
ledger has a line before each attempt (`t 17`), one after it was acknowledged (`a 17`), and one when the ps was empty and
has been initialized (`i`).
"""

import sys
import time

import tensorfleet as tf

MARKS = 4_000_000


def build(pair):
    with tf.device(f"/job:ps/task:{pair}"):
        counter = tf.Variable(0, name="counter")
        marks = tf.Variable(tf.zeros([MARKS], tf.int32), name="marks")
    number = tf.placeholder(tf.int32, [], name="number")
    with tf.device(f"/job:worker/task:{pair}"):
        here = tf.identity(number) + 0
    with tf.control_dependencies([counter.assign_add(1)]):
        added = tf.scatter_add(marks, here, 1)
    return counter, marks, number, added.op


def main(target, pair, path, first):
    counter, marks, number, add = build(int(pair))
    init = tf.variables_initializer([counter, marks])
    config = tf.ConfigProto(operation_timeout_in_ms=60_000)
    n = int(first)
    with open(path, "a", buffering=1) as ledger:
        while True:
            try:
                with tf.Session(target, config=config) as sess:
                    while True:
                        ledger.write(f"t {n}\n")
                        sess.run(add, {number: n})
                        ledger.write(f"a {n} {time.monotonic()}\n")
                        n += 1
            except tf.errors.FailedPreconditionError:
                with tf.Session(target, config=config) as sess:
                    sess.run(init)
                ledger.write("i\n")
            except tf.errors.OpError as e:
                ledger.write(f"e {type(e).__name__}\n")
                n += 1  # whether it was done is not known: it is never tried again


if __name__ == "__main__":
    main(*sys.argv[1:])
