"""How far workers may be apart: the values of `consistency=`."""

from __future__ import annotations

import re
from dataclasses import dataclass

ASP, BSP, SSP = "asp", "bsp", "ssp"


@dataclass(frozen=True)
class Consistency:
    """`asp`: nobody waits. `bsp`: all push together. `ssp`: nobody is more than `bound` pushes ahead of the slowest."""

    kind: str
    bound: int = 0

    @classmethod
    def read(cls, text: object) -> Consistency:
        """The meaning of "asp", "bsp" or "ssp:4"; ValueError for anything else."""
        if text in (ASP, BSP):
            return cls(str(text))
        match = re.fullmatch(r"ssp:(\d{1,9})", text) if isinstance(text, str) else None
        if match is None:
            raise ValueError(
                f"consistency must be 'asp', 'bsp' or 'ssp:N' with the pushes that a worker may be ahead, such as "
                f"'ssp:4', not {text!r}."
            )
        return cls(SSP, int(match[1]))

    def __str__(self) -> str:
        return f"{self.kind}:{self.bound}" if self.kind == SSP else self.kind
