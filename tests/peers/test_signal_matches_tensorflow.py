"""`tf.signal` against TensorFlow: the same calls in both, the same numbers and gradients."""

import warnings

import numpy as np
import pytest

import tensorfleet as tf

RANDOM = np.random.RandomState(0)
SIGNAL = RANDOM.rand(2, 37).astype(np.float32)
GRID = RANDOM.rand(2, 4, 6, 8).astype(np.float32)

CALLS = {
    "rfft": lambda s, x, t: t.abs(s.rfft(x)),
    "rfft_longer": lambda s, x, t: t.abs(s.rfft(x, [64])),
    "rfft_shorter": lambda s, x, t: t.abs(s.rfft(SIGNAL, [20])),
    "rfft_irfft": lambda s, x, t: s.irfft(s.rfft(x[:, :36]) * t.constant(1 + 2j, t.complex64)),
    "rfft_irfft_odd": lambda s, x, t: s.irfft(s.rfft(x) * t.constant(1 + 2j, t.complex64), [37]),
    "irfft_longer": lambda s, x, t: s.irfft(s.rfft(x) * t.constant(1 + 2j, t.complex64), [51]),
    "fft": lambda s, x, t: t.abs(s.fft(t.cast(x, t.complex64))),
    "ifft": lambda s, x, t: t.real(s.ifft(t.cast(x, t.complex64))) * t.imag(s.ifft(t.cast(x, t.complex64))),
    "frame": lambda s, x, t: s.frame(x, 10, 4),
    "frame_padded": lambda s, x, t: s.frame(x, 10, 4, pad_end=True, pad_value=1.5),
    "frame_axis": lambda s, x, t: s.frame(t.transpose(x), 10, 3, axis=0),
    "frame_too_long": lambda s, x, t: s.frame(x, 40, 3),
    "overlap_and_add": lambda s, x, t: s.overlap_and_add(s.frame(x, 10, 4), 4),
    "overlap_and_add_odd": lambda s, x, t: s.overlap_and_add(s.frame(x, 7, 3), 5),
    "stft": lambda s, x, t: t.abs(s.stft(x, 16, 5)),
    "stft_padded": lambda s, x, t: t.real(s.stft(x, 12, 5, fft_length=20, pad_end=True)),
    "stft_no_window": lambda s, x, t: t.imag(s.stft(x, 12, 5, window_fn=None)),
    "inverse_stft": lambda s, x, t: s.inverse_stft(
        s.stft(x, 16, 4), 16, 4, window_fn=s.inverse_stft_window_fn(4)
    ),
    "hann": lambda s, x, t: s.hann_window(9) + t.reduce_sum(x) * 0,
    "hann_even": lambda s, x, t: s.hann_window(8, periodic=False),
    "hamming": lambda s, x, t: s.hamming_window(8, dtype=t.float64),
    **{f"dct{k}": lambda s, x, t, k=k: s.dct(x, type=k) for k in (1, 2, 3, 4)},
    **{f"idct{k}": lambda s, x, t, k=k: s.idct(x, type=k) for k in (1, 2, 3, 4)},
    **{f"dct{k}_ortho": lambda s, x, t, k=k: s.dct(x, type=k, norm="ortho") for k in (2, 3, 4)},
    "dct_n": lambda s, x, t: s.dct(x, n=20),
    "dct_n_longer": lambda s, x, t: s.dct(x, n=50),
    "mel": lambda s, x, t: s.linear_to_mel_weight_matrix(12, 65, 8000, 100.0, 3000.0),
    "mfcc": lambda s, x, t: s.mfccs_from_log_mel_spectrograms(x),
    "fftshift": lambda s, x, t: s.fftshift(x),
    "ifftshift": lambda s, x, t: s.ifftshift(x, axes=[1]),
}


def both(tensorflow, value, call, gradient=True):
    result = []
    for library in (tf, tensorflow):
        graph = library.Graph()
        with graph.as_default(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            x = library.constant(value)
            y = call(library.signal, x, library)
            weights = library.constant(np.random.RandomState(1).rand(*y.shape.as_list()), y.dtype)
            (dx,) = library.gradients(y * weights, x) if gradient else (None,)
            wanted = [y] if dx is None else [y, dx]
            with library.Session(graph=graph) as session:
                result.append((y, session.run(wanted)))
    return result


@pytest.mark.parametrize("name", CALLS)
def test_values_and_gradients_are_tensorflows(tensorflow, name):
    (y, ours), (their_y, theirs) = both(tensorflow, SIGNAL, CALLS[name])
    assert y.dtype.name == their_y.dtype.name
    assert y.shape.as_list() == their_y.shape.as_list()
    assert len(ours) == len(theirs)
    for a, b in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(a, b, rtol=2e-4, atol=2e-4)


@pytest.mark.parametrize("rank", [2, 3])
def test_transforms_over_several_axes_are_tensorflows(tensorflow, rank):
    def call(s, x, t):
        spectrum = getattr(s, f"rfft{rank}d")(x)
        turned = getattr(s, f"irfft{rank}d")(spectrum * t.constant(1 + 1j, t.complex64))
        whole = t.abs(getattr(s, f"fft{rank}d")(t.cast(x, t.complex64)))
        return turned + whole + t.real(getattr(s, f"ifft{rank}d")(t.cast(x, t.complex64)))

    (_, ours), (_, theirs) = both(tensorflow, GRID, call, gradient=rank == 2)
    for a, b in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(a, b, rtol=2e-4, atol=2e-4)


def test_lengths_known_at_run_time_are_tensorflows(tensorflow):
    def call(s, x, t):
        length = t.placeholder_with_default([50], [1])
        y = t.abs(s.rfft(t.placeholder_with_default(x, [None, None]), length))
        y.set_shape([2, 26])
        return y

    (_, ours), (_, theirs) = both(tensorflow, SIGNAL, call)
    for a, b in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(a, b, rtol=2e-4, atol=2e-4)
