"""TensorFleet: distributed TensorFlow 1.x on XLA. Use it as `import tensorfleet as tf`."""

import sys as _sys

from tensorfleet import api as _api
from tensorfleet import modules as _modules

_modules.load()
_api.install(_sys.modules[__name__])
