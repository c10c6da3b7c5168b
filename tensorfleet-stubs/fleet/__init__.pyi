# Written by tools/make_stubs.py.
from tensorfleet.api.train.sync_replicas import dropped_gradients as dropped_gradients
from tensorfleet.cluster.transport.token import secure as secure
from tensorfleet.fleet.consistency.optimizer import FleetOptimizer as _Optimizer
from tensorfleet.fleet.placement import explain_placement as explain_placement
from tensorfleet.fleet.staleness import StalenessOptimizer as StalenessOptimizer
from tensorfleet.fleet.statistics import stats as stats
from tensorfleet.fleet.stopping import stop_server as stop_server
from tensorfleet.fleet.timeline import Timeline as Timeline
from tensorfleet.fleet.tracing import trace as trace
import builtins
Optimizer = _Optimizer
__version__: builtins.str
