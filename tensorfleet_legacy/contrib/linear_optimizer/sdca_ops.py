"""`tf.contrib.linear_optimizer.SdcaModel`: a linear model trained by stochastic dual coordinate ascent."""

from __future__ import annotations

from typing import Any

from tensorfleet.api.summary.summary import scalar
from tensorfleet.api.train.mutable_tables import DenseHashTable
from tensorfleet.api.variables.partitioned import PartitionedVariable
from tensorfleet.base import dtypes
from tensorfleet.base.naming import export, find
from tensorfleet.base.properties import readonly
from tensorfleet.graph.apply import apply_any
from tensorfleet.graph.operation import Operation, Tensor
from tensorfleet.graph.scopes import colocate_with, control_dependencies, name_scope
from tensorfleet.ops.array.basic import group
from tensorfleet.ops.math.sdca import sdca_fprint

_LOSSES = ("logistic_loss", "squared_loss", "hinge_loss", "smooth_hinge_loss", "poisson_loss")
_SPARSE, _DENSE = "sparse_features_weights", "dense_features_weights"


@export("contrib.linear_optimizer.SparseFeatureColumn")
class SparseFeatureColumn:
    """Features of some examples: `feature_values[i]` of feature `feature_indices[i]` in example `example_indices[i]`."""

    def __init__(self, example_indices: Any, feature_indices: Any, feature_values: Any) -> None:
        to_tensor = find("convert_to_tensor")
        with name_scope(None, "SparseFeatureColumn", [example_indices, feature_indices]):
            self._example_indices = to_tensor(example_indices, dtypes.int64, name="example_indices")
            self._feature_indices = to_tensor(feature_indices, dtypes.int64, name="feature_indices")
            self._feature_values = None
            if feature_values is not None:
                self._feature_values = to_tensor(feature_values, dtypes.float32, name="feature_values")

    example_indices = readonly("_example_indices", "The example of each value.")
    feature_indices = readonly("_feature_indices", "The feature of each value.")
    feature_values = readonly("_feature_values", "The values; None stands for ones.")


class _Table:
    """The state of each example by its fingerprint, in one table or several."""

    def __init__(self, shards: int) -> None:
        self._tables = [
            DenseHashTable(
                dtypes.int64,
                dtypes.float32,
                default_value=[0.0, 0.0, 0.0, 0.0],
                empty_key=[0, 0],
                deleted_key=[1, 1],
                name=f"ShardedMutableHashTable-{i + 1}-of-{shards}",
            )
            for i in range(shards)
        ]

    def _parts(self, keys: Tensor, *values: Tensor) -> list[list[Tensor]]:
        """Keys, and what belongs to them, by table."""
        shards = len(self._tables)
        owner = find("cast")(find("mod")(find("abs")(keys[:, 0]), shards), dtypes.int32)
        return [find("dynamic_partition")(v, owner, shards) for v in (keys, *values)]

    def lookup(self, keys: Tensor) -> Tensor:
        if len(self._tables) == 1:
            return self._tables[0].lookup(keys)
        places = find("range")(find("shape")(keys)[0])
        parts, where = self._parts(keys, places)
        items = [table.lookup(part) for table, part in zip(self._tables, parts, strict=True)]
        return find("dynamic_stitch")(where, items)

    def insert(self, keys: Tensor, values: Tensor) -> Operation:
        if len(self._tables) == 1:
            return self._tables[0].insert(keys, values)
        rows = zip(self._tables, *self._parts(keys, values), strict=True)
        return group(*[table.insert(k, v) for table, k, v in rows])

    def size(self) -> Tensor:
        return find("add_n")([table.size() for table in self._tables])

    def sums(self) -> Tensor:
        """The sum of the states of all examples."""
        totals = [find("reduce_sum")(find("cast")(t.export()[1], dtypes.float64), 0) for t in self._tables]
        return find("add_n")(totals)


def _parts_of(variable: Any) -> list:
    return list(variable) if isinstance(variable, (list, tuple, PartitionedVariable)) else [variable]


def _whole(variable: Any) -> Tensor:
    parts = _parts_of(variable)
    return find("convert_to_tensor")(parts[0]) if len(parts) == 1 else find("concat")(parts, 0)


def _need(given: dict, lists: tuple[str, ...], others: tuple[str, ...] = ()) -> None:
    for name in (*others, *lists):
        if given[name] is None:
            raise ValueError(f"{name} must be specified.")
    for name in lists:
        if not isinstance(given[name], list):
            raise ValueError(f"{name} must be a list.")


