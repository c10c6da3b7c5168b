"""The instructions that this machine's processor has."""

from functools import cache


@cache
def has_avx512() -> bool:
    """Whether it computes with 512 bits at a time. Only Linux is asked; elsewhere the answer is no."""
    try:
        with open("/proc/cpuinfo") as file:
            return "avx512f" in file.read()
    except OSError:
        return False
