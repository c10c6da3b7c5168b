# Written by tools/make_stubs.py.
from tensorfleet.ops.state.map_staging import MapStagingArea as MapStagingArea
from tensorfleet.ops.state.staging import StagingArea as StagingArea
import typing
def __getattr__(name: str) -> typing.Any: ...
