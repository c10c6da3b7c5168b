"""`tf.contrib.factorization.KMeans`: the graph that finds cluster centers, batch by batch."""

from __future__ import annotations

from typing import Any

from tensorfleet.base import dtypes
from tensorfleet.base.naming import export, find
from tensorfleet.graph.apply import apply, apply_list
from tensorfleet.graph.operation import Tensor
from tensorfleet.graph.scopes import control_dependencies
from tensorfleet.ops.array.basic import group, no_op
from tensorfleet.ops.random.ops import get_seed

SQUARED_EUCLIDEAN_DISTANCE = "squared_euclidean"
COSINE_DISTANCE = "cosine"
RANDOM_INIT = "random"
KMEANS_PLUS_PLUS_INIT = "kmeans_plus_plus"
KMC2_INIT = "kmc2"
CLUSTERS_VAR_NAME = "clusters"
# Added to the number of points of a cluster, which may have none.
_NOT_ZERO = 1e-6


@export("contrib.factorization.KMeans")
class KMeans:
    """k-means over batches of points, each a matrix; `training_graph` gives what to run.

    With `use_mini_batch`, a center is the mean of all points that it was ever nearest to, or, with several steps for an
    iteration, of those since centers were last moved. Without, it is the mean of those of the batch.
    """

    def __init__(
        self,
        inputs: Any,
        num_clusters: Any,
        initial_clusters: Any = RANDOM_INIT,
        distance_metric: str = SQUARED_EUCLIDEAN_DISTANCE,
        use_mini_batch: bool = False,
        mini_batch_steps_per_iteration: int = 1,
        random_seed: int | None = 0,
        kmeans_plus_plus_num_retries: int = 2,
        kmc2_chain_length: int = 200,
    ) -> None:
        known = (RANDOM_INIT, KMEANS_PLUS_PLUS_INIT, KMC2_INIT)
        if isinstance(initial_clusters, str) and initial_clusters not in known:
            raise ValueError(f"Unsupported initialization algorithm '{initial_clusters}'")
        if distance_metric not in (SQUARED_EUCLIDEAN_DISTANCE, COSINE_DISTANCE):
            raise ValueError(f"Unsupported distance metric '{distance_metric}'")
        self._inputs = [
            find("convert_to_tensor")(i) for i in (inputs if isinstance(inputs, list) else [inputs])
        ]
        self._num_clusters = num_clusters
        self._initial_clusters = initial_clusters
        self._cosine = distance_metric == COSINE_DISTANCE
        self._use_mini_batch = use_mini_batch
        self._steps = int(mini_batch_steps_per_iteration)
        self._seed = get_seed(random_seed)[0] or 0
        self._retries = kmeans_plus_plus_num_retries
        self._chain = kmc2_chain_length

    def training_graph(self) -> tuple:
        """(distances to all centers, nearest centers, distances to them), each a tuple with one for each batch; whether
        there are centers, and the operations that choose them and that train them."""
        initial, count = self._initial_clusters, self._num_clusters
        if isinstance(initial, str) or callable(initial):
            count = find("convert_to_tensor")(count)
        else:
            initial = find("convert_to_tensor")(initial)
            count = find("shape")(initial)[0]
        state = _State(count, self._use_mini_batch, self._steps)
        choose = _Choice(self, initial, count, state).op()
        points, centers = self._inputs, state.centers
        if self._cosine:
            points = [_unit(p) for p in points]
            if not self._centers_are_unit():
                centers = _unit(centers)
        distances, nearest, places = self._nearest(points, centers)
        if self._use_mini_batch:
            with control_dependencies([self._moved(state)]):
                train = _train_on_batches(points, places, state)
        else:
            train = self._train_on_all(points, count, places, state)
        return distances, places, nearest, state.initialized, choose, train

    def _centers_are_unit(self) -> bool:
        """Whether the variable has centers of length one, as a cosine needs."""
        return self._cosine and (not self._use_mini_batch or self._steps > 1)

    def _nearest(self, points: list, centers: Any) -> tuple[tuple, tuple, tuple]:
        distances, nearest, places = [], [], []
        for p in points:
            product = find("matmul")(p, centers, transpose_b=True)
            if self._cosine:
                distances.append(1 - product)
            else:
                squares = find("transpose")(_squares(centers))
                distances.append(_squares(p) - 2 * product + squares)
            near = _unit(centers) if self._cosine and not self._centers_are_unit() else centers
            index, distance = apply_list("NearestNeighbors", p, near, find("constant")(1, dtypes.int64))
            # Half the squared distance of two unit vectors is one minus their cosine.
            nearest.append(find("squeeze")(distance * 0.5 if self._cosine else distance, [-1]))
            places.append(find("squeeze")(index, [-1]))
        return tuple(distances), tuple(nearest), tuple(places)

    def _moved(self, state: _State) -> Any:
        """Moves the centers when an iteration of several steps ends."""
        if state.updated is state.centers:
            return no_op()
        left = state.steps_left

        def move() -> Tensor:
            with control_dependencies([left.assign(self._steps - 1)]):
                centers = _unit(state.updated) if self._cosine else find("identity")(state.updated)
            with control_dependencies([find("assign")(state.centers, centers, validate_shape=False)]):
                emptied = find("assign")(state.counts, find("zeros_like")(state.counts))
            with control_dependencies([emptied]):
                return find("identity")(left)

        return find("cond")(left <= 0, move, lambda: find("identity")(find("assign_sub")(left, 1)))

    def _train_on_all(self, points: list, count: Any, places: tuple, state: _State) -> Any:
        sums, counts = [], []
        for p, place in zip(points, places, strict=True):
            sums.append(find("unsorted_segment_sum")(p, place, count))
            ones = find("ones")([find("shape")(p)[0], 1], p.dtype)
            counts.append(find("unsorted_segment_sum")(ones, place, count))
        centers = find("add_n")(sums) / (find("add_n")(counts) + _NOT_ZERO)
        centers = _unit(centers) if self._cosine else centers
        return find("assign")(state.centers, centers, validate_shape=False)