@export("contrib.linear_optimizer.SdcaModel")
class SdcaModel:
    """A linear model, and examples to train it on.

    `examples` has sparse_features (`SparseFeatureColumn`s), dense_features (matrices), example_labels, example_weights
    and example_ids (strings); `variables` has sparse_features_weights and dense_features_weights; `options` has
    loss_type, symmetric_l1_regularization, symmetric_l2_regularization, and perhaps num_loss_partitions,
    num_table_shards and adaptive.
    """

    def __init__(self, examples: dict, variables: dict, options: dict) -> None:
        if not examples or not variables or not options:
            raise ValueError("examples, variables and options must all be specified.")
        if options["loss_type"] not in _LOSSES:
            raise ValueError("Unsupported loss_type: ", options["loss_type"])
        _need(
            examples,
            ("sparse_features", "dense_features"),
            ("example_labels", "example_weights", "example_ids"),
        )
        _need(variables, (_SPARSE, _DENSE))
        for name in ("symmetric_l1_regularization", "symmetric_l2_regularization"):
            if options[name] < 0.0:
                raise ValueError(f"{name} should be non-negative. Found ({options[name]:f})")
        self._examples, self._variables, self._options = examples, variables, options
        self._l1 = options["symmetric_l1_regularization"]
        self._l2 = max(options["symmetric_l2_regularization"], 1.0)
        # The weights before they are shrunk towards zero: what the steps change.
        self._slots = {name: [_unshrunk(v) for v in variables[name]] for name in (_SPARSE, _DENSE)}
        self._table = _Table(options.get("num_table_shards") or 1)
        scalar("approximate_duality_gap", self.approximate_duality_gap())
        scalar("examples_seen", self._table.size())

    def minimize(self, global_step: Any = None, name: str | None = None) -> Operation:
        """A step for each example, which changes the weights before they are shrunk."""
        with name_scope(name, "sdca/minimize"):
            sparse, labels = self._examples["sparse_features"], self._examples["example_labels"]
            keys = sdca_fprint(self._examples["example_ids"])
            ids = [find("unique")(column.feature_indices)[0] for column in sparse]
            slots, dense_slots = self._slots[_SPARSE], self._slots[_DENSE]
            weights = [find("gather")(_whole(s), i) for s, i in zip(slots, ids, strict=True)]
            result = apply_any(
                "SdcaOptimizerV2",
                [column.example_indices for column in sparse],
                [column.feature_indices for column in sparse],
                [column.feature_values for column in sparse if column.feature_values is not None],
                [find("convert_to_tensor")(f) for f in self._examples["dense_features"]],
                self._examples["example_weights"],
                labels,
                ids,
                weights,
                [_whole(s) for s in dense_slots],
                self._table.lookup(keys),
                loss_type=self._options["loss_type"],
                l1=self._l1,
                l2=self._l2,
                num_loss_partitions=self._options.get("num_loss_partitions", 1),
                num_inner_iterations=1,
                adaptive=self._options.get("adaptive", True),
            )
            state, changes, dense_changes = result
            with control_dependencies([state]):
                updates = [self._table.insert(keys, state)]
                for slot, i, change in zip(slots, ids, changes, strict=True):
                    updates += _scattered(slot, i, change)
                for slot, change in zip(dense_slots, dense_changes, strict=True):
                    updates += _added(slot, change)
            if global_step is None:
                return group(*updates)
            with control_dependencies(updates):
                return find("assign_add")(global_step, 1, name=name).op

    def update_weights(self, train_op: Any) -> Operation:
        """Gives the model its weights, shrunk, after a step."""
        shrinkage = self._l1 / self._l2
        updates = []
        with control_dependencies([train_op]):
            for name in (_SPARSE, _DENSE):
                for variable, slot in zip(self._variables[name], self._slots[name], strict=True):
                    for v, s in zip(_parts_of(variable), _parts_of(slot), strict=True):
                        raw = find("identity")(s)
                        size = find("maximum")(0.0, find("abs")(raw) - shrinkage)
                        updates.append(find("assign")(v, find("sign")(raw) * size))
        return group(*updates)

    def _regularization(self, function: str, factor: float) -> Tensor:
        weights = [p for name in (_SPARSE, _DENSE) for v in self._variables[name] for p in _parts_of(v)]
        sums = [find("reduce_sum")(find(function)(find("cast")(w, dtypes.float64))) for w in weights]
        return factor * find("add_n")(sums)

    def _l1_loss(self) -> Tensor:
        return self._regularization("abs", self._l1)

    def _l2_loss(self, strength: float) -> Tensor:
        return self._regularization("square", strength / 2)

    def approximate_duality_gap(self) -> Tensor:
        """How far the model may be from the best one: an estimate from the losses seen last."""
        with name_scope("sdca/approximate_duality_gap"):
            sums = self._table.sums()
            losses = sums[1] + sums[2] + self._l1_loss() + 2.0 * self._l2_loss(self._l2)
            return losses / sums[3]

    def _linear_predictions(self, examples: dict) -> Tensor:
        size = find("size")(examples["example_weights"])
        total = find("zeros")([size], dtypes.float32)
        with name_scope("sdca/prediction"):
            for column, variable in zip(examples["sparse_features"], self._variables[_SPARSE], strict=True):
                weights = find("gather")(find("reshape")(_whole(variable), [-1]), column.feature_indices)
                values = column.feature_values
                weights = weights if values is None else weights * values
                total += find("unsorted_segment_sum")(weights, column.example_indices, size)
            for features, variable in zip(examples["dense_features"], self._variables[_DENSE], strict=True):
                column = find("reshape")(_whole(variable), [-1, 1])
                total += find("reshape")(find("matmul")(find("convert_to_tensor")(features), column), [-1])
        return total

    def predictions(self, examples: dict) -> Tensor:
        """The model's predictions: a probability for `logistic_loss`, a mean for `poisson_loss`."""
        _need(examples, ("sparse_features", "dense_features"), ("example_weights",))
        output = self._linear_predictions(examples)
        last = {"logistic_loss": "sigmoid", "poisson_loss": "exp"}.get(self._options["loss_type"])
        return output if last is None else find(last)(output)

    def unregularized_loss(self, examples: dict) -> Tensor:
        """The mean loss of examples."""
        _need(examples, ("sparse_features", "dense_features"), ("example_labels", "example_weights"))
        with name_scope("sdca/unregularized_loss"):
            output = find("cast")(self._linear_predictions(examples), dtypes.float64)
            labels = find("cast")(examples["example_labels"], dtypes.float64)
            weights = find("cast")(examples["example_weights"], dtypes.float64)
            losses = self._losses(labels, output)
            return find("reduce_sum")(losses * weights) / find("reduce_sum")(weights)

    def _losses(self, labels: Tensor, found: Tensor) -> Tensor:
        kind = self._options["loss_type"]
        if kind == "logistic_loss":
            return find("nn.sigmoid_cross_entropy_with_logits")(labels=labels, logits=found)
        if kind == "poisson_loss":
            return find("nn.log_poisson_loss")(targets=labels, log_input=found)
        if kind == "squared_loss":
            return find("squared_difference")(labels, found) / 2.0
        return find("nn.relu")(1.0 - (2.0 * labels - 1.0) * found)

    def regularized_loss(self, examples: dict) -> Tensor:
        """The mean loss of examples, and that of the weights."""
        losses = self._l1_loss() + self._l2_loss(self._options["symmetric_l2_regularization"])
        with name_scope("sdca/regularized_loss"):
            weights = find("cast")(examples["example_weights"], dtypes.float64)
            return losses / find("reduce_sum")(weights) + self.unregularized_loss(examples)


