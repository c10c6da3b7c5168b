"""`tf.train.Optimizer`: the protocol subclasses rely on, what it accepts and what it refuses."""

import numpy as np
import pytest

import tensorfleet as tf
from tests.support.sessions import initialized


class Recording(tf.train.Optimizer):
    """Plain descent that writes down which of its methods are called."""

    def __init__(self):
        super().__init__(False, "Recording")
        self.calls = []

    def _create_slots(self, var_list):
        self.calls.append(("create_slots", [v.op.name for v in var_list]))
        for v in var_list:
            self._zeros_slot(v, "count", self._name)

    def _prepare(self):
        self.calls.append("prepare")
        self.rate = tf.convert_to_tensor(0.5, name="rate")

    def _apply_dense(self, grad, var):
        self.calls.append(("dense", var.op.name))
        counted = self.get_slot(var, "count").assign_add(tf.ones_like(grad))
        return tf.group(tf.assign_sub(var, self.rate * grad), counted)

    def _apply_sparse(self, grad, var):
        self.calls.append(("sparse", var.op.name))
        return tf.scatter_sub(var, grad.indices, self.rate * grad.values)

    def _resource_apply_dense(self, grad, handle):
        self.calls.append(("resource dense", handle.op.name))
        return handle.assign_sub(self.rate * grad)

    def _resource_apply_sparse(self, grad, handle, indices):
        self.calls.append(("resource sparse", handle.op.name))
        return handle.scatter_sub(tf.IndexedSlices(self.rate * grad, indices))

    def _finish(self, update_ops, name_scope):
        self.calls.append(("finish", len(update_ops), name_scope))
        return super()._finish(update_ops, name_scope)


def test_a_subclass_is_called_in_order_for_each_kind_of_variable_and_gradient():
    a = tf.get_variable("a", initializer=np.ones(2, np.float32))
    b = tf.get_variable("b", initializer=np.ones((3, 1), np.float32))
    c = tf.get_variable("c", initializer=np.ones(2, np.float32), use_resource=True)
    d = tf.get_variable("d", initializer=np.ones((3, 1), np.float32), use_resource=True)
    loss = tf.reduce_sum(a) + tf.reduce_sum(tf.gather(b, [0, 0])) + tf.reduce_sum(c * 2.0)
    loss += tf.reduce_sum(tf.gather(d, [2, 1, 2]))
    optimizer = Recording()
    train = optimizer.minimize(loss)
    assert optimizer.calls == [
        ("create_slots", ["a", "b", "c", "d"]),
        "prepare",
        ("dense", "a"),
        ("sparse", "b"),
        ("resource dense", "c"),
        ("resource sparse", "d"),
        ("finish", 4, "Recording/"),
    ]
    assert train.name == "Recording" and optimizer.get_slot_names() == ["count"]
    with initialized() as session:
        session.run(train)
        values = session.run([a, b, c, d, optimizer.get_slot(a, "count")])
    assert [v.ravel().tolist() for v in values] == [[0.5, 0.5], [0, 1, 1], [0, 0], [1, 0.5, 0], [1, 1]]


def test_the_train_op_counts_steps_and_is_collected():
    step = tf.train.get_or_create_global_step()
    w = tf.Variable(1.0)
    train = tf.train.GradientDescentOptimizer(0.1).minimize(w * w, global_step=step)
    assert tf.get_collection(tf.GraphKeys.TRAIN_OP) == [train]
    with initialized() as session:
        for _ in range(4):
            session.run(train)
        assert tf.train.global_step(session, step) == 4
        assert session.run(w) == pytest.approx(0.8**4, rel=1e-6)


def test_a_global_step_may_be_a_resource_variable():
    step = tf.Variable(0, name="step", trainable=False, use_resource=True)
    w = tf.Variable(1.0)
    train = tf.train.AdamOptimizer().minimize(w * w, global_step=step)
    assert train.type == "AssignAddVariableOp" and train.name == "Adam"
    with initialized() as session:
        session.run([train])
        session.run([train])
        assert session.run(step) == 2


def test_the_learning_rate_may_be_fed_or_be_a_function():
    w = tf.Variable(1.0)
    rate = tf.placeholder(tf.float32, [])
    by_tensor = tf.train.GradientDescentOptimizer(rate).minimize(w * 3.0)
    by_function = tf.train.MomentumOptimizer(lambda: 0.5, lambda: 0.0).minimize(w * 3.0)
    with initialized() as session:
        session.run(by_tensor, {rate: 0.25})
        assert session.run(w) == 0.25
        session.run(by_function)
        assert session.run(w) == -1.25


def test_gradients_may_be_changed_between_compute_and_apply():
    w, v = tf.Variable([3.0, 4.0], name="w"), tf.Variable(1.0, name="v")
    optimizer = tf.train.GradientDescentOptimizer(1.0)
    pairs = optimizer.compute_gradients(tf.reduce_sum(w * w), [w, v])
    assert [var for _, var in pairs] == [w, v] and pairs[1][0] is None
    train = optimizer.apply_gradients([(None if g is None else g * 0.5, x) for g, x in pairs], name="half")
    assert train.name == "half"
    with initialized() as session:
        session.run(train)
        assert session.run(w).tolist() == [0, 0] and session.run(v) == 1


def test_grad_loss_scales_the_gradients_and_a_loss_need_not_be_scalar():
    w = tf.Variable([1.0, 1.0])
    train = tf.train.GradientDescentOptimizer(1.0).minimize(w * 2.0, grad_loss=tf.constant([1.0, 3.0]))
    with initialized() as session:
        session.run(train)
        assert session.run(w).tolist() == [-1, -5]