class _State:
    """The variables: the centers, how many points each has, and whether they are all chosen."""

    def __init__(self, count: Any, mini_batch: bool, steps: int) -> None:
        variable = find("Variable")
        none = find("placeholder_with_default")(find("constant")([], dtypes.float32), shape=None)
        several = mini_batch and steps > 1
        self.centers = variable(none, name=CLUSTERS_VAR_NAME, validate_shape=False)
        self.initialized = variable(False, dtype=dtypes.bool_, name="initialized")
        self.updated: Any = self.centers
        self.counts: Any = None
        self.steps_left: Any = None
        if several:
            self.updated = variable(none, name="clusters_updated", validate_shape=False)
            self.steps_left = variable(steps, dtype=dtypes.int64, name="update_in_steps")
        if mini_batch:
            fill = find("zeros" if several else "ones")
            self.counts = variable(fill([count], dtypes.int64))


def _unit(rows: Any) -> Tensor:
    return find("nn.l2_normalize")(rows, 1)


def _squares(rows: Any) -> Tensor:
    return find("reduce_sum")(find("square")(rows), 1, keepdims=True)


def _train_on_batches(points: list, places: tuple, state: _State) -> Any:
    """Each center moves to the mean of the points it had and those it gets."""
    updates = []
    for p, place in zip(points, places, strict=True):
        ids, position = find("unique")(find("reshape")(place, [-1]))
        size = find("size")(ids)
        had, centers = find("gather")(state.counts, ids), find("gather")(state.updated, ids)
        gets = find("unsorted_segment_sum")(find("ones_like")(position, dtypes.int64), position, size)
        sums = find("unsorted_segment_sum")(p, position, size)
        column = find("cast")(find("expand_dims")(gets, 1), p.dtype)
        rate = find("reciprocal")(find("cast")(find("expand_dims")(had + gets, 1), p.dtype))
        change = (sums - column * centers) * rate
        updates.append(find("scatter_add")(state.counts, ids, gets))
        updates.append(find("scatter_add")(state.updated, ids, change))
    return group(*updates)


