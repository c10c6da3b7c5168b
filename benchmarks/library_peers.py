"""The other libraries of library.py: the same model by Ray, by PyTorch, and a table by Redis."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any

import numpy as np

HIDDEN, BATCH = 100, 100
RATE = 0.01


def batch_of(rank: int) -> tuple[np.ndarray, np.ndarray]:
    r = np.random.RandomState(rank)
    return r.rand(BATCH, 784).astype(np.float32), np.eye(10, dtype=np.float32)[r.randint(0, 10, BATCH)]


def flax_model() -> tuple[Callable[[], Any], Callable[..., Any]]:
    """Initial parameters, and a function from parameters and a batch to gradients."""
    import flax.linen as nn
    import jax
    import optax

    class Mlp(nn.Module):
        @nn.compact
        def __call__(self, x: Any) -> Any:
            return nn.Dense(10)(nn.relu(nn.Dense(HIDDEN)(x)))

    net = Mlp()

    def loss(params: Any, x: Any, y: Any) -> Any:
        return optax.softmax_cross_entropy(net.apply(params, x), y).mean()

    init = lambda: net.init(jax.random.key(0), np.zeros((1, 784), np.float32))  # noqa: E731
    return init, jax.jit(jax.grad(loss))


# -- Ray ----------------------------------------------------------------------------------------------


def run_ray(
    workers: int, warm_steps: int, seconds: float, processor_seconds: Callable[[], float]
) -> dict[str, float]:
    """The parameter-server pattern of Ray's documentation: an actor with the weights, workers that fetch and push."""
    import jax
    import optax
    import ray

    ray.init(num_cpus=workers + 1, include_dashboard=False, log_to_driver=False)
    try:

        class Server:
            def __init__(self) -> None:
                init, _ = flax_model()
                self.params = jax.tree.map(np.asarray, init())
                optimizer = optax.sgd(RATE)
                self.state = optimizer.init(self.params)

                def update(params: Any, state: Any, gradients: Any) -> Any:
                    steps, state = optimizer.update(gradients, state, params)
                    return optax.apply_updates(params, steps), state

                self.update = jax.jit(update)

            def weights(self) -> Any:
                return self.params

            def push(self, gradients: Any) -> None:
                params, self.state = self.update(self.params, self.state, gradients)
                self.params = jax.tree.map(np.asarray, params)

        class Worker:
            def __init__(self, rank: int, server: Any) -> None:
                _, self.gradients = flax_model()
                self.x, self.y = batch_of(rank)
                self.server = server

            def step(self) -> None:
                params = ray.get(self.server.weights.remote())
                gradients = jax.tree.map(np.asarray, self.gradients(params, self.x, self.y))
                ray.get(self.server.push.remote(gradients))

            def warm(self, steps: int) -> None:
                for _ in range(steps):
                    self.step()

            def measure(self, limit: float) -> tuple[int, float]:
                steps, began = 0, time.perf_counter()
                while time.perf_counter() - began < limit:
                    self.step()
                    steps += 1
                return steps, time.perf_counter() - began

        server = ray.remote(Server).remote()
        actors = [ray.remote(Worker).remote(rank, server) for rank in range(workers)]
        ray.get([actor.warm.remote(warm_steps) for actor in actors])
        before = processor_seconds()
        told = ray.get([actor.measure.remote(seconds) for actor in actors])
        used = processor_seconds() - before
    finally:
        ray.shutdown()
    return {
        "seconds": sum(took / steps for steps, took in told) / len(told),
        "processors": used / sum(steps for steps, _ in told),
    }


# -- PyTorch ------------------------------------------------------------------------------------------


def _torch_model() -> Any:
    import torch

    torch.set_num_threads(1)
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(784, HIDDEN), torch.nn.ReLU(), torch.nn.Linear(HIDDEN, 10))


