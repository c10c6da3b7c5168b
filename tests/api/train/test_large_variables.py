"""Variables of more than two gigabytes, which no message can hold."""

import os
import shutil
import tempfile

import numpy as np
import pytest

import tensorfleet as tf

_ROWS = (1 << 29) + 5  # of four bytes each
_NEEDED = 8 << 30  # bytes of memory


def _has_room() -> bool:
    pages = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return pages > _NEEDED and shutil.disk_usage(tempfile.gettempdir()).free > _NEEDED


@pytest.mark.large
@pytest.mark.skipif(not _has_room(), reason="needs 8 GB of memory and as much room for temporary files")
def test_a_variable_of_more_than_two_gigabytes_is_saved_and_restored(tmp_path):
    v = tf.get_variable("v", initializer=tf.constant(3.0, shape=[_ROWS]), use_resource=False)
    ends = tf.gather(v, [0, 1, _ROWS - 2, _ROWS - 1])
    saver = tf.train.Saver()
    with tf.Session() as session:
        session.run(v.initializer)
        session.run(tf.scatter_update(v, [0, _ROWS - 1], [1.0, 2.0]).op)
        path = saver.save(session, str(tmp_path / "large"))
    with tf.Session() as session:
        saver.restore(session, path)
        np.testing.assert_array_equal(session.run(ends), [1, 3, 3, 2])
    shutil.rmtree(tmp_path)
