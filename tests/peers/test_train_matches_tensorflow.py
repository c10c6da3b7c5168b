"""Schedules, moving averages, the global step and the names of slots, against TensorFlow's."""

import warnings

import numpy as np
import pytest

import tensorfleet
from tensorfleet.api.train import moving_averages

SCHEDULES = {
    "exponential": lambda tf, g: tf.train.exponential_decay(0.1, g, 10, 0.9),
    "staircase": lambda tf, g: tf.train.exponential_decay(0.1, g, 10, 0.9, staircase=True, name="lr"),
    "natural": lambda tf, g: tf.train.natural_exp_decay(0.1, g, 10, 0.9),
    "natural_staircase": lambda tf, g: tf.train.natural_exp_decay(0.1, g, 10, 0.9, staircase=True),
    "inverse": lambda tf, g: tf.train.inverse_time_decay(0.1, g, 10, 0.9),
    "inverse_staircase": lambda tf, g: tf.train.inverse_time_decay(0.1, g, 10, 0.9, staircase=True),
    "polynomial": lambda tf, g: tf.train.polynomial_decay(0.1, g, 10),
    "polynomial_cycle": lambda tf, g: tf.train.polynomial_decay(0.1, g, 10, 0.01, 0.5, cycle=True),
    "cosine": lambda tf, g: tf.train.cosine_decay(0.1, g, 10, 0.01),
    "linear_cosine": lambda tf, g: tf.train.linear_cosine_decay(0.1, g, 10),
}
# From here on the graphs differ (conditionals there, selections here) or draw other random numbers.
BUILT_OTHERWISE = {
    "noisy_linear_cosine": lambda tf, g: tf.train.noisy_linear_cosine_decay(0.1, g, 10, initial_variance=0.0),
    "restarts": lambda tf, g: tf.train.cosine_decay_restarts(0.1, g, 10, alpha=0.02),
    "restarts_of_equal_length": lambda tf, g: tf.train.cosine_decay_restarts(
        0.1, g, 10, t_mul=1.0, m_mul=0.9
    ),
    "piecewise": lambda tf, g: tf.train.piecewise_constant(g, [5, 10], [1.0, 0.5, 0.1]),
    "piecewise_tensors": lambda tf, g: tf.train.piecewise_constant_decay(
        tf.cast(g, tf.float32),
        [2.5, 9.0],
        [tf.constant([1.0, 2.0]), tf.constant([3.0, 4.0]), tf.constant([5.0, 6.0])],
    ),
}


def _schedule(tf, make):
    with tf.Graph().as_default() as graph:
        tf.set_random_seed(7)
        step = tf.placeholder(tf.int64, [])
        before = len(graph.get_operations())
        rate = make(tf, step)
        names = [(o.name, o.type) for o in graph.get_operations()[before:]]
        with tf.Session() as session:
            values = [session.run(rate, {step: i}) for i in range(0, 45, 3)]
    return names, rate.dtype.name, np.array(values)


@pytest.mark.parametrize("name", [*SCHEDULES, *BUILT_OTHERWISE])
def test_schedule_equals(tensorflow, name):
    make = SCHEDULES.get(name) or BUILT_OTHERWISE[name]
    names, dtype, values = _schedule(tensorfleet, make)
    their_names, their_dtype, their_values = _schedule(tensorflow, make)
    assert dtype == their_dtype
    if name in SCHEDULES:
        assert names == their_names
    np.testing.assert_allclose(values, their_values, rtol=2e-5, atol=1e-7)


def _averages(tf, resource, **arguments):
    with tf.Graph().as_default() as graph:
        w = tf.get_variable("w", initializer=np.float32([1, 2]), use_resource=resource)
        t = tf.multiply(w.read_value(), 3.0, name="t")
        average = tf.train.ExponentialMovingAverage(0.9, **arguments)
        update = average.apply([w, t])
        names = [
            (o.name, o.type) for o in graph.get_operations() if o.name.startswith("ExponentialMovingAverage")
        ]
        described = {
            "op": update.name,
            "variables": [v.name for v in tf.global_variables()],
            "averages": [average.average(w).name, average.average(t).name],
            "names": [
                average.average_name(w),
                average.average_name(t),
                average.average_name(tf.constant(1.0)),
            ],
            "restored": {k: v.name for k, v in average.variables_to_restore().items()},
            "collection": [v.name for v in tf.moving_average_variables()],
        }
        grow = tf.assign_add(w, [0.5, -1.0]).op
        init = tf.global_variables_initializer()
        history = []
        with tf.Session() as session:
            session.run(init)
            for _ in range(10):
                session.run(grow)
                session.run(update)
                history.append(session.run([average.average(w), average.average(t)]))
    return names, described, np.array(history)


@pytest.mark.parametrize("resource", [False, True], ids=["ref", "resource"])
@pytest.mark.parametrize("arguments", [{}, {"num_updates": 3}, {"zero_debias": True}], ids=str)
def test_moving_averages_equal(tensorflow, arguments, resource):
    names, described, history = _averages(tensorfleet, resource, **arguments)
    their_names, their_description, their_history = _averages(tensorflow, resource, **arguments)
    assert described == their_description
    assert names == their_names
    np.testing.assert_allclose(history, their_history, rtol=1e-5)


