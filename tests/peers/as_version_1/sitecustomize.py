"""Put on PYTHONPATH: `import tensorflow` gives the installed TensorFlow 2 as scripts for TensorFlow 1 expect it."""

import importlib.abc
import importlib.machinery
import sys
import types


class _Version1(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def find_spec(self, name, path=None, target=None):
        if name != "tensorflow":
            return None
        sys.meta_path.remove(self)
        return importlib.machinery.ModuleSpec(name, self, is_package=True)

    def create_module(self, spec):
        sys.modules.pop("tensorflow", None)
        import tensorflow.compat.v1 as v1

        v1.disable_v2_behavior()
        v1.logging.set_verbosity(v1.logging.ERROR)
        _data(v1)
        _contrib(v1)
        return v1

    def exec_module(self, module):
        sys.modules["tensorflow"] = module


def _data(v1):
    """The tutorials' digits, which TensorFlow 2 has no longer."""
    from tensorfleet_legacy.tutorials import input_data

    for name in (
        "tensorflow.examples",
        "tensorflow.examples.tutorials",
        "tensorflow.examples.tutorials.mnist",
    ):
        sys.modules[name] = types.ModuleType(name)
    sys.modules["tensorflow.examples.tutorials.mnist"].input_data = input_data


def _contrib(v1):
    """The placement by size that was in contrib."""

    class Greedy:
        def __init__(self, tasks, load):
            self.loads, self.load = [0.0] * tasks, load

        def __call__(self, op):
            task = self.loads.index(min(self.loads))
            self.loads[task] += self.load(op)
            return task

    def size(op):
        return op.outputs[0].get_shape().with_rank_at_least(0).num_elements() * op.outputs[0].dtype.size

    training = types.SimpleNamespace(GreedyLoadBalancingStrategy=Greedy, byte_size_load_fn=size)
    v1.contrib = types.SimpleNamespace(training=training)


sys.meta_path.insert(0, _Version1())