class _Choice:
    """Chooses centers to start from; with fewer points than centers, the next batch gives the rest."""

    def __init__(self, kmeans: KMeans, initial: Any, count: Any, state: _State) -> None:
        self._kmeans, self._initial, self._count, self._state = kmeans, initial, count, state
        self._inputs = kmeans._inputs
        self._chosen = find("shape")(state.centers)[0]
        self._missing = count - self._chosen
        self._points = find("add_n")([find("shape")(i)[0] for i in self._inputs])

    def op(self) -> Any:
        """The operation that chooses centers, until there are enough."""
        done = find("equal")(self._missing, 0)
        return find("cond")(
            done, lambda: group(find("assert_equal")(self._state.initialized, True)), self._choose
        )

    def _choose(self) -> Any:
        with control_dependencies([find("assert_positive")(self._missing)]):
            by_chain = isinstance(self._initial, str) and self._initial == KMC2_INIT
            missing = self._chain() if by_chain else self._add(self._new())
            full = find("equal")(missing, 0)
            return find("cond")(full, lambda: group(self._state.initialized.assign(True)), no_op)

    def _add(self, new: Tensor) -> Tensor:
        """Adds centers; how many are missing then."""
        new = _unit(new) if self._kmeans._cosine else new
        some = find("equal")(self._chosen, 0)
        centers = find("cond")(some, lambda: new, lambda: find("concat")([self._state.centers, new], 0))
        return self._count - find("shape")(self._assigned(centers))[0]

    def _assigned(self, centers: Tensor) -> Tensor:
        result = find("assign")(self._state.centers, centers, validate_shape=False)
        if self._state.updated is not self._state.centers:
            result = find("assign")(self._state.updated, result, validate_shape=False)
        return result

    def _new(self) -> Tensor:
        """Centers that are points of the batches, those that a function gives, or those given."""
        initial = self._initial
        if callable(initial):
            return initial(self._inputs, self._missing)
        if not isinstance(initial, str):
            same = find("assert_equal")(self._missing, find("shape")(initial)[0])
            with control_dependencies([same]):
                return find("identity")(initial)
        if initial == RANDOM_INIT:
            every = find("less_equal")(self._points, self._missing)
            return find("cond")(every, lambda: find("concat")(self._inputs, 0), self._random)
        with control_dependencies([find("assert_greater_equal")(self._points, self._missing)]):
            points = _unit(self._inputs[0]) if self._kmeans._cosine else self._inputs[0]
            missing, long = find("cast")(self._missing, dtypes.int64), dtypes.int64
            seed, retries = (find("constant")(n, long) for n in (self._kmeans._seed, self._kmeans._retries))
            return apply("KmeansPlusPlusInitialization", points, missing, seed, retries)

    def _random(self) -> Tensor:
        places = find("random_uniform")(
            find("reshape")(self._missing, [-1]),
            minval=0,
            maxval=find("cast")(self._points, dtypes.int64),
            seed=self._kmeans._seed,
            dtype=dtypes.int64,
        )
        return find("nn.embedding_lookup")(self._inputs, places, partition_strategy="div")

    def _chain(self) -> Tensor:
        """Centers by Markov chains, each over some of the points of the first batch; how many are missing then."""
        points, length = self._inputs[0], self._kmeans._chain
        most = find("cast")(find("shape")(points)[0] / length, dtypes.int32)
        wanted = find("maximum")(find("minimum")(self._missing, most), 1)

        def sampled(i: Tensor) -> Tensor:
            some = points[i * length : (i + 1) * length]
            one = find("constant")(1, dtypes.int64)
            _, distances = apply_list("NearestNeighbors", some, self._state.centers, one)
            seed = find("constant")(self._kmeans._seed, dtypes.int64)
            index = apply("KMC2ChainInitialization", find("squeeze")(distances, [-1]), seed)
            return self._row(some[index])

        def add(i: Tensor, _: Tensor) -> tuple[Tensor, Tensor]:
            none = find("equal")(find("shape")(self._state.centers)[0], 0)
            centers = find("cond")(
                none,
                lambda: self._row(points[0]),
                lambda: find("concat")([self._state.centers, sampled(i)], 0),
            )
            return i + 1, self._count - find("shape")(self._assigned(centers))[0]

        return find("while_loop")(lambda i, _: i < wanted, add, [0, 0])[1]

    def _row(self, point: Tensor) -> Tensor:
        row = find("reshape")(point, [1, -1])
        return _unit(row) if self._kmeans._cosine else row