class RpcServer:
    """A parameter server over PyTorch's RPC: it has the weights and the optimizer."""

    _only: RpcServer | None = None

    def __init__(self) -> None:
        import threading

        import torch

        self.model = _torch_model()
        self.optimizer = torch.optim.SGD(self.model.parameters(), RATE)
        self.lock = threading.Lock()

    @classmethod
    def one(cls) -> RpcServer:
        if cls._only is None:
            cls._only = cls()
        return cls._only

    @staticmethod
    def weights() -> list[Any]:
        server = RpcServer.one()
        with server.lock:
            return [p.detach().clone() for p in server.model.parameters()]

    @staticmethod
    def push(gradients: list[Any]) -> None:
        server = RpcServer.one()
        with server.lock:
            for p, gradient in zip(server.model.parameters(), gradients, strict=True):
                p.grad = gradient
            server.optimizer.step()


def rpc_task(workers: int, measure: Callable[[Callable[[], object]], None]) -> None:
    """One process: rank 0 is the parameter server."""
    import torch
    from torch.distributed import rpc

    rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    if rank == 0:
        RpcServer.one()
    rpc.init_rpc(f"task{rank}", rank=rank, world_size=size)
    if rank:
        model, loss_of = _torch_model(), torch.nn.CrossEntropyLoss()
        x, y = (torch.from_numpy(part) for part in batch_of(rank))

        def step() -> None:
            fresh = rpc.rpc_sync("task0", RpcServer.weights)
            with torch.no_grad():
                for p, value in zip(model.parameters(), fresh, strict=True):
                    p.copy_(value)
            model.zero_grad(set_to_none=True)
            loss_of(model(x), y).backward()
            rpc.rpc_sync("task0", RpcServer.push, args=([p.grad for p in model.parameters()],))

        measure(step)
    rpc.shutdown()


def ddp_task(measure: Callable[[Callable[[], object]], None]) -> None:
    """One of the processes of DistributedDataParallel over gloo."""
    import torch
    import torch.distributed as dist

    model = _torch_model()
    dist.init_process_group("gloo")
    replica = torch.nn.parallel.DistributedDataParallel(model)
    optimizer = torch.optim.SGD(replica.parameters(), RATE)
    loss_of = torch.nn.CrossEntropyLoss()
    x, y = (torch.from_numpy(part) for part in batch_of(dist.get_rank()))

    def step() -> None:
        optimizer.zero_grad(set_to_none=True)
        loss_of(replica(x), y).backward()
        optimizer.step()

    measure(step)
    dist.destroy_process_group()


# -- Redis --------------------------------------------------------------------------------------------


def redis_task(
    keys: int,
    fill: Callable[[int, Callable[[np.ndarray, np.ndarray], object]], None],
    measure: Callable[[Callable[[], object]], None],
) -> None:
    """A client that sets and reads 1,000 keys in one pipeline: keys of 8 bytes, values of 4."""
    import redis

    client = redis.Redis("127.0.0.1", int(os.environ["REDIS_PORT"]))
    limit = time.monotonic() + 60
    while True:
        try:
            client.ping()
            break
        except redis.exceptions.ConnectionError:
            if time.monotonic() > limit:
                raise
            time.sleep(0.05)

    def encoded(values: np.ndarray) -> list[bytes]:
        whole, size = values.tobytes(), values.dtype.itemsize
        return [whole[i : i + size] for i in range(0, len(whole), size)]

    def push(some: np.ndarray, values: np.ndarray) -> None:
        client.mset(dict(zip(encoded(some), encoded(values), strict=True)))

    fill(keys, push)
    rng, values = np.random.default_rng(1), np.ones((1000, 1), np.float32)

    def request() -> None:
        names = encoded(rng.integers(0, keys, 1000))
        pipeline = client.pipeline(transaction=False)
        pipeline.mset(dict(zip(names, encoded(values), strict=True)))
        pipeline.mget(names)
        _, found = pipeline.execute()
        np.frombuffer(b"".join(found), np.float32)

    measure(request)
