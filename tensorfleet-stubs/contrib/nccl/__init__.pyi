# Written by tools/make_stubs.py.
from tensorfleet.contrib.nccl import python as python
from tensorfleet_legacy.contrib.all_reduce.all_reduce import all_max as all_max
from tensorfleet_legacy.contrib.all_reduce.all_reduce import all_min as all_min
from tensorfleet_legacy.contrib.all_reduce.all_reduce import all_prod as all_prod
from tensorfleet_legacy.contrib.all_reduce.all_reduce import all_sum as all_sum
from tensorfleet_legacy.contrib.all_reduce.all_reduce import broadcast as broadcast
from tensorfleet_legacy.contrib.all_reduce.all_reduce import reduce_sum as reduce_sum
