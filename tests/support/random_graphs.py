"""Random programs over several tasks: state of every kind, control edges, host ops, branches and loops.

A program is the same wherever its operations are, so a cluster must give the values that one process gives. For that
its values are whole numbers small enough for float32, its random ops have seeds, and whatever uses a state (a variable,
a queue, a table) waits for all that used it before.
"""

from __future__ import annotations

import contextlib
import random

import numpy as np

import tensorfleet as tf
from tests.support.random_steps import MODULUS, ROWS, WIDTH, VariableSteps, whole

TASKS = ("/job:ps/task:0", "/job:ps/task:1", "/job:worker/task:0")


class Program(VariableSteps):
    """One random program. `tasks` are the devices to choose from, or None for one process; `own` is the session's."""

    def __init__(self, seed: int, tasks=None, own: str | None = None) -> None:
        self.lot = random.Random(seed)
        self.tasks, self.own = tasks, own
        self.values: list = []  # float32 vectors of WIDTH whole numbers
        self.last: dict[str, list] = {}  # for each state the operations that used it last
        self.pins: set = set()  # all the operations that were in `last`
        self.state: dict[str, object] = {}
        self.feeds = {}
        self.steps: list[str] = []
        self._begin()
        for _ in range(self.lot.randint(5, 28)):
            self.add()

    # -- places and orders --

    def place(self, at: int | None = None):
        """A device for what comes next."""
        drawn = self.lot.randrange(len(TASKS)) if at is None else at
        return tf.device(None if self.tasks is None else self.tasks[drawn])

    @contextlib.contextmanager
    def somewhere(self):
        """Any device, and now and then a control edge from anything."""
        with self.place(), contextlib.ExitStack() as stack:
            if self.lot.random() < 0.35:
                waited = [self.lot.choice(self.values) for _ in range(self.lot.randint(1, 2))]
                if self.lot.random() < 0.3:
                    with self.place():
                        waited = [tf.group(*waited)]
                stack.enter_context(tf.control_dependencies(waited))
            yield

    @contextlib.contextmanager
    def using(self, name: str):
        """After all that used a state before; what is then given to `used` is what the next one waits for."""
        with self.somewhere(), tf.control_dependencies(self.last[name]):
            yield self.state[name]

    def used(self, name: str, *ops) -> None:
        self.last[name] = list(ops)
        self.pins.update(getattr(op, "op", op) for op in ops)

    def keep(self, tensor) -> None:
        tensor = tf.reshape(tensor, [WIDTH])
        self.values.append(tensor)

    def some(self):
        return self.lot.choice(self.values)

    # -- what there is at first --

    def _begin(self) -> None:
        lot = self.lot
        for _ in range(2):
            with self.place():
                self.values.append(tf.constant([float(lot.randrange(89)) for _ in range(WIDTH)]))
        with self.place():
            fed = tf.placeholder(tf.float32, [WIDTH])
        self.feeds[fed] = [float(lot.randrange(89)) for _ in range(WIDTH)]
        self.values.append(fed)
        for kind in ("reference", "resource"):
            for size in ("small", "large"):
                for n in range(lot.randint(0, 2)):
                    fixed = "_fixed" if lot.random() < 0.25 else ""
                    self._variable(f"{kind}_{size}_{n}{fixed}", kind == "resource", size == "large")
        makers = [
            self._queue,
            self._table,
            self._accumulator,
            self._counter,
            self._words,
            self._iterator,
            self._text,
        ]
        for n, maker in enumerate(lot.sample(makers, lot.randint(0, len(makers)))):
            maker(f"{maker.__name__.strip('_')}_{n}")

    def _variable(self, name: str, resource: bool, large: bool) -> None:
        shape = [ROWS, WIDTH] if large else [5, WIDTH]
        with self.place():
            start = np.arange(np.prod(shape), dtype=np.float32).reshape(shape) % 89
            self.state[name] = tf.get_variable(name, initializer=start, use_resource=resource)
        self.last[name] = []

    def _queue(self, name: str) -> None:
        with self.place():
            self.state[name] = tf.FIFOQueue(100, tf.float32, [WIDTH], shared_name=name)
        self.last[name] = []

    def _table(self, name: str) -> None:
        with self.somewhere():
            self.state[name] = tf.contrib.lookup.MutableHashTable(tf.int64, tf.float32, -1.0)
        self.last[name] = []

    def _words(self, name: str) -> None:
        with self.place():
            self.state[name] = tf.contrib.lookup.index_table_from_tensor([str(i) for i in range(0, 89, 3)])
        self.last[name] = []

    def _accumulator(self, name: str) -> None:
        with self.place():
            self.state[name] = tf.ConditionalAccumulator(tf.float32, [WIDTH], shared_name=name)
        self.last[name] = []

    def _counter(self, name: str) -> None:
        with self.place():
            self.state[name] = tf.get_variable(name, initializer=0, use_resource=False)
        self.last[name] = []

    # -- steps --

    def add(self) -> None:
        steps = [self._arithmetic] * 3 + [self._host, self._random, self._python, self._varying]
        steps += [self._branch, self._loop, self._map, self._remake, self._late, self._checked, self._slope]
        if self.state:
            steps += [self._use] * 14
        if len(self._names()) > 1:
            steps += [self._two] * 3
        step = self.lot.choice(steps)
        self.steps.append(step.__name__)
        step()

    def _arithmetic(self) -> None:
        a, b = self.some(), self.some()
        how = self.lot.randrange(6)
        with self.somewhere():
            result = [
                lambda: a + b,
                lambda: a * b,
                lambda: a - b,
                lambda: tf.maximum(a, tf.reverse(b, [0])),
                lambda: tf.cumsum(a) + 1.0,
                lambda: tf.tile(tf.reshape(tf.reduce_sum(a), [1]), [WIDTH]) - b,
            ][how]()
            self.keep(whole(result))

    def _host(self) -> None:
        a, b = self.some(), self.some()
        with self.somewhere():
            text = tf.string_join(
                [tf.as_string(tf.cast(a, tf.int32)), tf.as_string(tf.cast(b, tf.int64))], "-"
            )
        with self.somewhere():
            self.keep(tf.to_float(tf.string_to_hash_bucket_fast(text, 89)))

    def _random(self) -> None:
        seed = self.lot.randrange(1000)
        with self.somewhere():
            self.keep(tf.to_float(tf.random_uniform([WIDTH], maxval=89, dtype=tf.int32, seed=seed)))

    def _python(self) -> None:
        a = self.some()
        at = None if self.tasks is None else self.tasks.index(self.own)
        with self.place(at if at is not None else 0):
            self.keep(tf.py_func(lambda x: (x * 3 + 1).astype(np.float32) % np.float32(89), [a], tf.float32))
            self.values[-1].set_shape([WIDTH])

    def _varying(self) -> None:
        a, b = self.some(), self.some()
        with self.somewhere():
            if self.lot.random() < 0.5:
                kept = tf.boolean_mask(a, a > b)
            else:
                kept = tf.to_float(tf.unique(tf.cast(a, tf.int32))[0])
        with self.somewhere():
            self.keep(whole(tf.reduce_sum(kept) + b))

    def _remake(self) -> None:
        """A stateful handle named anew, perhaps after other things."""
        a = self.some()
        with self.somewhere():
            name = f"stack_{len(self.values)}"
            queue = tf.FIFOQueue(10, tf.float32, [WIDTH], shared_name=name)
            with tf.control_dependencies([queue.enqueue(a)]):
                taken = queue.dequeue()
        with self.somewhere():
            self.keep(whole(taken + 1.0))

    def _late(self) -> None:
        """A state that is made late, after whatever another one waits for."""
        maker = self.lot.choice([self._queue, self._table, self._accumulator])
        name = f"{maker.__name__.strip('_')}_late{len(self.steps)}"
        used = self.lot.choice(sorted(self.last)) if self.last else None
        with tf.control_dependencies(self.last[used] if used else []):
            maker(name)
        self._use(name)

    def _checked(self) -> None:
        a, b = self.some(), self.some()
        with self.somewhere():
            test = tf.Assert(tf.reduce_all(a < 1000.0), [a, b])
        with self.somewhere(), tf.control_dependencies([test]):
            both = tf.tuple([a, b], control_inputs=[test])
        with self.somewhere():
            self.keep(whole(both[0] - both[1]))

    def _slope(self) -> None:
        """The gradient of something with whole derivatives, made where the operations are or anywhere."""
        a, b, c = self.some(), self.some(), self.some()
        with self.place():
            y = a * b + tf.gather(tf.identity(b), [1, 0, 3, 3]) * tf.stop_gradient(c)
        with self.somewhere():
            z = tf.reduce_sum(tf.where(a > c, y, y + y))
        with self.somewhere():
            slope = tf.gradients(z, b, colocate_gradients_with_ops=self.lot.random() < 0.5)[0]
            self.keep(whole(a if slope is None else tf.convert_to_tensor(slope)))

    def _map(self) -> None:
        a, b = self.some(), self.some()
        with self.somewhere():
            if self.lot.random() < 0.5:
                result = tf.map_fn(lambda x: tf.floormod(x * 5.0 + tf.reduce_max(b), MODULUS), a)
            else:
                result = tf.scan(lambda s, x: tf.floormod(s + x, MODULUS), a)
            self.keep(result)

    def _use(self, name: str | None = None) -> None:
        name = name or self.lot.choice(sorted(self.state))
        kind = name.partition("_")[0]
        self.steps[-1] += f" {name}"
        getattr(self, f"_use_{kind}")(name)

    def _iterator(self, name: str) -> None:
        with self.place():
            numbers = tf.data.Dataset.range(1000).map(lambda i: tf.to_float(i % 80) + tf.zeros([WIDTH]))
            self.state[name] = numbers.make_one_shot_iterator()
        self.last[name] = []

    def _use_iterator(self, name: str) -> None:
        with self.using(name) as iterator:
            taken = iterator.get_next()
            self.keep(whole(taken + self.some()))
        self.used(name, self.values[-1])

    def _text(self, name: str) -> None:
        with self.place():
            self.state[name] = tf.get_variable(
                name, initializer=tf.constant(["x"] * WIDTH), use_resource=False
            )
        self.last[name] = []

    def _use_text(self, name: str) -> None:
        a = self.some()
        with self.using(name) as v:
            with tf.colocate_with(v.op):
                old = v.read_value()
            with self.place():
                new = tf.substr(
                    tf.string_join([tf.as_string(tf.cast(a, tf.int32)), old]), [0] * WIDTH, [2] * WIDTH
                )
            new = v.assign(new)
            with self.place():
                copy = tf.to_float(tf.string_to_hash_bucket_fast(new, 89))
        self.used(name, copy)
        self.keep(copy)

    def _use_counter(self, name: str) -> None:
        with self.using(name) as v:
            counted = v.count_up_to(1000) if self.lot.random() < 0.5 else tf.assign_add(v, 2)
            copy = whole(tf.to_float(counted))
        self.used(name, copy)
        with self.somewhere():
            self.keep(copy + tf.zeros([WIDTH]))

    def _use_queue(self, name: str) -> None:
        a = self.some()
        with self.using(name) as queue:
            put = queue.enqueue(a)
        self.used(name, put)
        if self.lot.random() < 0.7:
            with self.using(name) as queue:
                taken = queue.dequeue()
                self.keep(whole(taken + queue_size(queue, taken)))
            self.used(name, self.values[-1])

    def _use_table(self, name: str) -> None:
        keys, a = tf.cast(self.some(), tf.int64), self.some()
        how = self.lot.randrange(3)
        with self.using(name) as table:
            if how == 0:
                done = table.insert(keys, keyed(keys))
                with tf.control_dependencies([done]):
                    self.keep(tf.identity(a))
            elif how == 1:
                self.keep(whole(table.lookup(keys) + a))
            else:
                self.keep(whole(tf.to_float(table.size()) + a))
        self.used(name, self.values[-1])

    def _use_words(self, name: str) -> None:
        a = self.some()
        with self.somewhere():
            words = tf.as_string(tf.cast(a, tf.int32))
        with self.using(name) as table:
            self.keep(whole(tf.to_float(table.lookup(words)) + 90.0))

    def _use_accumulator(self, name: str) -> None:
        a = self.some()
        with self.using(name) as accumulator:
            given = accumulator.apply_grad(a, local_step=10**6)
        self.used(name, given)
        with self.using(name) as accumulator:
            taken = accumulator.take_grad(1)
            self.keep(whole(taken))
        self.used(name, self.values[-1])

    def _use_reference(self, name: str) -> None:
        self._use_variable(name)

    def _use_resource(self, name: str) -> None:
        self._use_variable(name)

    # -- running --

    def initializer(self):
        return tf.group(tf.global_variables_initializer(), tf.tables_initializer())

    def requests(self, lot: random.Random) -> list:
        """What to fetch in each of some runs."""
        some = [lot.sample(self.values, lot.randint(1, min(4, len(self.values)))) for _ in range(2)]
        # Not one that pins an order: an operation that takes a fed value does not wait for whatever made it.
        free = [v for v in self.values[2:] if v.op not in self.pins]
        fed = {lot.choice(free): np.full(WIDTH, 7.0, np.float32)}
        plain = self.feeds
        return [
            (some[0], plain),
            (some[1], plain),
            (self.values, plain),
            (some[1], plain | fed),
            (some[0], plain),
        ]


def keyed(keys):
    """A value that a key always has: the order of equal keys in one insert is left open."""
    return tf.to_float(keys % 50)


def queue_size(queue, after):
    with tf.control_dependencies([after]):
        return tf.to_float(queue.size())


def outcome(seed: int, target: str = "", tasks=None, own: str | None = None) -> tuple[list, Program]:
    """All the values that a program gives in a few runs, and what its state is in the end."""
    with tf.Graph().as_default() as graph:
        graph.seed = seed
        program = Program(seed, tasks, own)
        initial = program.initializer()
        requests = program.requests(random.Random(seed))
        variables = tf.global_variables()
        limit = tf.RunOptions(timeout_in_ms=60_000)
        results = []
        with tf.Session(target) as session:
            session.run(initial, options=limit)
            for request, feeds in requests:
                results += session.run(request, feeds, options=limit)
            results += session.run(variables, options=limit)
        return results, program
