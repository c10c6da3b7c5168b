# Written by tools/make_stubs.py.
from tensorfleet.contrib.gan import estimator as estimator
from tensorfleet.contrib.gan import eval as eval
from tensorfleet.contrib.gan import features as features
from tensorfleet.contrib.gan import losses as losses
from tensorfleet.contrib.gan import python as python
from tensorfleet_legacy.contrib.gan.namedtuples import GANTrainOps as GANTrainOps
from tensorfleet_legacy.contrib.gan.train import RunTrainOpsHook as RunTrainOpsHook
from tensorfleet_legacy.contrib.gan.train import gan_train as gan_train
from tensorfleet_legacy.contrib.gan.train import gan_train_ops as gan_train_ops
from tensorfleet_legacy.contrib.gan.train import get_joint_train_hooks as get_joint_train_hooks
from tensorfleet_legacy.contrib.gan.train import get_sequential_train_hooks as get_sequential_train_hooks
from tensorfleet_legacy.contrib.gan.train import get_sequential_train_steps as get_sequential_train_steps
from tensorfleet_legacy.contrib.gan.train_losses import cyclegan_loss as cyclegan_loss
from tensorfleet_legacy.contrib.gan.train_losses import gan_loss as gan_loss
from tensorfleet_legacy.contrib.gan.train_losses import stargan_loss as stargan_loss
from tensorfleet_legacy.contrib.gan.train_models import acgan_model as acgan_model
from tensorfleet_legacy.contrib.gan.train_models import cyclegan_model as cyclegan_model
from tensorfleet_legacy.contrib.gan.train_models import gan_model as gan_model
from tensorfleet_legacy.contrib.gan.train_models import infogan_model as infogan_model
from tensorfleet_legacy.contrib.gan.train_models import stargan_model as stargan_model
import typing
class ACGANModel(typing.Any):
    def __init__(self, /, *args: typing.Any, **kwargs: typing.Any) -> None: ...
class CycleGANLoss(typing.Any):
    def __init__(self, /, *args: typing.Any, **kwargs: typing.Any) -> None: ...
class CycleGANModel(typing.Any):
    def __init__(self, /, *args: typing.Any, **kwargs: typing.Any) -> None: ...
class GANLoss(typing.Any):
    def __init__(self, /, *args: typing.Any, **kwargs: typing.Any) -> None: ...
class GANModel(typing.Any):
    def __init__(self, /, *args: typing.Any, **kwargs: typing.Any) -> None: ...
class GANTrainSteps(typing.Any):
    def __init__(self, /, *args: typing.Any, **kwargs: typing.Any) -> None: ...
class InfoGANModel(typing.Any):
    def __init__(self, /, *args: typing.Any, **kwargs: typing.Any) -> None: ...
class StarGANModel(typing.Any):
    def __init__(self, /, *args: typing.Any, **kwargs: typing.Any) -> None: ...
