"""Options of a profile, built step by step."""

from __future__ import annotations

import copy
from typing import Any

_MAX_DEPTH = 10000


def defaults() -> dict[str, Any]:
    """The options of a profile that nobody changed."""
    return {
        "max_depth": 100,
        "min_bytes": 0,
        "min_micros": 0,
        "min_params": 0,
        "min_float_ops": 0,
        "min_occurrence": 0,
        "order_by": "name",
        "account_type_regexes": [".*"],
        "start_name_regexes": [".*"],
        "trim_name_regexes": [],
        "show_name_regexes": [".*"],
        "hide_name_regexes": [],
        "account_displayed_op_only": False,
        "select": ["micros"],
        "step": -1,
        "output": "stdout",
    }


class ProfileOptionBuilder:
    """Options for `tf.profiler.profile`; every method returns the builder, `build()` the options."""

    def __init__(self, options: dict | None = None) -> None:
        self._options: dict[str, Any] = defaults() if options is None else copy.deepcopy(options)

    @staticmethod
    def trainable_variables_parameter() -> dict[str, Any]:
        """Options that count the parameters of the trainable variables."""
        return {
            **defaults(),
            "max_depth": _MAX_DEPTH,
            "account_type_regexes": ["_trainable_variables"],
            "account_displayed_op_only": True,
            "select": ["params"],
        }

    @staticmethod
    def float_operation() -> dict[str, Any]:
        """Options that count float operations."""
        return {
            **defaults(),
            "max_depth": _MAX_DEPTH,
            "min_float_ops": 1,
            "order_by": "float_ops",
            "account_displayed_op_only": True,
            "select": ["float_ops"],
        }

    @staticmethod
    def time_and_memory(
        min_micros: int = 1,
        min_bytes: int = 1,
        min_accelerator_micros: int = 0,
        min_cpu_micros: int = 0,
        min_peak_bytes: int = 0,
        min_residual_bytes: int = 0,
        min_output_bytes: int = 0,
    ) -> dict[str, Any]:
        """Options that show the times of a run and the bytes of its tensors."""
        return {
            **defaults(),
            **locals(),
            "max_depth": _MAX_DEPTH,
            "order_by": "micros",
            "account_displayed_op_only": True,
            "select": ["micros", "bytes"],
        }

    def _with(self, **options: Any) -> ProfileOptionBuilder:
        self._options.update(options)
        return self

    def _with_all(self, given: dict[str, Any]) -> ProfileOptionBuilder:
        """Sets the options that are the arguments of a method, from its `locals()`."""
        return self._with(**{k: copy.copy(v) for k, v in given.items() if k != "self"})

    def build(self) -> dict[str, Any]:
        """The options."""
        return copy.deepcopy(self._options)

    def with_max_depth(self, max_depth: int) -> ProfileOptionBuilder:
        """Shows so many levels."""
        return self._with(max_depth=max_depth)

    def with_min_memory(
        self,
        min_bytes: int = 0,
        min_peak_bytes: int = 0,
        min_residual_bytes: int = 0,
        min_output_bytes: int = 0,
    ) -> ProfileOptionBuilder:
        """Shows nodes of at least so many bytes."""
        return self._with_all(locals())

    def with_min_execution_time(
        self, min_micros: int = 0, min_accelerator_micros: int = 0, min_cpu_micros: int = 0
    ) -> ProfileOptionBuilder:
        """Shows nodes that took at least so long."""
        return self._with_all(locals())

    def with_min_parameters(self, min_params: int) -> ProfileOptionBuilder:
        """Shows nodes of at least so many parameters."""
        return self._with(min_params=min_params)

    def with_min_occurrence(self, min_occurrence: int) -> ProfileOptionBuilder:
        """Shows types that occur at least so often."""
        return self._with(min_occurrence=min_occurrence)

    def with_min_float_operations(self, min_float_ops: int) -> ProfileOptionBuilder:
        """Shows nodes of at least so many float operations."""
        return self._with(min_float_ops=min_float_ops)

    def with_accounted_types(self, account_type_regexes: Any) -> ProfileOptionBuilder:
        """Counts nodes of these types only."""
        return self._with(account_type_regexes=copy.copy(account_type_regexes))

    def with_node_names(
        self,
        start_name_regexes: Any = None,
        show_name_regexes: Any = None,
        hide_name_regexes: Any = None,
        trim_name_regexes: Any = None,
    ) -> ProfileOptionBuilder:
        """Shows nodes by their names."""
        return self._with_all({k: v for k, v in locals().items() if v is not None})

    def account_displayed_op_only(self, is_true: bool) -> ProfileOptionBuilder:
        """Whether only what is shown counts."""
        return self._with(account_displayed_op_only=is_true)

    def with_empty_output(self) -> ProfileOptionBuilder:
        """Prints nothing."""
        return self._with(output="none")

    def with_stdout_output(self) -> ProfileOptionBuilder:
        """Prints the profile."""
        return self._with(output="stdout")

    def with_file_output(self, outfile: str) -> ProfileOptionBuilder:
        """Writes the profile into a file."""
        return self._with(output=f"file:outfile={outfile}")

    def with_timeline_output(self, timeline_file: str) -> ProfileOptionBuilder:
        """Writes a timeline into a file."""
        return self._with(output=f"timeline:outfile={timeline_file}")

    def with_pprof_output(self, pprof_file: str) -> ProfileOptionBuilder:
        """Writes a profile for pprof into a file."""
        return self._with(output=f"pprof:outfile={pprof_file}")

    def order_by(self, attribute: str) -> ProfileOptionBuilder:
        """Shows nodes in the order of an attribute."""
        return self._with(order_by=attribute)

    def select(self, attributes: Any) -> ProfileOptionBuilder:
        """Shows these attributes."""
        return self._with(select=copy.copy(attributes))

    def with_step(self, step: int) -> ProfileOptionBuilder:
        """Shows the times of one step."""
        return self._with(step=step)
