# Written by tools/make_stubs.py.
from tensorfleet_legacy.contrib.learn.datasets import load_iris as load_iris
from tensorfleet_legacy.contrib.learn.datasets import maybe_download as maybe_download
from tensorfleet_legacy.contrib.learn.datasets import retry as retry
from tensorfleet_legacy.tutorials.input_data import Dataset as Dataset
from tensorfleet_legacy.tutorials.input_data import Datasets as Datasets
from tensorfleet_legacy.tutorials.input_data import load_csv_with_header as load_csv_with_header
from tensorfleet_legacy.tutorials.input_data import load_csv_without_header as load_csv_without_header
import builtins
import typing
def urlretrieve_with_retry(url: builtins.str, filename: builtins.str | None = ...) -> typing.Any: ...
