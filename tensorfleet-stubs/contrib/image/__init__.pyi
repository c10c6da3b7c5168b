# Written by tools/make_stubs.py.
from tensorfleet.contrib.image import python as python
from tensorfleet.ops.image.matching import bipartite_match as bipartite_match
from tensorfleet.ops.image.matching import connected_components as connected_components
from tensorfleet_legacy.contrib.image.dense_image_warp import adjust_hsv_in_yiq as adjust_hsv_in_yiq
from tensorfleet_legacy.contrib.image.dense_image_warp import dense_image_warp as dense_image_warp
from tensorfleet_legacy.contrib.image.dense_image_warp import interpolate_spline as interpolate_spline
from tensorfleet_legacy.contrib.image.dense_image_warp import random_hsv_in_yiq as random_hsv_in_yiq
from tensorfleet_legacy.contrib.image.dense_image_warp import sparse_image_warp as sparse_image_warp
from tensorfleet_legacy.contrib.image.image_ops import angles_to_projective_transforms as angles_to_projective_transforms
from tensorfleet_legacy.contrib.image.image_ops import compose_transforms as compose_transforms
from tensorfleet_legacy.contrib.image.image_ops import flat_transforms_to_matrices as flat_transforms_to_matrices
from tensorfleet_legacy.contrib.image.image_ops import matrices_to_flat_transforms as matrices_to_flat_transforms
from tensorfleet_legacy.contrib.image.image_ops import rotate as rotate
from tensorfleet_legacy.contrib.image.image_ops import transform as transform
from tensorfleet_legacy.contrib.image.image_ops import translate as translate
from tensorfleet_legacy.contrib.image.image_ops import translations_to_projective_transforms as translations_to_projective_transforms
import typing
def __getattr__(name: str) -> typing.Any: ...
