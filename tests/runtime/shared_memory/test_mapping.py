"""Memory that processes share: what it is made of, and that it can be used whatever the system offers."""

import gc
import mmap
import os
import re

import numpy as np
import pytest

from tensorfleet.runtime.shared_memory import mapping

LARGE = 8 << 20


def mapped_at(memory) -> int:
    return np.frombuffer(memory, np.uint8).ctypes.data


def is_mapped(address: int) -> bool:
    with open("/proc/self/maps", encoding="ascii") as f:
        for line in f:
            begin, end = (int(text, 16) for text in re.match("([0-9a-f]+)-([0-9a-f]+)", line).groups())
            if begin <= address < end:
                return "memfd" in line
    return False


@pytest.mark.parametrize("size", [1, mmap.PAGESIZE, mapping.room(5_000_001), LARGE])
def test_what_one_writes_another_reads(size):
    descriptor, memory = mapping.make(size)
    other = mapping.mapped(descriptor, size)
    os.close(descriptor)
    assert len(memory) == len(other) == size
    memory[size - 1] = 7
    assert other[size - 1] == 7
    other[0] = 9
    assert np.frombuffer(memory, np.uint8)[0] == 9


@pytest.mark.parametrize("advice", [0, -1])
def test_memory_is_usable_when_the_system_has_no_large_pages(monkeypatch, advice):
    class Refuses:
        def __init__(self, real):
            self.mmap, self.munmap = real.mmap, real.munmap
            self.asked = []

        def madvise(self, address, size, what):
            self.asked.append(what)
            return advice

    system = Refuses(mapping._system())
    monkeypatch.setattr(mapping, "_system", lambda: system)
    descriptor, memory = mapping.make(LARGE)
    os.close(descriptor)
    array = np.frombuffer(memory, np.uint8)
    array[:] = 5
    assert array.sum() == 5 * LARGE
    assert len(system.asked) == (1 if advice == 0 else 2)


def test_large_memory_begins_where_large_pages_do():
    descriptor, memory = mapping.make(LARGE)
    other = mapping.mapped(descriptor, LARGE)
    os.close(descriptor)
    assert mapped_at(memory) % (2 << 20) == 0
    assert mapped_at(other) % (2 << 20) == 0


def test_memory_stays_while_anything_of_it_is_held_and_no_longer():
    descriptor, memory = mapping.make(LARGE)
    os.close(descriptor)
    address = mapped_at(memory)
    held = np.frombuffer(memory, np.uint8)[100:200][::2]
    del memory
    gc.collect()
    assert is_mapped(address)
    held[:] = 1
    del held
    gc.collect()
    assert not is_mapped(address)


def test_what_cannot_be_mapped_is_an_error():
    descriptor = os.open(os.devnull, os.O_RDONLY)
    for size in (mmap.PAGESIZE, LARGE):
        with pytest.raises((OSError, ValueError)):
            mapping.mapped(descriptor, size)
    os.close(descriptor)


def test_memory_attributes_lead_from_an_array_to_its_owner():
    for size in (mmap.PAGESIZE, LARGE):
        descriptor, memory = mapping.make(size)
        os.close(descriptor)
        memory.home = "here"
        assert np.ndarray((3,), np.float32, memory, 64).base.home == "here"
