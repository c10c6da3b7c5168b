"""PyTorch's tensors on parameter servers: the example, and what a single worker computes beside PyTorch itself."""

import numpy as np
import optax
import pytest

import tensorfleet as tf
from tests.support.examples import number_after, run_example

torch = pytest.importorskip("torch")


def test_a_network_of_pytorch_trains_on_a_cluster(tmp_path):
    done = run_example(tmp_path, "library_torch", "--epochs", "15", ps=1, workers=2)
    assert number_after("Test accuracy", done.stdout) >= 0.93


def test_one_worker_trains_as_pytorch_does():
    torch.manual_seed(0)
    net = torch.nn.Linear(5, 3)
    x, y = torch.randn(20, 5), torch.randn(20, 3)
    optimizer = torch.optim.SGD(net.parameters(), 0.1, momentum=0.9)
    with tf.fleet.local(ps=2) as local, local.join() as cluster:
        model = cluster.parameters("net", dict(net.state_dict()), optax.sgd(0.1, momentum=0.9))
        for _ in range(10):
            params = {name: value.requires_grad_() for name, value in model.pull().items()}
            loss = (torch.func.functional_call(net, params, (x,)) - y).square().mean()
            gradients = torch.autograd.grad(loss, list(params.values()))
            model.push(dict(zip(params, gradients, strict=True)))
            optimizer.zero_grad()
            (net(x) - y).square().mean().backward()
            optimizer.step()
        for name, value in model.pull().items():
            assert isinstance(value, torch.Tensor)
            np.testing.assert_allclose(value, net.state_dict()[name], rtol=1e-5, atol=1e-6)


def test_rows_of_a_table_come_back_as_tensors():
    with tf.fleet.local() as local, local.join() as cluster:
        table = cluster.table("embeddings", dim=4)
        keys = torch.tensor([3, 2**60, 5])
        table.push(keys, torch.ones(3, 4))
        rows = table.pull(keys)
        assert isinstance(rows, torch.Tensor) and rows.sum() == 12
