"""Every op that reads or writes a variable, with the variable here, on another device, and on another task."""

import numpy as np
import optax
import pytest

import tensorfleet as tf
from tensorfleet.graph.apply import apply_op
from tensorfleet.graph.registry import all_ops, get
from tensorfleet.testing.cluster import free_addresses

ROWS = {
    "small": 6,
    "large": 1 << 14,
}  # of two columns: from 32,768 elements on, rows are read and written in place
PS, WORKER = "/job:ps/task:0", "/job:worker/task:0"
#: where the variable is, where the op asks to be, and whether there is a cluster
PLACES = {
    "here": (None, None, False),
    "on another device": ("/cpu:1", "/cpu:0", False),
    "on another task": (PS, WORKER, True),
    "here, the op asking for another task": (WORKER, PS, True),
}
SCALARS = dict(
    alpha=0.1, l1=0.01, l2=0.02, lr=0.3, momentum=0.5, epsilon=0.1, rho=0.9, beta1_power=0.9, beta2_power=0.8
)
SCALARS |= dict(beta1=0.9, beta2=0.8, lr_power=-0.5, l2_shrinkage=0.1, sign_decay=0.5, beta=0.9, logbase=1.5)


class Case:
    """One op type, with variables and other arguments for it."""

    def __init__(self, kind, rows, variable_place):
        self.spec = get(kind)
        self.rows, self.place = rows, variable_place
        self.resource = not any(a.is_ref for a in self.spec.inputs)
        self.variables = []

    def variable(self, start):
        with tf.device(self.place):
            name = f"v{len(self.variables)}"
            self.variables.append(tf.get_variable(name, initializer=start, use_resource=self.resource))
        made = self.variables[-1]
        return made.handle if self.resource else made._ref()

    def table(self):
        return self.variable(
            (np.arange(self.rows * 2, dtype=np.float32).reshape([-1, 2]) + 1) / (self.rows * 2)
        )

    def argument(self, position):
        """A value for an input, by what it is for; a name that is not known here asks for a case of its own."""
        spec, arg = self.spec, self.spec.inputs[position]
        by_rows = any(a.name == "indices" for a in spec.inputs)
        if position in (*spec.updates, *spec.reads) or arg.is_ref:
            return self.table()
        if arg.name == "indices":
            rows = np.array([4, 1, self.rows - 1], np.int32)
            return tf.constant(rows[:, None] if "Nd" in spec.name else rows)
        if arg.name == "global_step":
            return tf.constant(7, tf.int64)
        if arg.name in ("grad", "delta", "value", "updates"):
            count = 3 if by_rows else self.rows
            return tf.constant(np.linspace(0.5, 1.5, count * 2, dtype=np.float32).reshape([-1, 2]))
        if arg.name in SCALARS:
            return tf.constant(SCALARS[arg.name])
        pytest.fail(f"{spec.name} takes '{arg.name}': say in this file what to give it.")

    def call(self):
        special = SPECIAL.get(self.spec.name)
        if special is not None:
            return special(self)
        attrs = {"dtype": tf.float32} if "dtype" in self.spec.attrs and not self.spec.updates else {}
        return apply_op(self.spec.name, *map(self.argument, range(len(self.spec.inputs))), **attrs)


def strided(case):
    given = [case.table(), [1], [5], [2], np.array([[7.0, 8.0], [9.0, 10.0]], np.float32)]
    return apply_op(case.spec.name, *given)


def drawn(case):
    """A random op that has its state in a variable."""
    given = [case.variable(np.array([1, 2, 3], np.int64)), tf.constant(1, tf.int64), [4]]
    name = case.spec.name
    if name == "RngSkip":
        return apply_op(name, *given[:2], tf.constant(5, tf.int64))
    if name == "StatefulUniformInt":
        return apply_op(name, *given, tf.constant(0, tf.int64), tf.constant(100, tf.int64))
    if name == "StatefulRandomBinomial":
        return apply_op(name, *given, tf.constant([10.0] * 4), tf.constant([0.5] * 4), dtype=tf.float32)
    return apply_op(name, *given, **({"dtype": tf.uint64} if name == "StatefulUniformFullInt" else {}))


def counted(case):
    kinds = {"T": tf.int32} if case.resource else {}
    return apply_op(case.spec.name, case.variable(np.int32(3)), limit=10, **kinds)


def switched(case):
    return tf.identity(apply_op("RefSwitch", case.table(), tf.constant(True)).outputs[1]).op


def merged(case):
    sides = apply_op("RefSwitch", case.table(), tf.constant(True))._outputs
    return apply_op("RefMerge", list(sides))


def entered(case):
    """A loop that has a reference from outside."""
    reference = case.table()
    turned = tf.while_loop(
        lambda i, _: i < 3, lambda i, x: (i + 1, x + tf.reduce_max(tf.gather(reference, [1, 4]))), [0, 0.0]
    )
    return turned[1].op


def selected(case):
    return tf.identity(apply_op("RefSelect", tf.constant(0), [case.table()]).outputs[0]).op


def stepped(case):
    """A step of an optimizer of Optax, by its own op."""
    case.table()
    gradient = tf.constant(np.linspace(0.5, 1.5, case.rows * 2, dtype=np.float32).reshape([-1, 2]))
    return tf.fleet.OptaxOptimizer(optax.sgd(0.5)).apply_gradients([(gradient, case.variables[0])])


