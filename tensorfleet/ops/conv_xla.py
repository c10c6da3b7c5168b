"""XLA's own convolution, channels-last, with the gradients of its input and its filter. Traced only.

`win` is the Window of the convolution.
"""


def forward(x, w, win, **kwargs):
    import jax.numpy as jnp
    from jax import lax

    if x.shape[-1] > 1 and x.shape[-1] % 2:
        # An odd number of channels (the three colours) makes it several times slower.
        missing = [(0, 0)] * (x.ndim - 1) + [(0, -x.shape[-1] % 4)]
        x, w = jnp.pad(x, missing), jnp.pad(w, [*missing[1:], (0, 0)])
    spatial = "DHW"[5 - x.ndim :]
    layouts = (f"N{spatial}C", f"{spatial}IO", f"N{spatial}C")
    args = dict(window_strides=win.stride[1:-1], padding=win.pads[1:-1]) | kwargs
    return lax.conv_general_dilated(x, w, rhs_dilation=win.dilation[1:-1], dimension_numbers=layouts, **args)


def input_gradient(xp, w, dy, win):
    """A convolution of the spread-out `dy` with the filter turned around."""
    spatial = range(1, dy.ndim - 1)
    padding = []
    for i in spatial:
        low = (win.size[i] - 1) * win.dilation[i] - win.pads[i][0]
        spread = (win.out_shape[i] - 1) * win.stride[i] + 1
        padding.append((low, win.in_shape[i] + win.pads[i][0] - spread))
    ones = (1,) * len(spatial)
    return forward(
        dy, turned(xp, w), win, window_strides=ones, padding=padding, lhs_dilation=win.stride[1:-1]
    )


def turned(xp, w):
    """The filter that takes gradients of outputs back to inputs."""
    return xp.swapaxes(xp.flip(w, tuple(range(w.ndim - 2))), -1, -2)


def filter_gradient(xp, x, dy, win):
    """A convolution of the input with `dy`, in which examples are what channels are otherwise."""
    from jax import lax

    examples = [(0, -x.shape[0] % 4 if x.shape[0] % 2 and x.shape[0] > 1 else 0)]  # an odd number is slow
    x, dy = (xp.pad(a, examples + [(0, 0)] * (a.ndim - 1)) for a in (x, dy))
    padding = []
    for i in range(1, x.ndim - 1):
        reach = (win.size[i] - 1) * win.dilation[i] + 1 + (win.out_shape[i] - 1) * win.stride[i]
        padding.append((win.pads[i][0], reach - win.in_shape[i] - win.pads[i][0]))
    spatial = "DHW"[5 - x.ndim :]
    return lax.conv_general_dilated(
        x,
        dy,
        window_strides=win.dilation[1:-1],
        padding=padding,
        rhs_dilation=win.stride[1:-1],
        dimension_numbers=(f"C{spatial}N", f"I{spatial}O", f"{spatial}NC"),
    )
