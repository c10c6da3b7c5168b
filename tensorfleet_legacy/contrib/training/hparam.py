"""`tf.contrib.training.HParams`: named hyperparameters that keep their types."""

from __future__ import annotations

import json
import numbers
import re
from typing import Any

from tensorfleet.base.naming import export

_ASSIGNMENT = re.compile(
    r"""
    (?P<name>[a-zA-Z][\w.]*)      # variable name: "var" or "x"
    (\[\s*(?P<index>\d+)\s*\])?   # (optional) index: "1" or None
    \s*=\s*
    ((?P<val>[^,\[]*)             # single value: "a" or None
     |
     \[(?P<vals>[^\]]*)\])        # list of values: None or "1,2,3"
    ($|,\s*)""",
    re.VERBOSE,
)
_BOOLS = {"true": True, "True": True, "1": True, "false": False, "False": False, "0": False}


def _parse_one(name: str, kind: type, text: str, everything: str) -> Any:
    """One value of a type, from text."""
    try:
        if kind is bool:
            return _BOOLS[text]
        return kind(text)
    except (ValueError, KeyError) as e:
        raise ValueError(
            f"Could not parse hparam '{name}' of type '{kind.__name__}' with value '{text}' in {everything}"
        ) from e


@export("contrib.training.parse_values")
def parse_values(values: str, type_map: dict[str, type], ignore_unknown: bool = False) -> dict[str, Any]:
    """Reads "name=value,list=[1,2],list[0]=3" into a dict, each value of the type `type_map` gives it.

    An assignment to one element comes back as a dict from index to value.
    """
    result: dict[str, Any] = {}
    position = 0
    while position < len(values):
        match = _ASSIGNMENT.match(values, position)
        if match is None:
            raise ValueError(f"Malformed hyperparameter value: {values[position:]}")
        position = match.end()
        name, index = match["name"], match["index"]
        if name not in type_map:
            if ignore_unknown:
                continue
            raise ValueError(f"Unknown hyperparameter type for {name}")
        if match["val"] is not None:
            value = _parse_one(name, type_map[name], match["val"].strip(), values)
            _assign(result, name, index, value, values)
        elif index is not None:
            raise ValueError(f"Assignment of a list to a list index in {values}")
        else:
            items = [v.strip() for v in match["vals"].split(",") if v.strip()]
            _assign(result, name, None, [_parse_one(name, type_map[name], v, values) for v in items], values)
    return result


def _assign(found: dict[str, Any], name: str, index: str | None, value: Any, everything: str) -> None:
    if index is None:
        if name in found:
            raise ValueError(f"Multiple assignments to variable '{name}' in {everything}")
        found[name] = value
        return
    elements = found.setdefault(name, {})
    if not isinstance(elements, dict) or int(index) in elements:
        raise ValueError(f"Multiple assignments to variable '{name}' in {everything}")
    elements[int(index)] = value


def _fitted(name: str, kind: type, value: Any) -> Any:
    """The value as the parameter's type; ValueError when that would lose something."""
    problem = f"Could not cast hparam '{name}' of type '{kind}' from value {value!r}"
    if kind is type(None):
        return value
    if issubclass(kind, (str, bytes)) != isinstance(value, (str, bytes)):
        raise ValueError(problem)
    if issubclass(kind, bool) != isinstance(value, bool):
        raise ValueError(problem)
    if issubclass(kind, numbers.Integral) and not isinstance(value, numbers.Integral):
        raise ValueError(problem)
    if issubclass(kind, numbers.Number) and not isinstance(value, numbers.Number):
        raise ValueError(problem)
    return kind(value)


