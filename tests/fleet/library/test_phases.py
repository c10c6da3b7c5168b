"""An update in parts gives what the whole gives, with as few rounds of messages as it needs."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from tensorfleet.fleet.library import phases
from tensorfleet.fleet.library.phases import SHARED, Inseparable, Phases

SHAPES = [(6, 4), (5,), (3, 2), ()]


class Divided:
    """An optimizer of some arrays, each on a server, as the library would cut it."""

    def __init__(self, optimizer, servers):
        self.count = len(SHAPES)
        self.optimizer = optimizer
        self.home = [i % servers for i in range(self.count)]
        self.servers = range(servers)
        params = [jax.ShapeDtypeStruct(s, np.float32) for s in SHAPES]
        state = jax.eval_shape(optimizer.init, params)
        leaves, self.tree = jax.tree.flatten(state)
        numbered = jax.tree.unflatten(self.tree, list(range(len(leaves))))
        owners = optax.tree_utils.tree_map_params(
            optimizer,
            lambda _, i: i,
            numbered,
            list(range(self.count)),
            transform_non_params=lambda _: SHARED,
        )
        self.owners = jax.tree.leaves(owners)
        self.flow = phases.trace(self.update, [*params, *params, *leaves])
        of_state = [SHARED if i == SHARED else self.home[i] for i in self.owners]
        self.homes = [*self.home, *self.home, *of_state]
        self.phases = Phases(self.flow, self.homes, self.homes[self.count :])

    def update(self, *values):
        g, p = list(values[: self.count]), list(values[self.count : 2 * self.count])
        steps, new = self.optimizer.update(g, jax.tree.unflatten(self.tree, values[2 * self.count :]), p)
        return [*optax.apply_updates(p, steps), *jax.tree.leaves(new)]

    def run(self, values):
        """The outputs, computed by each server from what it has and what was sent."""
        crossing, results = {}, {}
        for phase in range(self.phases.count):
            sent = {}
            for server in self.servers:
                own = {
                    v: value
                    for v, value, home in zip(self.flow.inputs, values, self.homes, strict=True)
                    if home in (server, SHARED)
                } | {v: crossing[v] for v in self.phases.known(phase)}
                last = phase == self.phases.count - 1
                numbered = [
                    (i, v)
                    for i, v in enumerate(self.flow.outputs)
                    if self.homes[self.count + i] in (server, SHARED)
                ]
                wanted = [v for _, v in numbered] if last else self.phases.sent(phase, server)
                made = self.phases.program(list(own), wanted)(*own.values())
                if last:
                    results |= dict(zip([i for i, _ in numbered], made, strict=True))
                else:
                    sent |= dict(zip(wanted, made, strict=True))
            crossing |= sent
        return [results[i] for i in range(len(results))]


def initial(divided):
    rng = np.random.default_rng(0)
    params = [rng.standard_normal(s).astype(np.float32) for s in SHAPES]
    grads = [rng.standard_normal(s).astype(np.float32) for s in SHAPES]
    return [*grads, *params, *jax.tree.leaves(divided.optimizer.init([jnp.asarray(p) for p in params]))]


OPTIMIZERS = {
    "sgd": (optax.sgd(0.1, momentum=0.9), 1),
    "adamw": (optax.adamw(1e-3), 1),
    "schedule": (optax.sgd(optax.cosine_decay_schedule(0.1, 100)), 1),
    "norm": (optax.chain(optax.clip_by_global_norm(0.5), optax.adam(1e-2)), 2),
    "norm twice": (
        optax.chain(optax.clip_by_global_norm(1.0), optax.clip_by_global_norm(0.5), optax.sgd(1.0)),
        3,
    ),
    "lamb": (optax.lamb(1e-2), 1),
    "adafactor": (optax.adafactor(1e-2), 1),
    "finite": (optax.apply_if_finite(optax.adam(1e-2), 3), None),
}


@pytest.mark.parametrize("name", OPTIMIZERS)
@pytest.mark.parametrize("servers", [1, 2, 3])
def test_the_parts_compute_what_the_whole_computes(name, servers):
    optimizer, rounds = OPTIMIZERS[name]
    divided = Divided(optimizer, servers)
    values = initial(divided)
    for ours, wanted in zip(divided.run(values), divided.update(*values), strict=True):
        np.testing.assert_allclose(ours, wanted, rtol=2e-6, atol=1e-7)
    if rounds is not None:
        assert divided.phases.count == (rounds if servers > 1 else 1)


def splittable(optimizer):
    divided = Divided(optimizer, 1)
    of_state = [None if i == SHARED else i for i in divided.owners]
    return phases.splittable(divided.flow, [*range(divided.count), *range(divided.count), *of_state])


@pytest.mark.parametrize("name", ["sgd", "adamw", "schedule", "norm"])
def test_arrays_whose_elements_are_updated_one_by_one_may_be_split(name):
    assert splittable(OPTIMIZERS[name][0]) >= {0, 1, 2}


@pytest.mark.parametrize(
    "optimizer",
    [
        optax.lamb(1e-2),
        optax.adafactor(1e-2),
        optax.adaptive_grad_clip(0.1),
        optax.clip_by_block_rms(1.0),
        optax.centralize(),
        optax.noisy_sgd(0.1, key=jax.random.key(0)),
    ],
    ids=["lamb", "adafactor", "adaptive clip", "block rms", "centralize", "noise"],
)
def test_arrays_whose_update_looks_at_the_whole_array_may_not_be_split(optimizer):
    assert not splittable(optimizer) & {0, 2}


def test_an_optimizer_that_needs_large_arrays_of_several_servers_is_inseparable():
    def update(a, b):
        return [jnp.where(a.sum() > 0, a @ b, a), b]

    array = jax.ShapeDtypeStruct((40, 40), np.float32)
    with pytest.raises(Inseparable, match="'dot_general' takes whole arrays of several servers"):
        Phases(phases.trace(update, [array, array]), [0, 1], [0, 1])
