"""Saves again and again in processes that crash at the first, the second, ... change they make to the disk."""

import builtins
import itertools
import os
import shutil
import sys

import numpy as np

import tensorfleet as tf

SHAPES = {"a": [64], "b": [3, 5], "c": []}


class Crash:
    """Ends this process without a word when its turn comes, in the middle of a write."""

    def __init__(self, at):
        self.left = at

    def step(self, half=None):
        self.left -= 1
        if self.left == 0:
            if half is not None:
                half()
            os._exit(9)

    def install(self):
        for name in ("replace", "rename", "link", "fsync", "remove", "rmdir", "mkdir"):
            setattr(os, name, self.before(getattr(os, name)))
        real = builtins.open

        def opened(file, mode="r", *args, **kwargs):
            result = real(file, mode, *args, **kwargs)
            return Crashing(self, result) if set(mode) & set("wxa+") else result

        builtins.open = opened

    def before(self, real):
        def call(*args, **kwargs):
            self.step()
            return real(*args, **kwargs)

        return call


class Crashing:
    """A file whose writes may be the last thing that happens."""

    def __init__(self, crash, file):
        self._crash, self._file = crash, file

    def write(self, data):
        def half():
            self._file.write(memoryview(data).cast("B")[: memoryview(data).nbytes // 2])
            self._file.flush()

        self._crash.step(half)
        return self._file.write(data)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._file.close()

    def __getattr__(self, name):
        return getattr(self._file, name)


def save(path, value, sharded, step):
    config = tf.ConfigProto(device_count={"CPU": 2})
    with tf.Graph().as_default(), tf.Session(config=config) as sess:
        for i, (name, shape) in enumerate(SHAPES.items()):
            with tf.device(f"/cpu:{i % 2}"):
                tf.get_variable(name, shape, initializer=tf.constant_initializer(value))
        sess.run(tf.global_variables_initializer())
        tf.train.Saver(sharded=sharded).save(sess, path, global_step=step)


def found(folder):
    """The value that all variables have in the latest checkpoint."""
    path = tf.train.latest_checkpoint(folder)
    assert path, os.listdir(folder)
    reader = tf.train.NewCheckpointReader(path)
    values = {float(v) for name in SHAPES for v in np.ravel(reader.get_tensor(name))}
    assert len(values) == 1, values
    return values.pop()


def in_child(call, *args):
    """Runs a function in a process of its own and gives its exit status. Sessions have threads: none runs here."""
    child = os.fork()
    if not child:
        try:
            call(*args)
            os._exit(0)
        except BaseException as e:
            os.write(2, f"{type(e).__name__}: {e}\n".encode())
            os._exit(1)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def crashing(at, *args):
    Crash(at).install()
    save(*args)


def main(folder, sharded, step):
    begun = os.path.join(folder, "begun")
    os.mkdir(begun)
    assert in_child(save, os.path.join(begun, "model"), 1.0, sharded, None) == 0
    seen = []
    for n in itertools.count(1):
        here = os.path.join(folder, f"crash{n}")
        shutil.copytree(begun, here)
        tf.train.update_checkpoint_state(here, os.path.join(here, "model"))
        code = in_child(crashing, n, os.path.join(here, "model"), 2.0, sharded, step)
        seen.append(found(here))
        if code == 0:
            break
        assert code == 9, code
        # What the crash left behind is in nobody's way.
        assert in_child(save, os.path.join(here, "model"), 3.0, sharded, step) == 0
        assert found(here) == 3.0
    assert seen == sorted(seen), seen
    print(f"{len(seen)} places, {seen.count(1.0)} of them before the new checkpoint", flush=True)


if __name__ == "__main__":
    main(sys.argv[1], "sharded" in sys.argv[2:], 7 if "step" in sys.argv[2:] else None)
