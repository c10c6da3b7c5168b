"""`tf.app`: running a script's main function, with its flags."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from types import ModuleType

from tensorfleet.base.naming import export, publish_lazily


def _flags(name: str) -> ModuleType:
    return importlib.import_module("tensorfleet.base.platform.flags")


publish_lazily(_flags, "app.flags", "flags", "python.platform.flags")


@export("app.run", "python.platform.app.run")
def run(main: Callable[[list[str]], object] | None = None, argv: list[str] | None = None) -> None:
    """Parses the flags, calls `main(argv)` with the other arguments, and exits with its result.

    `main` is the calling script's when not given; flags that nobody defined are left for it.
    """
    from absl import app

    main = main or vars(sys.modules["__main__"])["main"]
    app.run(main=main, argv=argv, flags_parser=_parse)


def _parse(argv: list[str]) -> list[str]:
    from tensorfleet.base.platform.flags import FLAGS

    return FLAGS(argv, known_only=True)
