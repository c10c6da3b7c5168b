"""Scripts that use what numpy and Python no longer have."""

import collections
import csv
import subprocess
import sys
import textwrap
import time

import numpy as np

from tensorfleet.cli.scripts import alias

SCRIPT = """
    import collections, inspect, time
    import numpy as np
    import tensorflow as tf

    began = time.clock()
    x = tf.placeholder(np.float, [None])
    counts = np.zeros(3, dtype=np.int)
    names = np.array(["a", "b"], dtype=np.object)
    assert isinstance([], collections.Iterable)
    assert inspect.getargspec(lambda a, b=1: a).args == ["a", "b"]
    assert np.vstack(np.ones(2) * i for i in range(3)).shape == np.hstack(map(np.ones, [(3, 1)] * 2)).shape
    assert np.asfarray([1, 2]).dtype == np.asfarray([1], np.int32).dtype == np.float64
    assert np.cast["float32"](2).dtype == np.cast[np.float32](2).dtype == np.float32
    assert np.lib.pad([1], 1, "constant").tolist() == [0, 1, 0]
    import base64, itertools, os, string, threading, types, urllib
    import xml.etree.cElementTree as ET
    assert base64.decodestring(base64.encodestring(b"a")) == b"a" and not threading.Thread().isAlive()
    assert string.split("a,b", ",") == ["a", "b"] and string.atoi("7") == 7 and os.errno.EEXIST
    assert urllib.quote("a b") == "a%20b" and urllib.urlencode({"a": 1}) == "a=1" and urllib.request.urlopen
    assert isinstance("a", types.StringTypes) and list(itertools.ifilterfalse(None, [0, 1])) == [0]
    assert ET.fromstring("<a/>").tag == "a" and not hasattr(urllib, "another")
    rows = np.array([[1, 2], [3]])
    assert rows.dtype == object and np.array((1, 2), copy=False).tolist() == [1, 2]
    assert np.msort([[2, 1], [1, 3]]).tolist() == [[1, 1], [2, 3]] and np.rank([[1]]) == 2
    with tf.Session() as sess:
        total = np.asscalar(sess.run(tf.reduce_sum(x), {x: np.ones(3, np.float_)}))
    print(x.dtype.name, counts.dtype.kind, names.dtype.kind, total, np.NaN != np.NaN, time.clock() >= began)
"""


def test_a_script_that_uses_them_runs(tmp_path):
    script = tmp_path / "old.py"
    script.write_text(textwrap.dedent(SCRIPT))
    done = subprocess.run(
        [sys.executable, "-m", "tensorfleet", str(script)],
        capture_output=True,
        text=True,
        timeout=300,
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["float32", "i", "O", "3.0", "True", "True"]


def test_they_go_with_the_alias_and_change_nothing_that_is_there():
    before = {module: set(vars(module)) for module in (np, collections, time)}
    kept = np.prod, np.stack, collections.OrderedDict, time.time, csv.reader
    alias.install()
    try:
        assert (np.int, np.NINF, time.clock) == (int, -np.inf, time.process_time)
    finally:
        alias.uninstall()
    assert {module: set(vars(module)) for module in (np, collections, time)} == before
    assert (np.prod, np.stack, collections.OrderedDict, time.time, csv.reader) == kept
