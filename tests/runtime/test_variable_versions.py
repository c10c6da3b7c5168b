"""How stale a step is follows from the versions that it has read and changed."""

import numpy as np
import pytest

import tensorfleet as tf
from tensorfleet.runtime.resources import VariableStore
from tensorfleet.runtime.variable_packs import VariablePack, release
from tensorfleet.runtime.variable_versions import VariableVersions, WatchedVariables


def variable():
    store = VariableStore("v", tf.float32)
    change(store)
    return store


def watching(*stores):
    versions = VariableVersions()
    versions.watched = frozenset(stores)
    return versions


def change(store):
    with store.lock:
        store.swap(np.zeros(2, np.float32))


def test_the_updates_between_a_read_and_the_update_are_the_staleness():
    store = variable()
    versions = watching(store)
    versions.note_read({store})
    for _ in range(3):
        change(store)
    versions.note_update({store})
    assert versions.staleness() == 3


def test_of_several_variables_the_one_with_the_most_updates_counts():
    calm, busy = variable(), variable()
    versions = watching(calm, busy)
    versions.note_read({calm, busy})
    for _ in range(2):
        change(busy)
    versions.note_update({calm, busy})
    assert versions.staleness() == 2


def test_only_the_first_read_and_the_first_update_of_a_step_count():
    store = variable()
    versions = watching(store)
    versions.note_read({store})
    for _ in range(4):
        versions.note_update({store})
        change(store)
        versions.note_read({store})
    assert versions.staleness() == 0


def test_a_variable_that_is_read_after_the_update_has_no_staleness():
    store = variable()
    versions = watching(store)
    versions.note_update({store})
    change(store)
    versions.note_read({store})
    assert versions.staleness() is None


def test_variables_that_are_only_read_or_only_updated_have_no_staleness():
    one, other = variable(), variable()
    versions = watching(one, other)
    versions.note_read({one})
    versions.note_update({other})
    assert versions.staleness() is None


@pytest.fixture
def pack():
    stores = [variable() for _ in range(2)]
    held = [store.lock for store in stores]
    for lock in held:
        lock.acquire()
    result = VariablePack(stores, [(2,), (2,)], np.dtype(np.float32))
    assert result.begin(held)
    release(held)
    return result


def test_an_update_of_a_pack_is_no_update_by_others_for_its_other_variables(pack):
    first, second = pack.stores
    versions = watching(first, second)
    versions.note_read({first, second})
    with pack.lock:
        versions.note_update({first}, [pack])
        pack.replace(np.ones(4, np.float32))
        versions.note_update({second}, [pack])
    assert versions.staleness() == 0


def test_the_updates_of_a_pack_by_others_count(pack):
    versions = watching(*pack.stores)
    versions.note_read(set(pack.stores))
    with pack.lock:
        pack.replace(np.ones(4, np.float32))
        pack.replace(np.ones(4, np.float32))
        versions.note_update(set(pack.stores[1:]), [pack])
    assert versions.staleness() == 2


def test_a_pack_that_begins_again_does_not_count_its_former_updates_twice(pack):
    store = pack.stores[0]
    with pack.lock:
        pack.replace(np.ones(4, np.float32))
    before = store.updates
    held = [pack.lock]
    pack.lock.acquire()
    pack.dissolve(held)
    assert pack.begin(held)
    release(held)
    assert store.updates == before


def test_what_several_stages_have_seen_is_the_earliest_of_it():
    versions = VariableVersions()
    versions.add([(1, 7)], [])
    versions.add([(1, 5), (2, 1)], [(1, 9)])
    versions.add([], [(1, 8)])
    assert (versions.read, versions.updated) == ({1: 5, 2: 1}, {1: 8})
    assert versions.staleness() == 3


def test_variables_that_are_read_and_updated_are_watched_but_only_some_of_many():
    stores = [variable() for _ in range(1000)]
    watched = WatchedVariables()
    watched.add(stores[:500], ())
    watched.add((), stores[498:])
    assert watched.stores == set(stores[498:500])
    watched.add(stores, stores)
    assert watched.stores > set(stores[498:500]) and len(watched.stores) <= 16
    before = watched.stores
    watched.add(stores, stores)
    assert watched.stores >= before and len(watched.stores) <= 16
    assert watched.numbers() == {store.order for store in watched.stores}
