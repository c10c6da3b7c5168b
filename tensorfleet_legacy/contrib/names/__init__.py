"""Parts of `tf.contrib` that are read when one of their names is first used."""

from __future__ import annotations

import importlib
from typing import Any

from tensorfleet.base.naming import homes, publish_lazily

# The modules here, the places of their names under `tf.`, and the names.
_PARTS: tuple[tuple[str, str, str], ...] = (
    (
        "nn_functions",
        "contrib.nn",
        """
        conv1d_transpose deprecated_flipped_sigmoid_cross_entropy_with_logits
        deprecated_flipped_softmax_cross_entropy_with_logits deprecated_flipped_sparse_softmax_cross_entropy_with_logits
        nth_element rank_sampled_softmax_loss sampled_sparse_softmax_loss scaled_softplus
        """,
    ),
    (
        "datasets",
        "contrib.data",
        """
        assert_element_shape padded_batch_and_drop_remainder read_batch_features reduce_dataset sliding_window_batch
        sloppy_interleave
        """,
    ),
    (
        "curves",
        "contrib.metrics",
        """
        auc_using_histogram auc_with_confidence_intervals precision_recall_at_equal_thresholds streaming_curve_points
        streaming_dynamic_auc streaming_recall_at_k
        """,
    ),
    (
        "loss_scales",
        "contrib.mixed_precision",
        "ExponentialUpdateLossScaleManager FixedLossScaleManager LossScaleManager LossScaleOptimizer",
    ),
    ("memory_cells", "contrib.rnn", "CFNCell MinimalRNNCell NTMCell NTMControllerState"),
    ("preconditioned", "contrib.opt", "GGTOptimizer ShampooOptimizer"),
    (
        "estimators",
        "contrib.estimator",
        """
        RNNClassifier RNNEstimator clip_gradients_by_norm export_all_saved_models export_saved_model_for_mode
        forward_features
        """,
    ),
    ("estimators", "contrib.predictor", "from_contrib_estimator from_estimator"),
    ("towers", "contrib.estimator", "TowerOptimizer replicate_model_fn"),
    (
        "warping",
        "contrib.image",
        "adjust_hsv_in_yiq dense_image_warp interpolate_spline random_hsv_in_yiq sparse_image_warp",
    ),
    ("warping", "contrib.resampler", "resampler"),
    ("integrating", "contrib.integrate", "odeint odeint_fixed"),
    ("utilities", "contrib.util", "constant_value ops_used_by_graph_def stripped_op_list_for_graph"),
    ("utilities", "contrib.memory_stats", "BytesInUse BytesLimit MaxBytesInUse"),
    ("utilities", "contrib.copy_graph", "copy_op_to_graph copy_variable_to_graph get_copied_op"),
    ("skip_grams", "contrib.text", "skip_gram_sample skip_gram_sample_with_text_vocab"),
    (
        "monte_carlo",
        "contrib.bayesflow.monte_carlo",
        "expectation expectation_importance_sampler expectation_importance_sampler_logspace",
    ),
    ("krylov", "contrib.solvers.linear_equations", "conjugate_gradient"),
    ("krylov", "contrib.solvers.least_squares", "cgls"),
    ("krylov", "contrib.solvers.lanczos", "bidiag_matmul lanczos_bidiag"),
    (
        "krylov",
        "contrib.solvers.util",
        "create_operator dot identity_operator l2norm l2norm_squared l2normalize",
    ),
    (
        "kernels",
        "contrib.kernel_methods",
        "KernelLinearClassifier RandomFourierFeatureMapper sparse_multiclass_hinge_loss",
    ),
    ("running", "contrib.distribute", "Monitor"),
    ("tracking", "contrib.checkpoint", "NumpyState UniqueNameTracker"),
    ("seeking", "contrib.input_pipeline", "obtain_next seek_next"),
    ("seeking", "contrib.input_pipeline.python.ops.input_pipeline_ops", "obtain_next seek_next"),
    (
        "constrained",
        "contrib.constrained_optimization",
        """
        AdditiveExternalRegretOptimizer AdditiveSwapRegretOptimizer ConstrainedMinimizationProblem ConstrainedOptimizer
        MultiplicativeSwapRegretOptimizer find_best_candidate_distribution find_best_candidate_index
        """,
    ),
    (
        "targets",
        "contrib.layers",
        "binary_svm_target get_default_binary_metrics_for_eval multi_class_target regression_target",
    ),
    (
        "sparse_values",
        "contrib.layers.python.ops.sparse_ops",
        "dense_to_sparse_tensor indicators_to_sparse_ids sparse_row_envelope",
    ),
    ("sparse_values", "contrib.layers.python.ops.bucketization_op", "bucketize"),
    ("sparse_values", "contrib.layers.python.ops.sparse_feature_cross_op", "sparse_feature_cross"),
    ("divisive", "contrib.layers", "GDN gdn"),
    ("recomputing", "contrib.layers", "RevBlock recompute_grad rev_block"),
)
_HOMES = homes((f"{place}.{name}", module) for module, place, names in _PARTS for name in names.split())


def _load(full: str) -> Any:
    module = importlib.import_module(f"tensorfleet_legacy.contrib.names.{_HOMES[full]}")
    return getattr(module, full.rpartition(".")[2])


publish_lazily(_load, *_HOMES)
