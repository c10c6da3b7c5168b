"""The packages of this project, to tell our files and classes from others."""

from __future__ import annotations

import os

# The annex has the names of TensorFlow that few programs use. It is installed beside us, or not at all.
NAMES = ("tensorfleet", "tensorfleet_legacy")
_ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
FOLDERS = tuple(os.path.join(_ROOT, name, "") for name in NAMES)