def _unshrunk(variable: Any) -> Any:
    """Zeros of the shape of a variable, part by part."""
    result = []
    for part in _parts_of(variable):
        with colocate_with(part):
            zeros = find("zeros_like")(part.initialized_value(), dtypes.float32)
            result.append(
                find("Variable")(zeros, name=f"{part.op.name}_unshrinked/SDCAOptimizer", trainable=False)
            )
    return result


def _scattered(slot: list, ids: Tensor, change: Tensor) -> list:
    """Adds to some rows of a variable, each to the part that has it."""
    if len(slot) == 1:
        return [find("scatter_add")(slot[0], ids, change)]
    updates, start = [], 0
    for part in slot:
        end = start + part.shape.as_list()[0]
        mine = find("logical_and")(ids >= start, ids < end)
        rows, rest = find("boolean_mask")(ids, mine) - start, find("boolean_mask")(change, mine)
        updates.append(find("scatter_add")(part, rows, rest))
        start = end
    return updates


def _added(slot: list, change: Tensor) -> list:
    """Adds to all rows of a variable."""
    sizes = [part.shape.as_list()[0] for part in slot]
    changes = [change] if len(slot) == 1 else find("split")(change, sizes)
    return [find("assign_add")(part, c) for part, c in zip(slot, changes, strict=True)]
