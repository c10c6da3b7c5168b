"""TensorFleet: distributed TensorFlow 1.x on XLA. Use it as `import tensorfleet as tf`."""

import sys as _sys

from tensorfleet import names as _modules
from tensorfleet.base import naming as _api

_modules.load()
_api.install(_sys.modules[__name__])
_modules.alias_version_1()
