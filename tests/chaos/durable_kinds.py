"""Every kind of state on a durable parameter server, each as steps whose values and final state are known exactly."""

import numpy as np

import tensorfleet as tf

PS = "/job:ps/task:0"
_LATE = 1 << 40  # the step of gradients that are never out of date


class Counter:
    """A variable that each step adds one to."""

    def __init__(self, uses_resource):
        self.variable = tf.get_variable(
            "counter", [], tf.int64, tf.zeros_initializer(), use_resource=uses_resource
        )
        self.add = self.variable.assign_add(1)
        self.initializers = [self.variable.initializer]

    def step(self, sess, number):
        assert int(sess.run(self.add)) == number + 1

    def check(self, sess, steps):
        assert int(sess.run(self.variable)) == steps


class GlobalStep(Counter):
    """The global step, as an optimizer counts it."""

    def __init__(self):
        weight = tf.get_variable("weight", [], initializer=tf.zeros_initializer())
        self.variable = tf.train.get_or_create_global_step()
        optimizer = tf.train.GradientDescentOptimizer(0.5)
        self.train = optimizer.minimize(weight, global_step=self.variable)
        self.initializers = [weight.initializer, self.variable.initializer]

    def step(self, sess, number):
        sess.run(self.train)


class Rows:
    """Rows of a large table, of which only those that change are sent."""

    def __init__(self):
        self.table = tf.get_variable("rows", [50_000, 2], tf.int32, tf.zeros_initializer())
        self.at = tf.placeholder(tf.int32, [2])
        self.add = tf.scatter_add(self.table, self.at, np.ones((2, 2), np.int32)).op
        self.initializers = [self.table.initializer]

    def step(self, sess, number):
        sess.run(self.add, {self.at: [number, 40_000]})

    def check(self, sess, steps):
        wanted = np.zeros((50_000, 2), np.int32)
        wanted[:steps] = 1
        wanted[40_000] = steps
        np.testing.assert_array_equal(sess.run(self.table), wanted)


class Slots:
    """The slots of an optimizer. The arithmetic is exact, so a run in one process has the same bits."""

    def __init__(self, name):
        self.name = name
        self.weights = tf.get_variable("weights", initializer=np.linspace(-1, 1, 50, dtype=np.float32))
        loss = tf.reduce_sum(self.weights * (np.arange(50, dtype=np.float32) / 64))
        optimizer = {
            "adam": lambda: tf.train.AdamOptimizer(1 / 128, 0.5, 0.5, 1 / 1024),
            "momentum": lambda: tf.train.MomentumOptimizer(1 / 128, 0.5),
        }[name]()
        self.train = optimizer.minimize(loss)
        self.values = [self.weights, *optimizer.variables()]
        self.initializers = [tf.variables_initializer(self.values)]

    def step(self, sess, number):
        sess.run(self.train)

    def check(self, sess, steps):
        with tf.Graph().as_default(), tf.Session() as one_process:
            same = Slots(self.name)
            one_process.run(same.initializers)
            for _ in range(steps):
                one_process.run(same.train)
            wanted = one_process.run(same.values)
        for value, other in zip(sess.run(self.values), wanted, strict=True):
            np.testing.assert_array_equal(value, other)


class Queue:
    """A queue: a step puts two elements in and takes one out, or the other way round."""

    def __init__(self, kind):
        self.is_shuffled = kind == "shuffling"
        self.queue = {
            "fifo": lambda: tf.FIFOQueue(1000, tf.int64, [()], shared_name="queue"),
            "shuffling": lambda: tf.RandomShuffleQueue(1000, 0, tf.int64, [()], shared_name="queue"),
            "padding": lambda: tf.PaddingFIFOQueue(1000, tf.int64, [()], shared_name="queue"),
        }[kind]()
        self.given = tf.placeholder(tf.int64, [2])
        self.put = self.queue.enqueue_many(self.given)
        self.takes = [self.queue.dequeue_many(1), self.queue.dequeue_many(3)]
        self.taken = []
        self.initializers = []

    def step(self, sess, number):
        sess.run(self.put, {self.given: [2 * number, 2 * number + 1]})
        self.taken += sess.run(self.takes[number % 2]).tolist()

    def check(self, sess, steps):
        left = int(sess.run(self.queue.size()))
        assert left == steps % 2
        values = [*self.taken, *sess.run(self.queue.dequeue_many(left)).tolist()]
        assert (sorted(values) if self.is_shuffled else values) == list(range(2 * steps))


