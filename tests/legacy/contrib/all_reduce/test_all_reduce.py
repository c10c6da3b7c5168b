"""Sums over devices: every form gives each device what adding up gives."""

import numpy as np
import pytest

import tensorfleet as tf

DEVICES = ["/cpu:0", "/cpu:1", "/cpu:2", "/cpu:3"]


def parts():
    result = []
    for i, device in enumerate(DEVICES):
        with tf.device(device):
            result.append(tf.constant([i + 1.0, -i]))
    return result


def run(tensors):
    with tf.Session(config=tf.ConfigProto(device_count={"CPU": 4})) as sess:
        return sess.run(tensors)


FORMS = {
    "nccl": lambda r, x: tf.contrib.nccl.all_sum(x),
    "ring": lambda r, x: r.build_ring_all_reduce(x, 1, 1, [0, 1, 2, 3], tf.add),
    "halving": lambda r, x: r.build_recursive_hd_all_reduce(x, tf.add),
    "shuffle": lambda r, x: r.build_shuffle_all_reduce(x, DEVICES[:2], tf.add),
    "nccl, ring": lambda r, x: r.build_nccl_then_ring(x, 1, tf.add),
    "nccl, halving": lambda r, x: r.build_nccl_then_recursive_hd(x, tf.add),
    "nccl, shuffle": lambda r, x: r.build_nccl_then_shuffle(x, DEVICES, tf.add, tf.add),
    "shuffle twice": lambda r, x: r.build_shuffle_then_shuffle(x, DEVICES, DEVICES, tf.add),
}


@pytest.mark.parametrize("form", FORMS)
def test_every_device_gets_the_sum(form):
    totals = FORMS[form](tf.contrib.all_reduce.python.all_reduce, parts())
    np.testing.assert_allclose(run(totals), [[10, -6]] * 4)


def test_other_reductions():
    nccl = tf.contrib.nccl
    got = run([nccl.all_prod(parts())[0], nccl.all_min(parts())[1], nccl.all_max(parts())[2]])
    np.testing.assert_allclose(got, [[24, 0], [1, -3], [4, 0]])


def test_nothing_to_add_up_is_refused():
    with pytest.raises(ValueError, match="Must pass >0 tensors"):
        tf.contrib.nccl.all_sum([])
