"""Parts of `tf.contrib` that are read when one of their names is first used."""

from __future__ import annotations

from tensorfleet_legacy.lazy_names import publish_from

# The modules here, the places of their names under `tf.`, and the names.
_PARTS: tuple[tuple[str, str, str], ...] = (
    (
        "contrib.nn.sampling_ops",
        "contrib.nn",
        """
        conv1d_transpose deprecated_flipped_sigmoid_cross_entropy_with_logits
        deprecated_flipped_softmax_cross_entropy_with_logits deprecated_flipped_sparse_softmax_cross_entropy_with_logits
        nth_element rank_sampled_softmax_loss sampled_sparse_softmax_loss scaled_softplus
        """,
    ),
    (
        "contrib.data.batching",
        "contrib.data",
        """
        assert_element_shape padded_batch_and_drop_remainder read_batch_features reduce_dataset sliding_window_batch
        sloppy_interleave
        """,
    ),
    (
        "contrib.metrics.metric_ops_curves",
        "contrib.metrics",
        """
        auc_using_histogram auc_with_confidence_intervals precision_recall_at_equal_thresholds streaming_curve_points
        streaming_dynamic_auc streaming_recall_at_k
        """,
    ),
    (
        "contrib.mixed_precision.loss_scale_optimizer",
        "contrib.mixed_precision",
        "ExponentialUpdateLossScaleManager FixedLossScaleManager LossScaleManager LossScaleOptimizer",
    ),
    ("contrib.rnn.rnn_cell_memory", "contrib.rnn", "CFNCell MinimalRNNCell NTMCell NTMControllerState"),
    ("contrib.opt.shampoo", "contrib.opt", "GGTOptimizer ShampooOptimizer"),
    (
        "contrib.estimator.rnn",
        "contrib.estimator",
        """
        RNNClassifier RNNEstimator clip_gradients_by_norm export_all_saved_models export_saved_model_for_mode
        forward_features
        """,
    ),
    ("contrib.estimator.rnn", "contrib.predictor", "from_contrib_estimator from_estimator"),
    ("contrib.estimator.replicate_model_fn", "contrib.estimator", "TowerOptimizer replicate_model_fn"),
    (
        "contrib.image.dense_image_warp",
        "contrib.image",
        "adjust_hsv_in_yiq dense_image_warp interpolate_spline random_hsv_in_yiq sparse_image_warp",
    ),
    ("contrib.image.dense_image_warp", "contrib.resampler", "resampler"),
    ("contrib.integrate.odes", "contrib.integrate", "odeint odeint_fixed"),
    (
        "contrib.copy_graph.copy_elements",
        "contrib.util",
        "constant_value ops_used_by_graph_def stripped_op_list_for_graph",
    ),
    ("contrib.copy_graph.copy_elements", "contrib.memory_stats", "BytesInUse BytesLimit MaxBytesInUse"),
    (
        "contrib.copy_graph.copy_elements",
        "contrib.copy_graph",
        "copy_op_to_graph copy_variable_to_graph get_copied_op",
    ),
    ("contrib.text.skip_gram_ops", "contrib.text", "skip_gram_sample skip_gram_sample_with_text_vocab"),
    (
        "contrib.bayesflow.monte_carlo",
        "contrib.bayesflow.monte_carlo",
        "expectation expectation_importance_sampler expectation_importance_sampler_logspace",
    ),
    ("contrib.solvers.linear_equations", "contrib.solvers.linear_equations", "conjugate_gradient"),
    ("contrib.solvers.linear_equations", "contrib.solvers.least_squares", "cgls"),
    ("contrib.solvers.linear_equations", "contrib.solvers.lanczos", "bidiag_matmul lanczos_bidiag"),
    (
        "contrib.solvers.linear_equations",
        "contrib.solvers.util",
        "create_operator dot identity_operator l2norm l2norm_squared l2normalize",
    ),
    (
        "contrib.kernel_methods.kernel_estimators",
        "contrib.kernel_methods",
        "KernelLinearClassifier RandomFourierFeatureMapper sparse_multiclass_hinge_loss",
    ),
    ("contrib.distribute.monitor", "contrib.distribute", "Monitor"),
    ("contrib.checkpoint.containers", "contrib.checkpoint", "NumpyState UniqueNameTracker"),
    ("contrib.input_pipeline.input_pipeline_ops", "contrib.input_pipeline", "obtain_next seek_next"),
    (
        "contrib.input_pipeline.input_pipeline_ops",
        "contrib.input_pipeline.python.ops.input_pipeline_ops",
        "obtain_next seek_next",
    ),
    (
        "contrib.constrained_optimization.constrained_optimizer",
        "contrib.constrained_optimization",
        """
        AdditiveExternalRegretOptimizer AdditiveSwapRegretOptimizer ConstrainedMinimizationProblem ConstrainedOptimizer
        MultiplicativeSwapRegretOptimizer find_best_candidate_distribution find_best_candidate_index
        """,
    ),
    (
        "contrib.layers.target_column",
        "contrib.layers",
        "binary_svm_target get_default_binary_metrics_for_eval multi_class_target regression_target",
    ),
    (
        "contrib.layers.sparse_ops",
        "contrib.layers.python.ops.sparse_ops",
        "dense_to_sparse_tensor indicators_to_sparse_ids sparse_row_envelope",
    ),
    ("contrib.layers.sparse_ops", "contrib.layers.python.ops.bucketization_op", "bucketize"),
    (
        "contrib.layers.sparse_ops",
        "contrib.layers.python.ops.sparse_feature_cross_op",
        "sparse_feature_cross",
    ),
    ("contrib.layers.layers_gdn", "contrib.layers", "GDN gdn"),
    ("contrib.layers.rev_block_lib", "contrib.layers", "RevBlock recompute_grad rev_block"),
)
for _module, _place, _names in _PARTS:
    publish_from(_module, _names, _place)
