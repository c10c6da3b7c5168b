# Written by tools/make_stubs.py.
from tensorfleet.api.data.shard_dataset import shard_dataset as shard_dataset
from tensorfleet.api.train.dropped_gradients import dropped_gradients as dropped_gradients
from tensorfleet.cluster.transport.token import secure as secure
from tensorfleet.fleet.consistency.optimizer import FleetOptimizer as _Optimizer
from tensorfleet.fleet.durable import durable as durable
from tensorfleet.fleet.jax_functions import jax_op as jax_op
from tensorfleet.fleet.jax_parameters import jax_from_checkpoint as jax_from_checkpoint
from tensorfleet.fleet.jax_parameters import jax_values as jax_values
from tensorfleet.fleet.jax_parameters import jax_variables as jax_variables
from tensorfleet.fleet.library.filters import Bits as Bits
from tensorfleet.fleet.library.filters import Significant as Significant
from tensorfleet.fleet.library.filters import TopK as TopK
from tensorfleet.fleet.library.join import Cluster as Cluster
from tensorfleet.fleet.library.join import join as join
from tensorfleet.fleet.library.join import local as local
from tensorfleet.fleet.library.parameters import Parameters as Parameters
from tensorfleet.fleet.library.table import RowTable as RowTable
from tensorfleet.fleet.optax_optimizer import OptaxOptimizer as OptaxOptimizer
from tensorfleet.fleet.placement import explain_placement as explain_placement
from tensorfleet.fleet.stale_reads import stale_reads as stale_reads
from tensorfleet.fleet.staleness import StalenessOptimizer as StalenessOptimizer
from tensorfleet.fleet.statistics import stats as stats
from tensorfleet.fleet.stopping import stop_server as stop_server
from tensorfleet.fleet.timeline import Timeline as Timeline
from tensorfleet.fleet.tracing import trace as trace
import builtins
Optimizer = _Optimizer
__version__: builtins.str
