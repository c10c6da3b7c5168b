"""The modules of AutoGraph's compiler: libraries import all of them for one function that few programs call.

TensorFleet rewrites functions in ways of its own (`tensorfleet.autograph`). What a library derives from while it is
imported is here; anything else says that it is missing when it is used.
"""

from __future__ import annotations

import ast
from typing import Any

from tensorfleet.base.naming import export, publish_module

_MODULES = """
    converters.break_statements converters.continue_statements converters.return_statements core.naming
    pyct.anno pyct.compiler pyct.inspect_utils pyct.parser pyct.qual_names pyct.templates pyct.transformer
    pyct.common_transformers.anf
"""
for _module in _MODULES.split():
    publish_module(f"python.autograph.{_module}")


@export("python.autograph.pyct.transformer.Base")
class Transformer(ast.NodeTransformer):
    """Rewrites the tree of a function, knowing in which context it stands."""

    def __init__(self, ctx: Any) -> None:
        self.ctx = ctx
