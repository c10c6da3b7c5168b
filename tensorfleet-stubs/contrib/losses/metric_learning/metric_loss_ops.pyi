# Written by tools/make_stubs.py.
from tensorfleet_legacy.contrib.losses.metric_loss_ops import pairwise_distance as pairwise_distance
from tensorfleet_legacy.contrib.losses.metric_loss_ops_cluster import compute_clustering_score as compute_clustering_score
