"""A network of PyTorch on parameter servers: its gradients go there without a copy, and Optax updates it.

    tensorfleet run --ps 1 --workers 2 examples/library_torch.py -- --epochs 20

    worker i   model.pull() ---> torch.func.functional_call, backward ---> model.push(gradients)
    ps 0       the parameters by their names in the state_dict, and Adam's moments

Arrays travel by DLPack: tensors of PyTorch that are on the CPU are sent as they are, and what is pulled comes back as
tensors. It needs PyTorch and Optax (`pip install torch ".[examples,jax]"`).
"""

from __future__ import annotations

import argparse

import numpy as np
import optax
import torch
from sklearn.datasets import load_digits

from tensorfleet import fleet

TARGET = 0.93
TEST_IMAGES = 400


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--epochs", type=int, default=20, help="times that all images are gone through (20)")
    flags = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)
    data = load_digits()
    order = np.random.default_rng(0).permutation(len(data.target))
    images = torch.from_numpy((data.data[order] / 16).astype(np.float32))
    labels = torch.from_numpy(data.target[order])
    net = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 10))

    with fleet.join() as cluster:
        model = cluster.parameters("net", dict(net.state_dict()), optax.adam(2e-3))
        rng = np.random.default_rng(1)
        rows = (
            r for _ in range(flags.epochs) for r in rng.permutation(len(images) - TEST_IMAGES).reshape(-1, 11)
        )
        for chosen in cluster.shard(rows):
            params = {name: value.requires_grad_() for name, value in model.pull().items()}
            scores = torch.func.functional_call(net, params, (images[TEST_IMAGES + chosen],))
            loss = torch.nn.functional.cross_entropy(scores, labels[TEST_IMAGES + chosen])
            gradients = torch.autograd.grad(loss, list(params.values()))
            model.push(dict(zip(params, gradients, strict=True)))
        with torch.no_grad():
            scores = torch.func.functional_call(net, model.pull(), (images[:TEST_IMAGES],))
        accuracy = (scores.argmax(1) == labels[:TEST_IMAGES]).float().mean()
        print(f"worker {cluster.rank} is done. Test accuracy {accuracy:.3f}", flush=True)


if __name__ == "__main__":
    main()