@export("contrib.training.HParams")
class HParams:
    """A set of named hyperparameters, read as attributes: `hparams.learning_rate`.

    A parameter is a number, a text, a bool or a list of them; it keeps the type it was first given.
    """

    def __init__(self, hparam_def: Any = None, model_structure: Any = None, **kwargs: Any) -> None:
        if hparam_def is not None:
            raise ValueError("TensorFleet reads no HParamDef messages; use parse_json instead.")
        self._hparam_types: dict[str, tuple[type, bool]] = {}
        self._model_structure = model_structure
        for name, value in kwargs.items():
            self.add_hparam(name, value)

    def add_hparam(self, name: str, value: Any) -> None:
        """Adds a parameter; ValueError when there is one of that name."""
        if getattr(self, name, None) is not None:
            raise ValueError(f"Hyperparameter name is reserved: {name}")
        if isinstance(value, (list, tuple)):
            if not value:
                raise ValueError(f"Multi-valued hyperparameters cannot be empty: {name}")
            self._hparam_types[name] = (type(value[0]), True)
        else:
            self._hparam_types[name] = (type(value), False)
        setattr(self, name, value)

    def set_hparam(self, name: str, value: Any) -> None:
        """Changes a parameter; ValueError when the value is of another type."""
        kind, is_list = self._hparam_types[name]
        if isinstance(value, list):
            if not is_list:
                raise ValueError(f"Must not pass a list for single-valued parameter: {name}")
            setattr(self, name, [_fitted(name, kind, v) for v in value])
        else:
            if is_list:
                raise ValueError(f"Must pass a list for multi-valued parameter: {name}.")
            setattr(self, name, _fitted(name, kind, value))

    def del_hparam(self, name: str) -> None:
        """Removes a parameter if there is one."""
        if hasattr(self, name):
            delattr(self, name)
            del self._hparam_types[name]

    def parse(self, values: str) -> HParams:
        """Changes parameters by text such as "learning_rate=0.1,layers=[1,2]"."""
        kinds = {name: kind for name, (kind, _) in self._hparam_types.items()}
        return self.override_from_dict(parse_values(values, kinds))

    def override_from_dict(self, values_dict: dict[str, Any]) -> HParams:
        """Changes the parameters named in a dict."""
        for name, value in values_dict.items():
            if isinstance(value, dict) and name in self._hparam_types:
                whole = list(getattr(self, name))
                for index, item in value.items():
                    whole[index] = item
                value = whole
            self.set_hparam(name, value)
        return self

    def set_from_map(self, values_map: dict[str, Any]) -> HParams:
        """The old name of `override_from_dict`."""
        return self.override_from_dict(values_map)

    def parse_json(self, values_json: str) -> HParams:
        """Changes parameters by a JSON object."""
        return self.override_from_dict(json.loads(values_json))

    def to_json(self, indent: Any = None, separators: Any = None, sort_keys: bool = False) -> str:
        """All parameters as a JSON object; functions are left out."""
        plain = {name: value for name, value in self.values().items() if not callable(value)}
        return json.dumps(plain, indent=indent, separators=separators, sort_keys=sort_keys)

    def values(self) -> dict[str, Any]:
        """All parameters by name."""
        return {name: getattr(self, name) for name in self._hparam_types}

    def get(self, key: str, default: Any = None) -> Any:
        """A parameter, or `default` (which must be of the parameter's type when there is one)."""
        if key not in self._hparam_types:
            return default
        if default is not None:
            kind, is_list = self._hparam_types[key]
            if isinstance(default, list) != is_list:
                raise ValueError(f"Hparam '{key}' of type '{kind}' is incompatible with default={default}")
            for item in default if is_list else [default]:
                _fitted(key, kind, item)
        return getattr(self, key)

    def set_model_structure(self, model_structure: Any) -> None:
        """Keeps any object beside the parameters."""
        self._model_structure = model_structure

    def get_model_structure(self) -> Any:
        """The object given to `set_model_structure`."""
        return self._model_structure

    def __contains__(self, key: str) -> bool:
        return key in self._hparam_types

    def __str__(self) -> str:
        return str(sorted(self.values().items()))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self})"