class PriorityQueue:
    """A queue that gives the smallest first: half of its elements stay."""

    def __init__(self):
        self.queue = tf.PriorityQueue(1000, [tf.int64], [()], shared_name="queue")
        self.given = tf.placeholder(tf.int64, [2])
        self.put = self.queue.enqueue_many([self.given, self.given])
        self.take = self.queue.dequeue()
        self.taken = []
        self.initializers = []

    def step(self, sess, number):
        sess.run(self.put, {self.given: [1000 - number, number]})
        self.taken.append(int(sess.run(self.take)[1]))

    def check(self, sess, steps):
        assert self.taken == list(range(steps))
        _, rest = sess.run(self.queue.dequeue_many(steps))
        assert int(sess.run(self.queue.size())) == 0
        assert rest.tolist() == list(range(1001 - steps, 1001))


class Accumulator:
    """The mean of two gradients, dense or sparse."""

    def __init__(self, is_sparse):
        self.is_sparse = is_sparse
        self.given = tf.placeholder(tf.float64, [1, 1])
        if is_sparse:
            sums = tf.SparseConditionalAccumulator(tf.float64, [9, 1], shared_name="sums")
            self.give = sums.apply_grad([3], self.given, local_step=_LATE)
            self.mean = sums.take_grad(2)[1]
        else:
            sums = tf.ConditionalAccumulator(tf.float64, [1, 1], shared_name="sums")
            self.give, self.mean = sums.apply_grad(self.given, local_step=_LATE), sums.take_grad(2)
        self.count = sums.num_accumulated()
        self.initializers = []

    def step(self, sess, number):
        sess.run(self.give, {self.given: [[number]]})
        sess.run(self.give, {self.given: [[number + 0.5]]})
        assert sess.run(self.mean).tolist() == [[number + 0.25]]

    def check(self, sess, steps):
        assert int(sess.run(self.count)) == 0


class Table:
    """A lookup table: a step inserts a key, looks it up, and removes the one before."""

    def __init__(self, is_dense):
        if is_dense:
            self.table = tf.contrib.lookup.MutableDenseHashTable(
                tf.int64, tf.int64, -1, empty_key=-1, deleted_key=-2, initial_num_buckets=4, name="table"
            )
        else:
            self.table = tf.contrib.lookup.MutableHashTable(tf.int64, tf.int64, -1, name="table")
        self.key = tf.placeholder(tf.int64, [1])
        self.insert = self.table.insert(self.key, self.key * 10)
        self.look_up, self.remove = self.table.lookup(self.key), self.table.remove(self.key)
        self.initializers = []

    def step(self, sess, number):
        sess.run(self.insert, {self.key: [number]})
        assert sess.run(self.look_up, {self.key: [number]}).tolist() == [number * 10]
        if number % 2:
            sess.run(self.remove, {self.key: [number - 1]})

    def check(self, sess, steps):
        kept = [n for n in range(steps) if n % 2 or n == steps - 1]
        wanted = np.array(kept, np.int64)
        assert int(sess.run(self.table.size())) == len(kept)
        given = sess.run(self.table.lookup(tf.constant(np.arange(steps))))
        np.testing.assert_array_equal(given[wanted], wanted * 10)
        assert (np.delete(given, wanted) == -1).all()


class RandomStream:
    """Seeded random numbers: the same as in one process, whatever server draws them."""

    def __init__(self):
        self.sum = tf.get_variable("sum", [3], initializer=tf.zeros_initializer())
        tf.set_random_seed(3)
        self.draw = tf.assign_add(self.sum, tf.random_uniform([3], seed=7))
        self.initializers = [self.sum.initializer]
        self.values = []

    def step(self, sess, number):
        self.values.append(sess.run(self.draw).tolist())

    def check(self, sess, steps):
        with tf.Graph().as_default(), tf.Session() as one_process:
            same = RandomStream()
            one_process.run(same.initializers)
            wanted = [one_process.run(same.draw).tolist() for _ in range(steps)]
        assert self.values == wanted
        assert sess.run(self.sum).tolist() == wanted[-1]


KINDS = {
    "reference variable": lambda: Counter(False),
    "resource variable": lambda: Counter(True),
    "global step": GlobalStep,
    "rows": Rows,
    "slots of Adam": lambda: Slots("adam"),
    "slots of momentum": lambda: Slots("momentum"),
    "first-in first-out queue": lambda: Queue("fifo"),
    "shuffling queue": lambda: Queue("shuffling"),
    "padding queue": lambda: Queue("padding"),
    "priority queue": PriorityQueue,
    "accumulator": lambda: Accumulator(False),
    "sparse accumulator": lambda: Accumulator(True),
    "table": lambda: Table(False),
    "dense table": lambda: Table(True),
    "random stream": RandomStream,
}
