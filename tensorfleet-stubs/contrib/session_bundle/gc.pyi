# Written by tools/make_stubs.py.
from tensorfleet_legacy.estimator.gc import Path as Path
from tensorfleet_legacy.estimator.gc import get_paths as get_paths
from tensorfleet_legacy.estimator.gc import largest_export_versions as largest_export_versions
from tensorfleet_legacy.estimator.gc import mod_export_version as mod_export_version
from tensorfleet_legacy.estimator.gc import negation as negation
from tensorfleet_legacy.estimator.gc import one_of_every_n_export_versions as one_of_every_n_export_versions
from tensorfleet_legacy.estimator.gc import union as union
