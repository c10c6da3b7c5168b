"""Makes `running`, and what it runs programs with, importable for the tests beside it."""

import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parent.parent / "launch")]