def initialized(case):
    case.table()
    return tf.is_variable_initialized(case.variables[0]).op


SPECIAL = {
    "StridedSliceAssign": strided,
    "ResourceStridedSliceAssign": strided,
    "IsVariableInitialized": initialized,
}
SPECIAL |= {"CountUpTo": counted, "ResourceCountUpTo": counted, "RefSwitch": switched, "RefMerge": merged}
SPECIAL |= {"RefSelect": selected, "FleetJaxUpdate": stepped, "FleetResourceJaxUpdate": stepped}
SPECIAL |= {name: drawn for name in all_ops() if name.startswith(("Stateful", "RngSkip"))}
SPECIAL |= {"RefEnter": entered, "VariableShape": lambda case: apply_op("VariableShape", case.table())}
SPECIAL |= {"SdcaShrinkL1": lambda case: apply_op("SdcaShrinkL1", [case.table()], l1=0.1, l2=0.3)}
# Made by no function of ours, and never of a variable; the temporary one is a variable of one step.
OUTSIDE = {"RefExit", "RefNextIteration", "DestroyTemporaryVariable"}


def ops_on_variables():
    """The op types that take a variable itself: what is called a handle is that of a queue, a table, ..."""
    for name, spec in sorted(all_ops().items()):
        taken = [a for i, a in enumerate(spec.inputs) if a.is_ref or i in (*spec.updates, *spec.reads)]
        if any(not a.name.endswith("handle") for a in taken) and name not in OUTSIDE:
            yield name


def read_with(function):
    """How a variable is read by something that takes values."""

    def call(case):
        case.table()
        return function(case.variables[0]).op

    return call


READS = {
    "gather": lambda v: tf.gather(v, [4, 1]),
    "gather of a read": lambda v: tf.gather(v.read_value(), [4, 1]),
    "gather of an identity": lambda v: tf.gather(tf.identity(v), [4, 1]),
    "gather of columns": lambda v: tf.gather(v, [1], axis=1),
    "gather_nd": lambda v: tf.gather_nd(v, [[4, 1], [0, 0]]),
    "embedding_lookup": lambda v: tf.nn.embedding_lookup(v, [4, 1]),
    "embedding_lookup_sparse": lambda v: tf.nn.embedding_lookup_sparse(
        v, tf.SparseTensor([[0, 0], [1, 0]], tf.constant([4, 1], tf.int64), [2, 1]), None, combiner="sum"
    ),
    "slice": lambda v: tf.slice(v, [1, 0], [3, 1]),
    "strided slice": lambda v: v[1:5:2, ::-1],
    "row": lambda v: v[3],
    "sum": tf.reduce_sum,
    "arithmetic": lambda v: v * 2.0 + 1.0,
    "identity": tf.identity,
    "shape": tf.shape,
    "initial value": lambda v: v.initialized_value() + 1.0,
    "sparse read": lambda v: v.sparse_read([4, 1]) if hasattr(v, "sparse_read") else tf.gather(v, [4, 1]),
}


@pytest.fixture(scope="module")
def target():
    spec = free_addresses(ps=1, worker=1)
    made = [tf.train.Server(spec, job, 0) for job in ("ps", "worker")]
    yield made[1].target
    for server in made:
        server.stop()


def outcome(make, rows, place, target):
    """What an op gives, and what the variables are then."""
    variable_place, op_place, distributed = PLACES[place]
    config = tf.ConfigProto(device_count={"CPU": 2})
    if distributed:
        tf.Session.reset(target)
    with tf.Graph().as_default() as graph:
        if distributed:  # a variable of the same name, on the task that does not have the right one
            with tf.device(op_place):
                decoy = tf.get_variable("v0", initializer=np.full([rows, 2], -5.0, np.float32))
            with tf.Session(target) as session:
                session.run(decoy.initializer)
    with tf.Graph().as_default() as graph:
        with tf.device(op_place):
            case, op = make(rows, variable_place)
            values = [tf.identity(t) for t in op.outputs]
        with tf.Session(target if distributed else "", graph=graph, config=config) as session:
            session.run(tf.global_variables_initializer())
            found = session.run([op, *values])[1:]
            return found + session.run([v.read_value() for v in case.variables])


def check(make, target):
    for rows in ROWS.values():
        wanted = outcome(make, rows, "here", target)
        for place in list(PLACES)[1:]:
            found = outcome(make, rows, place, target)
            for one, other in zip(found, wanted, strict=True):
                np.testing.assert_allclose(one, other, rtol=1e-6, err_msg=f"{place}, {rows} rows")


@pytest.mark.parametrize("name", list(ops_on_variables()))
def test_an_op_on_a_variable_does_the_same_wherever_the_variable_is(name, target):
    def make(rows, place):
        case = Case(name, rows, place)
        return case, case.call()

    check(make, target)


@pytest.mark.parametrize("kind", ["reference", "resource"])
@pytest.mark.parametrize("name", READS)
def test_a_read_of_a_variable_gives_the_same_wherever_the_variable_is(name, kind, target):
    def make(rows, place):
        case = Case("Assign" if kind == "reference" else "AssignVariableOp", rows, place)
        return case, read_with(READS[name])(case)

    check(make, target)
