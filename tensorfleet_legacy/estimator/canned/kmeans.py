"""`tf.estimator.experimental.KMeans`, also known as `tf.contrib.factorization.KMeansClustering`."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from tensorfleet.api.metrics.means import mean
from tensorfleet.api.summary.summary import scalar
from tensorfleet.api.train.global_step import get_global_step
from tensorfleet.api.train.session_run_hook import SessionRunArgs, SessionRunHook
from tensorfleet.api.train.waiting import step_stall_timer
from tensorfleet.base import logging
from tensorfleet.base.naming import find
from tensorfleet.graph.scopes import GraphKeys, control_dependencies, get_collection
from tensorfleet_legacy.contrib.factorization import clustering_ops as kmeans
from tensorfleet_legacy.estimator.estimator import Estimator
from tensorfleet_legacy.estimator.export_output import DEFAULT_KEY, PredictOutput
from tensorfleet_legacy.estimator.model_fn import EstimatorSpec
from tensorfleet_legacy.feature_column.feature_column_inputs import input_layer


class _Stops(SessionRunHook):
    """Ends training when the loss changes by less than a share of itself."""

    def __init__(self, loss: Any, tolerance: float) -> None:
        self._loss, self._tolerance, self._before = loss, tolerance, None

    def before_run(self, run_context: Any) -> SessionRunArgs:
        return SessionRunArgs(self._loss)

    def after_run(self, run_context: Any, run_values: Any) -> None:
        loss, before = run_values.results, self._before
        if before and abs(loss - before) / (1 + abs(before)) < self._tolerance:
            run_context.request_stop()
        self._before = loss


class _Chooses(SessionRunHook):
    """Chooses the first centers; who is not the chief waits until there are some.

    They come from the input, which may have nothing left for a step then: they are saved all the same.
    """

    def __init__(self, choose: Any, chosen: Any, config: Any) -> None:
        self._choose, self._chosen = choose, chosen
        self._is_chief, self._model_dir = config.is_chief, config.model_dir
        self._unsaved = False

    def after_create_session(self, session: Any, coord: Any) -> None:
        patience = step_stall_timer()
        while not session.run(self._chosen):
            if self._is_chief:
                try:
                    session.run(self._choose)
                    self._unsaved = True
                except RuntimeError as e:
                    logging.info(e)
            else:
                patience.look(None, "the chief to choose the first centers")
                patience.pause()

    def after_run(self, run_context: Any, run_values: Any) -> None:
        self._unsaved = False

    def end(self, session: Any) -> None:
        if self._unsaved and (savers := get_collection(GraphKeys.SAVERS)):
            path = os.path.join(self._model_dir, "model.ckpt")
            savers[0].save(session, path, global_step=get_global_step())


def _points(features: Any, columns: Any) -> Any:
    """A matrix of points, from features by name if there are names."""
    if not isinstance(features, dict):
        return features
    if columns:
        return input_layer(features, columns)
    return find("concat")([features[key] for key in sorted(features)], 1)


def _model_fn(columns: Any, tolerance: float | None, **options: Any) -> Callable[..., EstimatorSpec]:
    def model_fn(features: Any, mode: str, config: Any) -> EstimatorSpec:
        points = _points(features, columns)
        distances, places, losses, chosen, choose, train = kmeans.KMeans(points, **options).training_graph()
        loss = find("reduce_sum")(losses)
        scalar("loss/raw", loss)
        step = find("assign_add")(get_global_step(), 1)
        with control_dependencies([train, step]):
            train = find("identity")(loss)
        hooks: list[SessionRunHook] = [_Chooses(choose, chosen, config)]
        if tolerance is not None:
            hooks.append(_Stops(loss, tolerance))
        by_name = {KMeansClustering.ALL_DISTANCES: distances[0], KMeansClustering.CLUSTER_INDEX: places[0]}
        outputs = {key: PredictOutput(value) for key, value in by_name.items()}
        return EstimatorSpec(
            mode,
            by_name,
            loss,
            train,
            eval_metric_ops={KMeansClustering.SCORE: mean(loss)},
            training_hooks=hooks,
            export_outputs={**outputs, DEFAULT_KEY: outputs[KMeansClustering.CLUSTER_INDEX]},
        )

    return model_fn


class KMeansClustering(Estimator):
    """An Estimator that finds cluster centers; features are points, or columns of their coordinates."""

    SQUARED_EUCLIDEAN_DISTANCE = kmeans.SQUARED_EUCLIDEAN_DISTANCE
    COSINE_DISTANCE = kmeans.COSINE_DISTANCE
    RANDOM_INIT = kmeans.RANDOM_INIT
    KMEANS_PLUS_PLUS_INIT = kmeans.KMEANS_PLUS_PLUS_INIT
    SCORE = "score"
    CLUSTER_INDEX = "cluster_index"
    ALL_DISTANCES = "all_distances"
    CLUSTER_CENTERS_VAR_NAME = kmeans.CLUSTERS_VAR_NAME

    def __init__(
        self,
        num_clusters: int,
        model_dir: Any = None,
        initial_clusters: Any = RANDOM_INIT,
        distance_metric: str = SQUARED_EUCLIDEAN_DISTANCE,
        seed: int | None = None,
        use_mini_batch: bool = True,
        mini_batch_steps_per_iteration: int = 1,
        kmeans_plus_plus_num_retries: int = 2,
        relative_tolerance: float | None = None,
        config: Any = None,
        feature_columns: Any = None,
    ) -> None:
        known = (self.RANDOM_INIT, self.KMEANS_PLUS_PLUS_INIT)
        if isinstance(initial_clusters, str) and initial_clusters not in known:
            raise ValueError(f"Unsupported initialization algorithm '{initial_clusters}'")
        if distance_metric not in (self.SQUARED_EUCLIDEAN_DISTANCE, self.COSINE_DISTANCE):
            raise ValueError(f"Unsupported distance metric '{distance_metric}'")
        self._distance_metric = distance_metric
        function = _model_fn(
            feature_columns,
            relative_tolerance,
            num_clusters=num_clusters,
            initial_clusters=initial_clusters,
            distance_metric=distance_metric,
            use_mini_batch=use_mini_batch,
            mini_batch_steps_per_iteration=mini_batch_steps_per_iteration,
            random_seed=seed,
            kmeans_plus_plus_num_retries=kmeans_plus_plus_num_retries,
        )
        super().__init__(function, model_dir, config)

    def _predicted(self, input_fn: Callable, key: str) -> Iterator[Any]:
        for row in self.predict(input_fn, predict_keys=[key]):
            yield row[key]

    def predict_cluster_index(self, input_fn: Callable) -> Iterator[Any]:
        """The center nearest to each point."""
        yield from self._predicted(input_fn, self.CLUSTER_INDEX)

    def score(self, input_fn: Callable) -> Any:
        """The sum of the distances of one batch to the centers nearest."""
        return self.evaluate(input_fn, steps=1)[self.SCORE]

    def transform(self, input_fn: Callable) -> Iterator[Any]:
        """The distances of each point to all centers."""
        squared = self._distance_metric == self.SQUARED_EUCLIDEAN_DISTANCE
        for distances in self._predicted(input_fn, self.ALL_DISTANCES):
            yield np.sqrt(distances) if squared else distances

    def cluster_centers(self) -> np.ndarray:
        """The centers, [clusters, coordinates]."""
        return self.get_variable_value(self.CLUSTER_CENTERS_VAR_NAME)


KMeans = KMeansClustering


class ContribKMeansClustering(KMeansClustering):
    """`tf.contrib.factorization.KMeansClustering`: the same, whose distances stay squared."""

    def __init__(
        self,
        num_clusters: int,
        model_dir: Any = None,
        initial_clusters: Any = KMeansClustering.RANDOM_INIT,
        distance_metric: str = KMeansClustering.SQUARED_EUCLIDEAN_DISTANCE,
        random_seed: int | None = 0,
        use_mini_batch: bool = True,
        mini_batch_steps_per_iteration: int = 1,
        kmeans_plus_plus_num_retries: int = 2,
        relative_tolerance: float | None = None,
        config: Any = None,
        feature_columns: Any = None,
    ) -> None:
        given = locals()
        seed = given.pop("random_seed")
        KMeansClustering.__init__(**given, seed=seed)

    def transform(self, input_fn: Callable) -> Iterator[Any]:
        """The distances of each point to all centers, as they are measured."""
        yield from self._predicted(input_fn, self.ALL_DISTANCES)
