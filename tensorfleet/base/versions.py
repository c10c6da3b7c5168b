"""The version of TensorFlow that scripts see, and our own."""

from __future__ import annotations

from tensorfleet.base.naming import publish

FLEET_VERSION = "0.2.0"  # our own, also that of the package: pyproject.toml reads it here
# Scripts compare these with "1.x" to choose an API: they must choose the one we have.
VERSION = "1.15.0"
GIT_VERSION = "v1.15.0-tensorfleet"
COMPILER_VERSION = "xla"
GRAPH_DEF_VERSION = 134
GRAPH_DEF_VERSION_MIN_CONSUMER = 0
GRAPH_DEF_VERSION_MIN_PRODUCER = 0

publish(VERSION, "VERSION", "version.VERSION", "__version__")
publish(FLEET_VERSION, "fleet.__version__")
publish(GIT_VERSION, "GIT_VERSION", "version.GIT_VERSION", "__git_version__")
publish(COMPILER_VERSION, "COMPILER_VERSION", "version.COMPILER_VERSION", "__compiler_version__")
publish(GRAPH_DEF_VERSION, "GRAPH_DEF_VERSION", "version.GRAPH_DEF_VERSION")
publish(
    GRAPH_DEF_VERSION_MIN_CONSUMER, "GRAPH_DEF_VERSION_MIN_CONSUMER", "version.GRAPH_DEF_VERSION_MIN_CONSUMER"
)
publish(
    GRAPH_DEF_VERSION_MIN_PRODUCER, "GRAPH_DEF_VERSION_MIN_PRODUCER", "version.GRAPH_DEF_VERSION_MIN_PRODUCER"
)
