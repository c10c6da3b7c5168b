"""`tf.contrib.factorization.WALSModel`: a sparse matrix as a product of two thin ones, by weighted alternating least squares."""

from __future__ import annotations

from collections.abc import Iterable
from numbers import Real
from typing import Any

from tensorfleet.base import dtypes
from tensorfleet.base.naming import export, find
from tensorfleet.base.properties import readonly
from tensorfleet.graph.operation import Operation, Tensor
from tensorfleet.graph.scopes import colocate_with, name_scope
from tensorfleet.graph.sparse_tensor import SparseTensor
from tensorfleet.ops.array.basic import group, no_op


def _sizes(total: int, shards: int) -> list[int]:
    """The rows of each shard: the first have one more where it does not come out even."""
    size, rest = divmod(total, shards)
    return [size + 1] * rest + [size] * (shards - rest)


@export("contrib.factorization.WALSModel")
class WALSModel:
    """Factors of the rows and of the columns of a matrix, of which some entries are observed.

    Entries that are not count as zeros of weight `unobserved_weight`; an observed one weighs that and the product of the
    weights of its row and its column besides. To train, run `initialize_op` and `worker_init`; then, in turn, for rows
    and for columns: `row_update_prep_gramian_op`, `initialize_row_update_op`, and the updates of all rows.
    """

    def __init__(
        self,
        input_rows: int,
        input_cols: int,
        n_components: int,
        unobserved_weight: float = 0.1,
        regularization: float | None = None,
        row_init: Any = "random",
        col_init: Any = "random",
        num_row_shards: int = 1,
        num_col_shards: int = 1,
        row_weights: Any = 1,
        col_weights: Any = 1,
        use_factors_weights_cache: bool = True,
        use_gramian_cache: bool = True,
        use_scoped_vars: bool = False,
    ) -> None:
        assert (row_weights is None) == (col_weights is None)
        self._input_rows, self._input_cols = input_rows, input_cols
        self._n_components, self._unobserved_weight = n_components, unobserved_weight
        self._regularization = regularization
        scoped = use_scoped_vars
        self._row_weights = _weights(row_weights, input_rows, num_row_shards, "row_weights", scoped)
        self._col_weights = _weights(col_weights, input_cols, num_col_shards, "col_weights", scoped)
        self._row_factors = _factors(
            input_rows, n_components, num_row_shards, row_init, "row_factors", scoped
        )
        self._col_factors = _factors(
            input_cols, n_components, num_col_shards, col_init, "col_factors", scoped
        )
        zeros = find("zeros")([n_components, n_components])
        self._row_gramian = find("Variable")(zeros, name="row_gramian")
        self._col_gramian = find("Variable")(zeros, name="col_gramian")
        with name_scope("row_prepare_gramian"):
            self._row_prepare = _prepared(self._col_factors, self._col_gramian)
        with name_scope("col_prepare_gramian"):
            self._col_prepare = _prepared(self._row_factors, self._row_gramian)
        # Updates read the other side's variables where they are, which do not change meanwhile.
        self._nothing = no_op(name="worker_init")

    row_factors = readonly("_row_factors", "The factors of the rows, in shards.")
    col_factors = readonly("_col_factors", "The factors of the columns, in shards.")
    row_weights = readonly("_row_weights", "The weights of the rows, in shards; None if there are none.")
    col_weights = readonly("_col_weights", "The weights of the columns, in shards; None if there are none.")
    row_update_prep_gramian_op = readonly("_row_prepare", "Run once before each sweep of row updates.")
    col_update_prep_gramian_op = readonly("_col_prepare", "Run once before each sweep of column updates.")
    worker_init = readonly("_nothing", "Run once by each worker.")
    initialize_row_update_op = readonly("_nothing", "Run by each worker before each sweep of row updates.")
    initialize_col_update_op = readonly("_nothing", "Run by each worker before each sweep of column updates.")

    @property
    def initialize_op(self) -> Operation:
        """Gives the variables their first values."""
        held = [*self._row_factors, *self._col_factors, self._row_gramian, self._col_gramian]
        held += [*(self._row_weights or ()), *(self._col_weights or ())]
        return find("variables_initializer")(held)

    def update_row_factors(self, sp_input: Any = None, transpose_input: bool = False) -> tuple:
        """(new factors of the rows of the input, the update, unregularized loss, regularization, sum of weights)."""
        return self._updated(True, sp_input, transpose_input)

    def update_col_factors(self, sp_input: Any = None, transpose_input: bool = False) -> tuple:
        """(new factors of the columns of the input, the update, unregularized loss, regularization, sum of weights)."""
        return self._updated(False, sp_input, transpose_input)

    def project_row_factors(
        self, sp_input: Any = None, transpose_input: bool = False, projection_weights: Any = None
    ) -> Tensor:
        """The factors that rows would have; nothing is updated."""
        weights = 1 if projection_weights is None else projection_weights
        return self._updated(True, sp_input, transpose_input, weights)[0]

    def project_col_factors(
        self, sp_input: Any = None, transpose_input: bool = False, projection_weights: Any = None
    ) -> Tensor:
        """The factors that columns would have; nothing is updated."""
        weights = 1 if projection_weights is None else projection_weights
        return self._updated(False, sp_input, transpose_input, weights)[0]

    def _updated(self, rows: bool, given: Any, transposed: bool, weights: Any = None) -> tuple:
        assert isinstance(given, SparseTensor)
        left, right, gramian = self._row_factors, self._col_factors, self._col_gramian
        own, others, sizes = self._row_weights, self._col_weights, (self._input_rows, self._input_cols)
        if not rows:
            left, right, gramian = self._col_factors, self._row_factors, self._row_gramian
            own, others, sizes = others, own, sizes[::-1]
        mine = int(transposed) if rows else 1 - int(transposed)
        ids, place = find("unique")(given.indices[:, mine])
        other = given.indices[:, 1 - mine]
        count = find("size")(ids)
        vectors = find("nn.embedding_lookup")(right, other, partition_strategy="div")
        entry_weights, row_weights = self._entry_weights(own, others, ids, other, place, weights)
        result = self._solved(gramian, vectors, given.values, entry_weights, place, count, own is not None)
        name = "row_update" if rows else "col_update"
        update = _scattered(left, ids, result, name)
        approximate = find("reduce_sum")(find("gather")(result, place) * vectors, 1)
        scale = sizes[0] / find("cast")(count, dtypes.float32)
        loss = self._loss(given.values, approximate, entry_weights, result, gramian) * scale
        total = (
            self._unobserved_weight * float(sizes[0] * sizes[1]) + find("reduce_sum")(entry_weights) * scale
        )
        return result, update, loss, self._held_back(result, gramian, scale), total

    def _entry_weights(self, own: Any, others: Any, ids: Any, other: Any, place: Any, given: Any) -> tuple:
        """The weight of each observed entry, besides the weight of unobserved entries."""
        if own is None:
            return find("zeros_like")(other, dtypes.float32), None
        lookup = find("nn.embedding_lookup")
        if given is None:
            rows = lookup(own, ids, partition_strategy="div")
        else:
            rows = find("cast")(given, dtypes.float32) * find("ones_like")(ids, dtypes.float32)
        columns = lookup(others, other, partition_strategy="div")
        return find("gather")(rows, place) * columns, rows

    def _solved(
        self,
        gramian: Any,
        vectors: Tensor,
        values: Any,
        weights: Tensor,
        place: Any,
        count: Any,
        weighted: bool,
    ) -> Tensor:
        """The factors with the least error."""
        base = self._unobserved_weight * gramian
        if self._regularization is not None:
            base += self._regularization * find("eye")(self._n_components)
        summed = find("unsorted_segment_sum")
        pull = (self._unobserved_weight + weights) * values
        right = summed(find("expand_dims")(pull, 1) * vectors, place, count)
        if not weighted:
            return find("transpose")(find("matrix_solve")(base, find("transpose")(right)))
        column = find("expand_dims")(vectors, 2)
        outer = column * find("expand_dims")(vectors, 1) * find("reshape")(weights, [-1, 1, 1])
        left = base + summed(outer, place, count)
        return find("squeeze")(find("matrix_solve")(left, find("expand_dims")(right, 2)), [2])

    def _loss(self, values: Any, approximate: Tensor, weights: Tensor, made: Tensor, gramian: Any) -> Tensor:
        squares = find("squared_difference")(values, approximate)
        everywhere = find("trace")(find("matmul")(find("matmul")(made, made, transpose_a=True), gramian))
        unobserved = find("reduce_sum")(squares - find("square")(approximate)) + everywhere
        return self._unobserved_weight * unobserved + find("reduce_sum")(weights * squares)

    def _held_back(self, made: Tensor, gramian: Any, scale: Tensor) -> Tensor:
        if self._regularization is None:
            return find("constant")(0.0)
        size = find("reduce_sum")(find("square")(made)) * scale + find("trace")(gramian)
        return self._regularization * size


