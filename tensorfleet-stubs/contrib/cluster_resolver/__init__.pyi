# Written by tools/make_stubs.py.
from tensorfleet.cluster.membership.clouds import GCEClusterResolver as GCEClusterResolver
from tensorfleet.cluster.membership.clouds import KubernetesClusterResolver as KubernetesClusterResolver
from tensorfleet.cluster.membership.resolvers import ClusterResolver as ClusterResolver
from tensorfleet.cluster.membership.resolvers import SimpleClusterResolver as SimpleClusterResolver
from tensorfleet.cluster.membership.resolvers import TFConfigClusterResolver as TFConfigClusterResolver
from tensorfleet.cluster.membership.resolvers import UnionResolver as UnionResolver
from tensorfleet.cluster.membership.slurm import SlurmClusterResolver as SlurmClusterResolver
from tensorfleet.contrib.cluster_resolver import python as python
