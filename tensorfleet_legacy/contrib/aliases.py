"""Parts of `tf.contrib` that are other modules' names in another place."""

from __future__ import annotations

from tensorfleet.base.naming import find, publish, publish_lazily, publish_module

# Where scripts look, and where the names are; "" is `tf` itself.
_LENDERS: dict[str, tuple[str, ...]] = {
    "contrib.slim": ("contrib.layers", "contrib.framework"),
    "contrib.slim.layers": ("contrib.layers",),
    "contrib.slim.ops": ("contrib.layers",),
    "contrib.slim.metrics": ("contrib.metrics",),
    "contrib.slim.variables": ("contrib.framework",),
    "contrib.slim.summaries": ("contrib.layers",),
    "contrib.slim.initializers": ("contrib.layers",),
    "contrib.slim.regularizers": ("contrib.layers",),
    "contrib.slim.optimizers": ("contrib.layers",),
    "contrib.layers.summaries": ("contrib.layers",),
    "contrib.layers.feature_column": ("contrib.layers",),
    "contrib.layers.python.layers.feature_column": ("contrib.layers",),
    "contrib.slim.python.slim.learning": ("contrib.slim.learning",),
    "contrib.slim.python.slim.model_analyzer": ("contrib.slim.model_analyzer",),
    "contrib.layers.python.layers": ("contrib.layers",),
    "contrib.layers.python.layers.utils": ("contrib.layers.utils",),
    "contrib.layers.python.layers.layers": ("contrib.layers",),
    "contrib.layers.python.layers.initializers": ("contrib.layers",),
    "contrib.layers.python.layers.regularizers": ("contrib.layers",),
    "contrib.layers.python.layers.optimizers": ("contrib.layers",),
    "contrib.layers.python.layers.summaries": ("contrib.layers",),
    "contrib.framework.python.ops.variables": ("contrib.framework",),
    "contrib.framework.python.ops": ("contrib.framework",),
    "contrib.framework.python.framework.checkpoint_utils": ("contrib.framework", "train"),
    "contrib.framework": ("train", ""),
    "contrib.losses": ("contrib.slim.losses",),
    "contrib.losses.python.losses.loss_ops": ("contrib.slim.losses",),
    "contrib.metrics.python.ops.metric_ops": ("contrib.metrics",),
    "contrib.rnn": ("nn.rnn_cell", "nn"),
    "contrib.cudnn_rnn.python.layers": ("contrib.cudnn_rnn",),
    "contrib.cudnn_rnn.python.layers.cudnn_rnn": ("contrib.cudnn_rnn",),
    "contrib.cudnn_rnn.python.ops.cudnn_rnn_ops": ("contrib.cudnn_rnn",),
    "contrib.rnn.python.ops.core_rnn": ("contrib.rnn", "nn"),
    "contrib.rnn.python.ops.core_rnn_cell": ("contrib.rnn", "nn.rnn_cell", "nn"),
    "contrib.rnn.python.ops.rnn_cell": ("contrib.rnn", "nn.rnn_cell", "nn"),
    "nn.seq2seq": ("contrib.legacy_seq2seq",),
    "contrib.legacy_seq2seq.python.ops.seq2seq": ("contrib.legacy_seq2seq",),
    "contrib.data": ("data", "data.experimental"),
    "contrib.distribute": ("distribute", "distribute.experimental"),
    "contrib.lookup": ("lookup", ""),
    "contrib.lookup.lookup_ops": ("contrib.lookup", "lookup", ""),
    "contrib.seq2seq.python.ops.attention_wrapper": ("contrib.seq2seq",),
    "contrib.seq2seq.python.ops.basic_decoder": ("contrib.seq2seq",),
    "contrib.seq2seq.python.ops.beam_search_decoder": ("contrib.seq2seq",),
    "contrib.seq2seq.python.ops.beam_search_ops": ("contrib.seq2seq",),
    "contrib.seq2seq.python.ops.decoder": ("contrib.seq2seq",),
    "contrib.seq2seq.python.ops.helper": ("contrib.seq2seq",),
    "contrib.seq2seq.python.ops.loss": ("contrib.seq2seq",),
    "contrib.estimator": ("estimator", "estimator.experimental"),
    "contrib.hooks": ("train",),
    "contrib.solvers.python.ops.linear_equations": ("contrib.solvers.linear_equations",),
    "contrib.solvers.python.ops.least_squares": ("contrib.solvers.least_squares",),
    "contrib.solvers.python.ops.lanczos": ("contrib.solvers.lanczos",),
    "contrib.solvers.python.ops.util": ("contrib.solvers.util",),
    "contrib.image": ("image",),
    "contrib.training": ("train",),
    "contrib.training.python.training.training": ("contrib.training", "train"),
    "contrib.training.python.training.bucket_ops": ("contrib.training",),
    "contrib.training.python.training.evaluation": ("contrib.training",),
    "contrib.training.python.training.hparam": ("contrib.training",),
    "contrib.training.python.training.device_setter": ("contrib.training",),
    "contrib.util": ("",),
    "contrib.deprecated": ("",),
    "contrib.staging": ("",),
    "contrib.framework.python.framework.tensor_util": ("contrib.framework", ""),
    "contrib.opt": ("train",),
    "contrib.signal": ("signal",),
    "contrib.stateless": ("random", ""),
    "contrib.session_bundle.exporter": ("saved_model",),
    "contrib.bayesflow.python.ops.monte_carlo_impl": ("contrib.bayesflow.monte_carlo",),
    "contrib.predictor.predictor_factories": ("contrib.predictor",),
    # Where recurrent networks were before 1.0.
    "python.ops.seq2seq": ("contrib.legacy_seq2seq",),
    "models.rnn.seq2seq": ("contrib.legacy_seq2seq",),
    "models.rnn.rnn_cell": ("nn.rnn_cell",),
    "models.rnn.rnn": ("nn",),
}