def _factors(rows: int, columns: int, shards: int, init: Any, name: str, scoped: bool) -> list:
    init = init() if callable(init) else init
    random = isinstance(init, str) and init == "random"
    if not random:
        init = init if isinstance(init, list) else [init]
        assert len(init) == shards

    def first(i: int, size: int) -> Any:
        return lambda: (
            find("random_normal")([size, columns]) if random else find("cast")(init[i], dtypes.float32)
        )

    return _shards(first, rows, shards, name, scoped)


def _weights(init: Any, count: int, shards: int, name: str, scoped: bool) -> list | None:
    if init is None:
        return None
    several = isinstance(init, Iterable)
    if several:
        init = [init] if shards == 1 and len(init) == count else init
        assert len(init) == shards
    elif not isinstance(init, Real) or float(init) < 0:
        raise ValueError(
            "Invalid weight initialization argument. Must be one of these: None, a real non-negative real number, or a list of "
            "lists of non-negative real numbers (or equivalent iterables) corresponding to sharded factors."
        )

    def first(i: int, size: int) -> Any:
        value = init[i] if several else init
        return lambda: find("cast")(value, dtypes.float32) * find("ones")([size])

    return _shards(first, count, shards, name, scoped)


def _shards(first: Any, total: int, shards: int, name: str, scoped: bool) -> list:
    with name_scope(name if scoped else None):
        return [
            find("Variable")(first(i, size), dtype=dtypes.float32, name=f"{name}_shard_{i}")
            for i, size in enumerate(_sizes(total, shards))
        ]


def _prepared(factors: list, gramian: Any) -> Operation:
    parts = []
    for factor in factors:
        with colocate_with(factor):
            parts.append(find("matmul")(factor, factor, transpose_a=True))
    with colocate_with(gramian):
        return find("assign")(gramian, find("add_n")(parts)).op


def _scattered(shards: list, ids: Tensor, values: Tensor, name: str) -> Operation:
    """Sets some rows, each in the shard that has it."""
    if len(shards) == 1:
        return find("scatter_update")(shards[0], ids, values, name=name).op
    updates, start = [], 0
    for shard in shards:
        end = start + shard.shape.as_list()[0]
        mine = find("logical_and")(ids >= start, ids < end)
        mask = find("boolean_mask")
        updates.append(find("scatter_update")(shard, mask(ids, mine) - start, mask(values, mine)))
        start = end
    return group(*updates, name=name)
