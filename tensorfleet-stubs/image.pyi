# Written by tools/make_stubs.py.
from tensorfleet.api.image.boxes import combined_non_max_suppression as combined_non_max_suppression
from tensorfleet.api.image.boxes import draw_bounding_boxes as draw_bounding_boxes
from tensorfleet.api.image.boxes import is_jpeg as is_jpeg
from tensorfleet.api.image.boxes import non_max_suppression as non_max_suppression
from tensorfleet.api.image.boxes import non_max_suppression_overlaps as non_max_suppression_overlaps
from tensorfleet.api.image.boxes import non_max_suppression_padded as non_max_suppression_padded
from tensorfleet.api.image.boxes import non_max_suppression_with_scores as non_max_suppression_with_scores
from tensorfleet.api.image.boxes import sample_distorted_bounding_box as sample_distorted_bounding_box
from tensorfleet.api.image.checks import convert_image_dtype as convert_image_dtype
from tensorfleet.api.image.color import adjust_brightness as adjust_brightness
from tensorfleet.api.image.color import adjust_contrast as adjust_contrast
from tensorfleet.api.image.color import adjust_gamma as adjust_gamma
from tensorfleet.api.image.color import adjust_hue as adjust_hue
from tensorfleet.api.image.color import adjust_jpeg_quality as adjust_jpeg_quality
from tensorfleet.api.image.color import adjust_saturation as adjust_saturation
from tensorfleet.api.image.color import grayscale_to_rgb as grayscale_to_rgb
from tensorfleet.api.image.color import per_image_standardization as per_image_standardization
from tensorfleet.api.image.color import random_brightness as random_brightness
from tensorfleet.api.image.color import random_contrast as random_contrast
from tensorfleet.api.image.color import random_hue as random_hue
from tensorfleet.api.image.color import random_jpeg_quality as random_jpeg_quality
from tensorfleet.api.image.color import random_saturation as random_saturation
from tensorfleet.api.image.color import rgb_to_grayscale as rgb_to_grayscale
from tensorfleet.api.image.geometry import central_crop as central_crop
from tensorfleet.api.image.geometry import crop_to_bounding_box as crop_to_bounding_box
from tensorfleet.api.image.geometry import flip_left_right as flip_left_right
from tensorfleet.api.image.geometry import flip_up_down as flip_up_down
from tensorfleet.api.image.geometry import pad_to_bounding_box as pad_to_bounding_box
from tensorfleet.api.image.geometry import random_flip_left_right as random_flip_left_right
from tensorfleet.api.image.geometry import random_flip_up_down as random_flip_up_down
from tensorfleet.api.image.geometry import resize_image_with_crop_or_pad as _resize_with_crop_or_pad
from tensorfleet.api.image.geometry import resize_image_with_crop_or_pad as resize_image_with_crop_or_pad
from tensorfleet.api.image.geometry import rot90 as rot90
from tensorfleet.api.image.geometry import transpose as _transpose_image
from tensorfleet.api.image.geometry import transpose as transpose
from tensorfleet.api.image.quality import image_gradients as image_gradients
from tensorfleet.api.image.quality import psnr as psnr
from tensorfleet.api.image.quality import sobel_edges as sobel_edges
from tensorfleet.api.image.quality import ssim as ssim
from tensorfleet.api.image.quality import ssim_multiscale as ssim_multiscale
from tensorfleet.api.image.quality import total_variation as total_variation
from tensorfleet.api.image.resizing import ResizeMethod as ResizeMethod
from tensorfleet.api.image.resizing import resize_image_with_pad as resize_image_with_pad
from tensorfleet.ops.image.codec import decode_bmp as decode_bmp
from tensorfleet.ops.image.codec import decode_gif as decode_gif
from tensorfleet.ops.image.codec import decode_image as decode_image
from tensorfleet.ops.image.codec import decode_png as decode_png
from tensorfleet.ops.image.codec import encode_png as encode_png
from tensorfleet.ops.image.codec import extract_jpeg_shape as extract_jpeg_shape
from tensorfleet.ops.image.color import hsv_to_rgb as hsv_to_rgb
from tensorfleet.ops.image.color import rgb_to_hsv as rgb_to_hsv
from tensorfleet.ops.image.crop import crop_and_resize as crop_and_resize
from tensorfleet.ops.image.patches import extract_image_patches as extract_image_patches
from tensorfleet.ops.image.patches import extract_patches as extract_patches
from tensorfleet.ops.image.resize import resize_area as resize_area
from tensorfleet.ops.random.ops import random_crop as random_crop
import builtins
import typing
def decode_and_crop_jpeg(contents: typing.Any, crop_window: typing.Any, channels: typing.Any = ..., ratio: typing.Any = ..., fancy_upscaling: typing.Any = ..., try_recover_truncated: typing.Any = ..., acceptable_fraction: typing.Any = ..., dct_method: typing.Any = ..., name: typing.Any = ...) -> typing.Any: ...
def decode_jpeg(contents: typing.Any, channels: typing.Any = ..., ratio: typing.Any = ..., fancy_upscaling: typing.Any = ..., try_recover_truncated: typing.Any = ..., acceptable_fraction: typing.Any = ..., dct_method: typing.Any = ..., name: typing.Any = ...) -> typing.Any: ...
def encode_jpeg(image: typing.Any, format: typing.Any = ..., quality: typing.Any = ..., progressive: typing.Any = ..., optimize_size: typing.Any = ..., chroma_downsampling: typing.Any = ..., density_unit: typing.Any = ..., x_density: typing.Any = ..., y_density: typing.Any = ..., xmp_metadata: typing.Any = ..., name: typing.Any = ...) -> typing.Any: ...
def extract_glimpse(input: typing.Any, size: typing.Any, offsets: typing.Any, centered: typing.Any = ..., normalized: typing.Any = ..., uniform_noise: typing.Any = ..., name: typing.Any = ...) -> typing.Any: ...
def per_image_whitening(image: typing.Any) -> typing.Any: ...
def resize(images: typing.Any, size: typing.Any, method: builtins.int | builtins.str = ..., align_corners: builtins.bool = ..., preserve_aspect_ratio: builtins.bool = ..., name: builtins.str | None = ...) -> typing.Any: ...
def resize_bicubic(images: typing.Any, size: typing.Any, align_corners: typing.Any = ..., name: typing.Any = ..., half_pixel_centers: typing.Any = ...) -> typing.Any: ...
def resize_bilinear(images: typing.Any, size: typing.Any, align_corners: typing.Any = ..., name: typing.Any = ..., half_pixel_centers: typing.Any = ...) -> typing.Any: ...
def resize_images(images: typing.Any, size: typing.Any, method: builtins.int | builtins.str = ..., align_corners: builtins.bool = ..., preserve_aspect_ratio: builtins.bool = ..., name: builtins.str | None = ...) -> typing.Any: ...
def resize_nearest_neighbor(images: typing.Any, size: typing.Any, align_corners: typing.Any = ..., name: typing.Any = ..., half_pixel_centers: typing.Any = ...) -> typing.Any: ...
resize_with_crop_or_pad = _resize_with_crop_or_pad
def rgb_to_yiq(images: typing.Any) -> typing.Any: ...
def rgb_to_yuv(images: typing.Any) -> typing.Any: ...
transpose_image = _transpose_image
def yiq_to_rgb(images: typing.Any) -> typing.Any: ...
def yuv_to_rgb(images: typing.Any) -> typing.Any: ...