_OPTIMIZERS = """
    adam_gs_optimizer adamax addsign agn_optimizer drop_stale_gradient_optimizer elastic_average_optimizer
    external_optimizer ggt lars_optimizer lazy_adam_gs_optimizer lazy_adam_optimizer model_average_optimizer
    moving_average_optimizer multitask_optimizer_wrapper nadam_optimizer powersign reg_adagrad_optimizer shampoo
    sign_decay
    variable_clipping_optimizer weight_decay_optimizers
"""
for _module in _OPTIMIZERS.split():
    _LENDERS[f"contrib.opt.python.training.{_module}"] = ("contrib.opt",)
# What several modules of a part of `tf.contrib` have in common: its public names.
_PARTS = {
    "contrib.layers": """
        layers.embedding_ops layers.encoders layers.feature_column layers.feature_column_ops layers.normalization
        layers.rev_block_lib layers.target_column
        ops.bucketization_op ops.sparse_feature_cross_op ops.sparse_ops
    """,
    "contrib.framework": """
        framework.experimental framework.graph_util ops.accumulate_n_v2 ops.arg_scope ops.checkpoint_ops ops.critical_section_ops ops.ops
        ops.script_ops ops.sort_ops
    """,
    "contrib.metrics": """
        metrics.classification ops.confusion_matrix_ops ops.histogram_ops ops.set_ops
    """,
    "contrib.rnn": "ops.fused_rnn_cell ops.gru_ops ops.lstm_ops ops.rnn",
    "contrib.training": """
        training.resample training.sampling_ops training.sequence_queueing_state_saver
    """,
    "contrib.batching": "ops.batch_ops",
    "contrib.checkpoint": "containers python_state split_dependency visualize",
    "contrib.constrained_optimization": """
        candidates constrained_minimization_problem constrained_optimizer external_regret_optimizer
        swap_regret_optimizer
    """,
    "contrib.copy_graph": "util.copy_elements",
    "contrib.crf": "ops.crf",
    "contrib.factorization": "ops.clustering_ops ops.factorization_ops ops.kmeans",
    "contrib.feature_column": "feature_column.sequence_feature_column",
    "contrib.image": """
        ops.dense_image_warp ops.distort_image_ops ops.image_ops ops.interpolate_spline ops.sparse_image_warp
    """,
    "contrib.integrate": "ops.odes",
    "contrib.kernel_methods": "kernel_estimators losses mappers.random_fourier_features",
    "contrib.linear_optimizer": "ops.sdca_ops ops.sparse_feature_column sdca_optimizer",
    "contrib.memory_stats": "ops.memory_stats_ops",
    "contrib.mixed_precision": "loss_scale_manager loss_scale_optimizer",
    "contrib.nn": "ops.alpha_dropout ops.cross_entropy ops.sampling_ops ops.scaled_softplus",
    "contrib.quantize": "quantize_graph",
    "contrib.resampler": "ops.resampler_ops",
    "contrib.sparsemax": "ops.sparsemax ops.sparsemax_loss",
    "contrib.text": "ops.skip_gram_ops",
    "contrib.data": """
        ops.batching ops.counter ops.enumerate_ops ops.error_ops ops.get_single_element ops.grouping ops.interleave_ops
        ops.iterator_ops ops.optimization ops.parsing_ops ops.prefetching_ops ops.random_ops ops.readers ops.resampling ops.scan_ops
        ops.shuffle_ops ops.sliding ops.stats_ops ops.threadpool ops.unique ops.writers
    """,
    "contrib.slim": "slim.summaries",
    "contrib.cluster_resolver": """
        training training.cluster_resolver training.gce_cluster_resolver training.kubernetes_cluster_resolver
        training.slurm_cluster_resolver training.tfconfig_cluster_resolver training.tpu_cluster_resolver
    """,
    "contrib.distributions": """
        ops.autoregressive ops.batch_reshape ops.binomial ops.cauchy ops.chi2 ops.conditional_distribution
        ops.conditional_transformed_distribution ops.deterministic ops.geometric ops.half_normal ops.independent
        ops.inverse_gamma ops.kumaraswamy ops.logistic ops.mixture ops.mixture_same_family ops.moving_stats
        ops.mvn_diag ops.mvn_diag_plus_low_rank ops.mvn_full_covariance ops.mvn_tril ops.negative_binomial
        ops.normal_conjugate_posteriors ops.onehot_categorical ops.poisson ops.quantized_distribution
        ops.relaxed_bernoulli ops.relaxed_onehot_categorical ops.sample_stats ops.seed_stream ops.sinh_arcsinh
        ops.vector_exponential_diag ops.vector_laplace_diag ops.wishart
    """,
}
# The same for parts inside of parts: where the modules are, and whose names they have.
_INNER_PARTS = {
    "contrib.distributions.python.ops.bijectors": (
        "contrib.distributions.bijectors",
        """
        absolute_value affine affine_linear_operator affine_scalar batch_normalization chain cholesky_outer_product
        conditional_bijector exp fill_triangular gumbel inline invert kumaraswamy masked_autoregressive
        matrix_inverse_tril ordered permute power_transform real_nvp reshape scale_tril sigmoid sinh_arcsinh
        softmax_centered softplus softsign square transform_diagonal weibull
        """,
    ),
    "contrib.losses.python.metric_learning": ("contrib.losses.metric_learning", "metric_loss_ops"),
}
for _part, _modules in _PARTS.items():
    for _module in _modules.split():
        _LENDERS[f"{_part}.python.{_module}"] = (_part, "")
