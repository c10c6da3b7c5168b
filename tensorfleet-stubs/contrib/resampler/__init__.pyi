# Written by tools/make_stubs.py.
from tensorfleet.contrib.resampler import python as python
from tensorfleet_legacy.contrib.image.dense_image_warp import resampler as resampler
