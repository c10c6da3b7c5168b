# Written by tools/make_stubs.py.
from tensorfleet.contrib.factorization import python as python
from tensorfleet_legacy.contrib.factorization.clustering_ops import KMeans as KMeans
from tensorfleet_legacy.contrib.factorization.factorization_ops import WALSModel as WALSModel
from tensorfleet_legacy.estimator.canned.kmeans import ContribKMeansClustering as _KMeansClustering
import typing
KMeansClustering = _KMeansClustering
def __getattr__(name: str) -> typing.Any: ...