for _place, (_part, _modules) in _INNER_PARTS.items():
    for _module in _modules.split():
        _LENDERS[f"{_place}.{_module}"] = (_part,)
# Parts of `tf.contrib` that many scripts import and few use: they are there, and say of each name that it is not.
_EMPTY = """
    batching bigtable boosted_trees checkpoint cloud coder factorization ffmpeg fused_conv gdr grid_rnn hadoop
    ignite kafka kinesis labeled_tensor libsvm linear_optimizer lite meta_graph_transform
    mpi_collectives ndlstm nearest_neighbor optimizer_v2 periodic_resample proto quantization rate
    receptive_field recurrent reduce_slice_ops remote_fused_graph rpc saved_model specs stat_summarizer
    tensor_forest tensorrt timeseries verbs
"""
for _module in _EMPTY.split():
    _LENDERS[f"contrib.{_module}"] = ()
for _module, _lenders in _LENDERS.items():
    publish_module(_module, *_lenders)
for _kind in ("uniform", "normal"):
    publish(find(f"random.stateless_{_kind}"), f"contrib.stateless.stateless_random_{_kind}")
# Names of before for what has another name now.
_ALIASES = {
    "contrib.checkpoint.CheckpointManager": "train.CheckpointManager",
    "contrib.distribute.DistributionStrategy": "distribute.Strategy",
    "contrib.distribute.DistributionStrategyExtended": "distribute.StrategyExtended",
    "contrib.distribute.ReductionToOneDeviceCrossDeviceOps": "distribute.ReductionToOneDevice",
    "contrib.distribute.get_distribution_strategy": "distribute.get_strategy",
    "contrib.distribute.has_distribution_strategy": "distribute.has_strategy",
}
publish_lazily(lambda full: find(_ALIASES[full]), *_ALIASES)
