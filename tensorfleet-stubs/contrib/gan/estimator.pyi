# Written by tools/make_stubs.py.
from tensorfleet_legacy.contrib.gan.gan_estimator import GANEstimator as GANEstimator
from tensorfleet_legacy.contrib.gan.gan_estimator import SummaryType as SummaryType