@pytest.mark.parametrize("gate", [tf.train.Optimizer.GATE_NONE, tf.train.Optimizer.GATE_GRAPH])
def test_every_gate_trains_alike(gate):
    w, v = tf.Variable(2.0), tf.Variable(3.0)
    train = tf.train.GradientDescentOptimizer(0.1).minimize(w * v, gate_gradients=gate)
    with initialized() as session:
        session.run(train)
        assert session.run([w, v]) == pytest.approx([1.7, 2.8])


def test_a_constraint_holds_after_the_update():
    w = tf.get_variable("w", initializer=np.float32([1, -1]), constraint=lambda x: tf.maximum(x, 0.0))
    r = tf.get_variable("r", initializer=np.float32([1, -1]), constraint=lambda x: x * 0.5, use_resource=True)
    train = tf.train.GradientDescentOptimizer(0.1).minimize(tf.reduce_sum(w) + tf.reduce_sum(r))
    with initialized() as session:
        session.run(train)
        np.testing.assert_allclose(session.run(w), [0.9, 0.0], rtol=1e-6)
        np.testing.assert_allclose(session.run(r), [0.45, -0.55], rtol=1e-6)


def test_slots_are_global_variables_but_not_trained():
    w = tf.get_variable("net/w", initializer=np.float32([1, 2]))
    optimizer = tf.train.AdamOptimizer()
    optimizer.minimize(tf.reduce_sum(w))
    assert [v.op.name for v in tf.trainable_variables()] == ["net/w"]
    names = ["beta1_power", "beta2_power", "net/w/Adam", "net/w/Adam_1"]
    assert [v.op.name for v in optimizer.variables()] == names
    assert optimizer.get_slot(w, "m").op.name == "net/w/Adam" and optimizer.get_slot(w, "none") is None


def test_a_slot_follows_a_variable_whose_shape_only_a_step_knows():
    start = tf.placeholder_with_default(np.float32([1, 2]), [None])
    w = tf.Variable(start, validate_shape=False)
    train = tf.train.MomentumOptimizer(0.5, 0.9).minimize(tf.reduce_sum(w))
    with initialized() as session:
        session.run(train)
        assert session.run(w).tolist() == [0.5, 1.5]


def test_no_trainable_variables_is_an_error():
    with pytest.raises(ValueError, match=r"No variables to optimize\."):
        tf.train.GradientDescentOptimizer(0.1).minimize(tf.constant(1.0))


def test_a_loss_that_depends_on_no_variable_is_an_error():
    tf.Variable(1.0, name="w")
    message = (
        "No gradients provided for any variable, check your graph for ops that do not support gradients, "
    )
    with pytest.raises(ValueError, match=message + r"between variables .*w:0.* and loss Tensor\("):
        tf.train.GradientDescentOptimizer(0.1).minimize(tf.constant(1.0))


def test_pairs_without_gradients_are_refused():
    w = tf.Variable(1.0)
    optimizer = tf.train.GradientDescentOptimizer(0.1)
    with pytest.raises(ValueError, match=r"No variables provided\."):
        optimizer.apply_gradients([])
    with pytest.raises(ValueError, match="No gradients provided for any variable: "):
        optimizer.apply_gradients([(None, w)])
    with pytest.raises(TypeError, match=r"\(gradient, variable\) pairs"):
        optimizer.apply_gradients([w])
    with pytest.raises(NotImplementedError):
        optimizer.apply_gradients([(1.0, 2.0)])


def test_integers_are_not_trained():
    w = tf.Variable(1)
    with pytest.raises(ValueError, match="Invalid type tf.int32"):
        tf.train.GradientDescentOptimizer(0.1).minimize(w * 2)


def test_a_gate_must_be_one_of_three():
    w = tf.Variable(1.0)
    with pytest.raises(ValueError, match="gate_gradients must be one of"):
        tf.train.GradientDescentOptimizer(0.1).minimize(w, gate_gradients=7)


def test_an_optimizer_needs_a_name():
    with pytest.raises(ValueError, match="Must specify the optimizer name"):
        tf.train.GradientDescentOptimizer(0.1, name="")


@pytest.mark.parametrize(
    "make",
    [
        lambda: tf.train.AdagradOptimizer(0.1, 0.0),
        lambda: tf.train.ProximalAdagradOptimizer(0.1, -1.0),
        lambda: tf.train.AdagradDAOptimizer(0.1, None, 0.0),
        lambda: tf.train.FtrlOptimizer(0.1, learning_rate_power=0.5),
        lambda: tf.train.FtrlOptimizer(0.1, l1_regularization_strength=-1.0),
    ],
)
def test_impossible_hyperparameters_are_refused(make):
    with pytest.raises(ValueError, match="positive|negative"):
        make()


@pytest.mark.parametrize("resource", [False, True], ids=["ref", "resource"])
def test_hyperparameters_may_be_functions(resource):
    w = tf.get_variable("w", initializer=np.float32(1), use_resource=resource)
    optimizer = tf.train.AdamOptimizer(lambda: 0.5, lambda: 0.9, lambda: 0.99, lambda: 1e-8)
    train = optimizer.minimize(w * 2.0)
    with initialized() as session:
        session.run(train)
        assert session.run(w) == pytest.approx(0.5)


def test_slots_are_made_where_variables_are_reused(session):
    w = tf.get_variable("w", initializer=1.0)
    with tf.variable_scope(tf.get_variable_scope()) as scope:
        scope.reuse_variables()
        train = tf.train.AdamOptimizer(0.1).minimize(w * w, var_list=[w])
        with pytest.raises(ValueError, match="does not exist"):
            tf.get_variable("v", [])
    session.run(tf.global_variables_initializer())
    session.run(train)
    assert session.run(w) == pytest.approx(0.9)
    assert {"w/Adam", "w/Adam_1"} <= {v.op.name for v in tf.global_variables()}
