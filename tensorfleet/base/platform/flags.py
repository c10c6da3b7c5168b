"""`tf.app.flags`: absl's flags, which may be read before the program has parsed them.

Loaded when first used.
"""

from __future__ import annotations

import functools
import re
import sys
from collections.abc import Callable, Iterator
from typing import Any

from absl import flags as _absl
from absl.flags import *  # noqa: F403

from tensorfleet.base import logging

_OLD_KEYWORDS = {"flag_name": "name", "default_value": "default", "docstring": "help"}
# absl's own, which many scripts define themselves: theirs are the ones that count.
_TAKEN = {"log_dir", "profile_file"}
_HELP = {f"-{dash}{name}" for name in ("help", "helpshort", "helpfull") for dash in ("", "-")}


class _Flags:
    """absl's FLAGS; the first flag read parses the command line."""

    def __init__(self, values: _absl.FlagValues) -> None:
        self.__dict__["_values"] = values

    def __getattr__(self, name: str) -> Any:
        values = self.__dict__["_values"]
        if not name.startswith("__") and name in values and not values.is_parsed():
            _parse_what_is_known(values)
        return getattr(values, name)

    def __setattr__(self, name: str, value: object) -> None:
        values = self.__dict__["_values"]
        if name in values or hasattr(type(values), name):
            setattr(values, name, value)
        else:
            self.__dict__[name] = value  # before absl a program could set what it had not defined

    def _parse_flags(self) -> None:
        """Parses the command line, as before absl scripts did before they printed all flags."""
        values = self.__dict__["_values"]
        if not values.is_parsed():
            _parse_what_is_known(values)

    def __delattr__(self, name: str) -> None:
        if name in self.__dict__:
            del self.__dict__[name]
        else:
            delattr(self.__dict__["_values"], name)

    def __call__(self, *args: Any, **kwargs: Any) -> list[str]:
        rest: list[str] = self.__dict__["_values"](*args, **kwargs)
        return rest

    def __dir__(self) -> list[str]:
        return dir(self.__dict__["_values"])

    def __getitem__(self, name: str) -> Any:
        return self.__dict__["_values"][name]

    def __setitem__(self, name: str, flag: _absl.Flag[Any]) -> None:
        self.__dict__["_values"][name] = flag

    def __contains__(self, name: str) -> bool:
        return name in self.__dict__["_values"]

    def __iter__(self) -> Iterator[str]:
        return iter(self.__dict__["_values"])

    def __len__(self) -> int:
        return len(self.__dict__["_values"])


def _parse_what_is_known(values: _absl.FlagValues) -> None:
    """Parses the command line for a program that has not done so.

    Other flags may be for `argparse`, which scripts use beside these: before TensorFlow 1.5 they were ignored.
    """
    arguments = [_completed(argument, values) for argument in sys.argv]
    if not _HELP.isdisjoint(arguments):
        from absl import app

        app.define_help_flags()
    rest = values(arguments, known_only=True)[1:]
    flags = rest[: rest.index("--")] if "--" in rest else rest
    unknown = dict.fromkeys(f.partition("=")[0] for f in flags if re.match("--?[A-Za-z]", f))
    if unknown:
        logging.warning(
            "Unknown command line flag%s %s: ignored, since no tf.app.flags.DEFINE_... before the first read of FLAGS "
            "defines %s. Is the name right?",
            "s" if len(unknown) > 1 else "",
            ", ".join(unknown),
            "them" if len(unknown) > 1 else "it",
        )


def _completed(argument: str, values: _absl.FlagValues) -> str:
    """An argument with its flag's whole name: before absl the beginning was enough, if of one flag only."""
    name, equals, value = argument.removeprefix("--").partition("=")
    if not argument.startswith("--") or not name or name in values:
        return argument
    fitting = [flag for flag in values if flag.startswith(name)]
    return f"--{fitting[0]}{equals}{value}" if len(fitting) == 1 else argument


FLAGS: Any = _Flags(_absl.FLAGS)  # type: ignore[no-redef]


def _as_scripts_call_it(define: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(define)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        if not _OLD_KEYWORDS.keys().isdisjoint(kwargs):
            logging.warning(
                "Use of the keyword argument names (flag_name, default_value, docstring) is deprecated, please use "
                "(name, default, help) instead."
            )
            kwargs = {_OLD_KEYWORDS.get(k, k): v for k, v in kwargs.items()}
        if (args[0] if args else kwargs.get("name")) in _TAKEN:
            from absl import app  # noqa: F401  defines them now, not after the script has

            kwargs.setdefault("allow_override", True)
        return _keeping_default(define, *args, **kwargs)

    return wrapper


def _keeping_default(define: Callable[..., Any], name: str, default: Any, *args: Any, **kwargs: Any) -> Any:
    """Defines a flag. A default of another type stays as it is, as it did before absl, which refuses it."""
    try:
        return define(name, default, *args, **kwargs)
    except (TypeError, ValueError, _absl.IllegalFlagValueError):
        if default is None or isinstance(default, str):
            raise  # of text the value is read, then and now
    holder = define(name, None, *args, **kwargs)
    flag = kwargs.get("flag_values", _absl.FLAGS)[name]
    flag.default = flag.value = default  # past the parser
    flag.default_as_str = repr(default)
    kind = flag.flag_type()
    logging.warning(
        "The default of the flag --%s is %r, which is not a %s. It is kept as it is; a value on the command line "
        "will be a %s.",
        name,
        default,
        kind,
        kind,
    )
    return holder


def _define_integer(name: str, default: Any, help: str, *args: Any, **kwargs: Any) -> Any:
    """A default such as `1e6`, as scripts from before absl have it, is the whole number it is."""
    if isinstance(default, float) and default.is_integer():
        default = int(default)
    return _absl.DEFINE_integer(name, default, help, *args, **kwargs)


# Help lists flags by the module that defines them, which is never this one.
_absl.disclaim_key_flags()


DEFINE_string = _as_scripts_call_it(_absl.DEFINE_string)
DEFINE_boolean = DEFINE_bool = _as_scripts_call_it(_absl.DEFINE_boolean)
DEFINE_float = _as_scripts_call_it(_absl.DEFINE_float)
DEFINE_integer = _as_scripts_call_it(functools.wraps(_absl.DEFINE_integer)(_define_integer))
FlagsError = _absl.Error