@pytest.mark.parametrize("zero_debias", [False, True])
def test_assigned_moving_average_equals(tensorflow, zero_debias):
    from tensorflow.python.training import moving_averages as their_module

    def run(tf, module):
        with tf.Graph().as_default() as graph:
            w = tf.get_variable("w", initializer=np.float32([0, 0]), use_resource=False)
            before = len(graph.get_operations())
            update = module.assign_moving_average(w, [3.0, 4.0], 0.9, zero_debias=zero_debias)
            names = [(o.name, o.type) for o in graph.get_operations()[before:]]
            with tf.Session() as session:
                session.run(tf.global_variables_initializer())
                return names, [session.run(update).copy() for _ in range(5)]

    names, values = run(tensorfleet, moving_averages)
    their_names, their_values = run(tensorflow, their_module)
    assert names == their_names
    np.testing.assert_allclose(values, their_values, rtol=1e-5)


def _in_scopes(tf):
    with tf.variable_scope("net"):
        w = tf.get_variable("w", [3], initializer=tf.ones_initializer())
        with tf.name_scope("training"):
            tf.train.AdamOptimizer().minimize(tf.reduce_sum(w))


def _twice(tf):
    w = tf.get_variable("w", [3], initializer=tf.ones_initializer())
    loss = tf.reduce_sum(w * w)
    tf.train.AdamOptimizer().minimize(loss)
    tf.train.AdamOptimizer().minimize(loss)
    momentum = tf.train.MomentumOptimizer(0.1, 0.9, name="Adam")
    momentum.minimize(loss)
    momentum.minimize(loss, name="again")


def _partitioned(tf):
    with tf.variable_scope("net", partitioner=tf.fixed_size_partitioner(2)):
        w = tf.get_variable("w", [4, 2], initializer=tf.ones_initializer())
    tf.train.AdagradOptimizer(0.1).minimize(tf.reduce_sum(tf.convert_to_tensor(w)))


def _with_constraint(tf):
    w = tf.get_variable("w", [3], initializer=tf.ones_initializer(), constraint=lambda v: v * 0.5)
    tf.train.GradientDescentOptimizer(0.1).minimize(tf.reduce_sum(w))


def _after_something(tf):
    w = tf.get_variable("w", [3], initializer=tf.ones_initializer())
    with tf.control_dependencies([tf.no_op("first")]):
        tf.train.AdamOptimizer().minimize(tf.reduce_sum(w))


def _half_precision(tf):
    w = tf.get_variable("w", [3], tf.float64, initializer=tf.ones_initializer())
    tf.train.RMSPropOptimizer(tf.constant(0.1)).minimize(tf.reduce_sum(w))


def _several_types(tf):
    w = tf.Variable([1.0, 2.0], name="w", dtype=tf.float32)
    b = tf.Variable([1.0, 2.0], name="b", dtype=tf.float64)
    tf.train.AdamOptimizer().minimize(tf.reduce_sum(w) + tf.reduce_sum(tf.cast(b, tf.float32)))


def _gated(tf):
    w = tf.Variable([1.0, 2.0], name="w")
    optimizer = tf.train.GradientDescentOptimizer(0.1)
    optimizer.minimize(tf.reduce_sum(w), gate_gradients=optimizer.GATE_GRAPH)


SCENES = [
    _in_scopes,
    _twice,
    _partitioned,
    _with_constraint,
    _after_something,
    _half_precision,
    _several_types,
]
SCENES += [_gated]


@pytest.mark.parametrize("scene", SCENES, ids=lambda f: f.__name__.strip("_"))
def test_graph_around_the_optimizer_equals(tensorflow, scene):
    def run(tf):
        with tf.Graph().as_default() as graph, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            scene(tf)
            ops = [
                o
                for o in graph.get_operations()
                if "gradients" not in o.name and "ConcatPartitions" not in o.name
            ]
            names = {
                (o.name, o.type) for o in ops if "nitializer/" not in o.name and "initial_value" not in o.name
            }
            variables = [(v.name, v.shape.as_list(), v.dtype.name) for v in tf.global_variables()]
            slices = [v._get_save_slice_info() for v in tf.global_variables()]
            slices = [s and (s.full_name, s.spec) for s in slices]
            controls = {o.name: sorted(c.name for c in o.control_inputs) for o in ops if o.type != "Const"}
            with tf.Session() as session:
                session.run(tf.global_variables_initializer())
                session.run(tf.get_collection("train_op"))
                values = session.run(tf.global_variables())
            return names, variables, slices, controls, values

    names, variables, slices, controls, values = run(tensorfleet)
    their_names, their_variables, their_slices, their_controls, their_values = run(tensorflow)
    assert variables == their_variables
    assert slices == their_slices
    if scene is not _with_constraint:  # where ours reads the updated variable by an op of its own
        assert names == their_names
        assert controls == their_controls
    if scene is not _twice:  # several updates of one variable race
        for a, b in zip(values, their_values, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-6)
