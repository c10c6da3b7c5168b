"""TensorFlow's messages, wire-compatible, under our own package name.

`protos.GraphDef`, `protos.ConfigProto` and so on load the module that defines them on first use, and
nothing before that: most processes need only a few of these, and start-up time is felt by everyone.
The modules themselves (`protos.types_pb2`) are reached the same way.
"""

from importlib import import_module

from tensorfleet.base.protos._index import MODULE_OF

__all__ = sorted(MODULE_OF)


def __getattr__(name: str) -> object:
    if name in MODULE_OF:
        value = getattr(import_module(f"{__name__}.{MODULE_OF[name]}"), name)
    elif name in MODULE_OF.values():
        value = import_module(f"{__name__}.{name}")
    else:
        raise AttributeError(f"module {__name__!r} has no message or enum {name!r}")
    globals()[name] = value  # the next access does not come through here
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *MODULE_OF, *MODULE_OF.values()})
