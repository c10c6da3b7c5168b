"""What random programs (random_graphs.py) do to variables, and in branches and loops."""

from __future__ import annotations

import tensorfleet as tf

WIDTH = 4
ROWS = 1 << 13  # with WIDTH columns as many elements as a large variable has
MODULUS = 89.0


def whole(x):
    """A value back in the range that products of two stay exact in."""
    return tf.floormod(x, MODULUS)


def beside(v):
    """The value of a variable, read by its own task."""
    with tf.colocate_with(v.op):
        return v.read_value()


class VariableSteps:
    """The steps of a `Program` on variables, and with branches and loops."""

    def _use_variable(self, name: str) -> None:
        a, rows = self.some(), self._rows(name)
        how = self._read if "fixed" in name else self.lot.choice([self._read, self._write])
        with self.using(name) as v:
            got = how(v, a, rows)
            if self.lot.random() < 0.5:
                copy = whole(got + 0.0)
            else:  # the copy that pins the order may be made elsewhere
                with self.place():
                    copy = whole(got + 0.0)
        self.used(name, copy)
        self.keep(copy)

    def _rows(self, name: str) -> list[int]:
        return [self.lot.randrange(ROWS if "large" in name else 5) for _ in range(3)]

    def _read(self, v, a, rows):
        how = self.lot.randrange(7)
        # A reference that another task gets is sent when the step begins: only a read can wait for an update.
        here = self.place()
        if "reference" in v.op.name and "fixed" not in v.op.name:
            here = tf.colocate_with(v.op)
        with here:
            return [
                lambda: tf.reduce_sum(tf.gather(v, rows), 0),
                lambda: tf.gather(v.read_value(), rows)[1],
                lambda: tf.nn.embedding_lookup(v, rows)[2],
                lambda: v[rows[0]],
                lambda: tf.gather_nd(v, [rows[0]]),
                lambda: tf.slice(v, [rows[1], 0], [1, -1]),
                lambda: tf.reduce_max(v.read_value(), 0),
            ][how]()

    def _write(self, v, a, rows):
        how = self.lot.randrange(10)
        row = tf.reshape(a, [1, WIDTH])
        result = [
            lambda: v.assign(tf.floormod(beside(v) + a, MODULUS)),
            lambda: v.assign_add(tf.tile(row, [int(v.shape[0]), 1])),
            lambda: v.assign_sub(tf.zeros(v.shape) + a),
            lambda: tf.scatter_add(v, rows[:1], row),
            lambda: tf.scatter_update(v, rows[:1], row),
            lambda: tf.scatter_sub(v, rows[:1], row),
            lambda: tf.scatter_nd_add(v, [[rows[0]]], row),
            lambda: v[rows[0]].assign(a),
            lambda: self._descend(v, a, rows),
            lambda: self._chained(v, a, rows),
        ][how]()
        # Sums of many steps must stay exact: what is read back is reduced.
        if self.lot.random() < 0.5:
            with tf.control_dependencies([result]), tf.colocate_with(v.op):
                return tf.gather(v, rows)[0]
        return result[rows[0]]

    def _descend(self, v, a, rows):
        """A step of an optimizer, by rows or as a whole."""
        lot = self.lot
        with self.place():
            source = beside(v) if lot.random() < 0.5 else v
            taken = tf.nn.embedding_lookup(v, rows[:2]) if source is v else source[:2]
            loss = tf.reduce_sum(taken * a)
        kinds = [tf.train.GradientDescentOptimizer(1.0), tf.train.MomentumOptimizer(1.0, 1.0)]
        step = kinds[0].minimize(loss, var_list=[v])
        with tf.control_dependencies([step]):
            return beside(v)

    def _chained(self, v, a, rows):
        """An update of what another update gives, with a value that comes between from elsewhere."""
        row = tf.reshape(a, [1, WIDTH])
        first = tf.scatter_add(v, rows[:1], row)
        if not first.dtype._is_ref_dtype:
            return first
        with self.place(), tf.control_dependencies([first]):
            more = whole(row + 1.0)
        return tf.scatter_sub(first, rows[1:2], more)

    # -- branches and loops --

    def _branch(self) -> None:
        a, b, c = self.some(), self.some(), self.some()
        name = self._changeable()
        pinned = self.using(name) if name else self.somewhere()
        with pinned as v:
            with self.place():
                test = tf.reduce_sum(a) < tf.reduce_sum(b)

            def first():
                with self.place():
                    if v is None:
                        return whole(a * 2.0 + c)
                    with tf.control_dependencies([tf.scatter_add(v, [1], tf.reshape(c, [1, WIDTH]))]):
                        return whole(a + 1.0)

            def second():
                with self.place():
                    return whole(b + c)

            chosen = tf.cond(test, first, second)
            chosen = tf.identity(chosen)
        if name:
            self.used(name, chosen)
        self.keep(chosen)

    def _loop(self) -> None:
        a, b = self.some(), self.some()
        name = self._changeable()
        pinned = self.using(name) if name else self.somewhere()
        turns = self.lot.randint(0, 3)
        with pinned as v:

            def body(i, x):
                with self.place():
                    if v is None:
                        return i + 1, whole(x * 3.0 + b)
                    change = tf.scatter_add(v, [2], tf.reshape(x, [1, WIDTH]))
                    with tf.control_dependencies([change]), self.place():
                        return i + 1, whole(x + b)

            start = whole(a + 0.0)
            out = tf.while_loop(lambda i, _: i < turns, body, [0, start], parallel_iterations=1)[1]
            out = tf.identity(out)
        if name:
            self.used(name, out)
        self.keep(out)

    def _two(self) -> None:
        """A branch or a loop that changes two variables, which may be those of two tasks."""
        one, two = self.lot.sample(self._names(), 2)
        a, b = self.some(), self.some()
        turns = self.lot.randint(0, 3)
        with self.using(one) as v, tf.control_dependencies(self.last[two]):
            w = self.state[two]

            def change(x):
                with self.place():
                    first = tf.scatter_add(v, [0], tf.reshape(x, [1, WIDTH]))
                    with tf.control_dependencies([first]):
                        second = tf.scatter_sub(w, [3], tf.reshape(x, [1, WIDTH]))
                with self.place(), tf.control_dependencies([first, second]):
                    return whole(x + b)

            if self.lot.random() < 0.5:
                with self.place():
                    test = tf.reduce_max(a) < tf.reduce_max(b)
                out = tf.cond(test, lambda: change(a), lambda: whole(b + 1.0))
            else:
                out = tf.while_loop(
                    lambda i, _: i < turns, lambda i, x: (i + 1, change(x)), [0, a], parallel_iterations=1
                )[1]
            out = tf.identity(out)
        self.used(one, out)
        self.used(two, out)
        self.keep(out)

    def _names(self) -> list[str]:
        return [n for n in sorted(self.state) if n.startswith("re") and "fixed" not in n]

    def _changeable(self) -> str | None:
        names = self._names()
        return self.lot.choice(names) if names and self.lot.random() < 0.5 else None
