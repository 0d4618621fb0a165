"""Rows of convolutions, pools and samples whose gradients are checked."""

import numpy as np

from numerics.gradient_rows import spread, values
from numerics.rows import Constant, ints, row

# Title: shapes of the image and of the filter, attributes.
CONVOLUTIONS = {
    "1x1": ((2, 3, 5, 4), (4, 3, 1, 1), {}),
    "1x1 strided": ((1, 3, 5, 4), (2, 3, 1, 1), dict(strides=[2, 3])),
    "3x3": ((2, 3, 5, 7), (4, 3, 3, 3), dict(pads=[1, 1, 1, 1])),
    "strided": ((2, 3, 9, 8), (2, 3, 3, 3), dict(strides=[2, 2], pads=[1] * 4)),
    "with a rest": ((1, 2, 9, 8), (2, 2, 2, 3), dict(strides=[3, 3])),
    "apart": ((1, 2, 9, 8), (2, 2, 2, 2), dict(strides=[3, 3])),
    "dilated": ((1, 2, 8, 7), (3, 2, 3, 2), dict(dilations=[2, 3])),
    "strided, dilated": (
        (2, 2, 9, 10),
        (2, 2, 3, 3),
        dict(strides=[2, 3], dilations=[2, 2], pads=[2, 1, 0, 3]),
    ),
    "asymmetric": ((1, 2, 5, 6), (3, 2, 3, 2), dict(pads=[0, 1, 2, 0])),
    "larger than the image": ((1, 2, 2, 3), (2, 2, 5, 5), dict(pads=[2, 2, 2, 2])),
    "grouped": ((2, 4, 5, 4), (6, 2, 3, 3), dict(group=2, pads=[1] * 4)),
    "grouped, strided": ((1, 4, 7, 6), (4, 2, 3, 3), dict(group=2, strides=[2, 2])),
    "depthwise": ((2, 3, 5, 6), (3, 1, 3, 3), dict(group=3, pads=[1] * 4)),
    "depthwise, strided, dilated": (
        (1, 3, 9, 8),
        (3, 1, 2, 3),
        dict(group=3, strides=[2, 1], dilations=[2, 2]),
    ),
    "depthwise, multiplied": ((1, 3, 5, 5), (6, 1, 3, 3), dict(group=3)),
    "same upper": (
        (1, 2, 7, 8),
        (2, 2, 4, 3),
        dict(auto_pad="SAME_UPPER", strides=[2, 2]),
    ),
    "same lower": ((1, 2, 7, 8), (2, 2, 4, 2), dict(auto_pad="SAME_LOWER")),
    "valid": ((1, 2, 4, 5), (2, 2, 3, 3), dict(auto_pad="VALID")),
    "1-D": ((2, 3, 11), (4, 3, 3), dict(strides=[2])),
    "1-D, depthwise, causal": ((2, 3, 7), (3, 1, 4), dict(group=3, pads=[3, 0])),
    "3-D": ((1, 2, 4, 5, 3), (3, 2, 2, 3, 1), dict(pads=[1, 0, 0, 0, 2, 1])),
    "3-D, grouped": (
        (1, 2, 5, 3, 4),
        (4, 1, 3, 2, 2),
        dict(group=2, strides=[2, 1, 1], dilations=[1, 2, 1]),
    ),
}
TRANSPOSED = {
    "1x1": ((2, 3, 4, 3), (3, 2, 1, 1), {}),
    "blocks": ((2, 3, 4, 3), (3, 2, 2, 3), dict(strides=[2, 3])),
    "overlapping": ((1, 3, 4, 3), (3, 2, 3, 3), dict(strides=[2, 2], pads=[1] * 4)),
    "apart": ((1, 2, 4, 3), (2, 2, 2, 2), dict(strides=[3, 3])),
    "more outputs": (
        (1, 2, 4, 3),
        (2, 2, 3, 3),
        dict(strides=[2, 3], pads=[1, 0, 1, 2], output_padding=[1, 2]),
    ),
    "dilated": ((1, 2, 4, 3), (2, 3, 3, 2), dict(dilations=[2, 3])),
    "asymmetric": ((1, 2, 4, 5), (2, 2, 3, 3), dict(pads=[0, 1, 2, 0])),
    "grouped": ((2, 4, 3, 4), (4, 3, 3, 3), dict(group=2, strides=[2, 1])),
    "depthwise": ((1, 3, 3, 4), (3, 1, 3, 3), dict(group=3, strides=[2, 2])),
    "same": (
        (1, 2, 4, 3),
        (2, 2, 3, 3),
        dict(auto_pad="SAME_UPPER", strides=[2, 2]),
    ),
    "of a shape": (
        (1, 2, 4, 3),
        (2, 2, 3, 3),
        dict(output_shape=[8, 7], strides=[2, 2]),
    ),
    "1-D": ((2, 3, 5), (3, 2, 4), dict(strides=[2], pads=[1, 1])),
    "3-D": ((1, 2, 2, 3, 2), (2, 2, 2, 1, 3), dict(strides=[2, 1, 1])),
}


def convolutions():
    for name, (image, kernel, options) in CONVOLUTIONS.items():
        operands = values(*image), values(*kernel), values(kernel[0])
        yield row("Conv", *operands, name=name, **options)
    yield row("Conv", values(1, 2, 4, 4), values(3, 2, 3, 3), name="without bias")
    for name, (image, kernel, options) in TRANSPOSED.items():
        bias = values(kernel[1] * options.get("group", 1))
        yield row("ConvTranspose", values(*image), values(*kernel), bias,
                  name=name, **options)  # fmt: skip
    causal = values(2, 3, 5), values(3, 1, 4), values(3)
    yield row("CausalConvWithState", *causal, outputs=2)
    yield row("CausalConvWithState", *causal, values(2, 3, 3), name="goes on",
              outputs=2, activation="silu")  # fmt: skip
    # Two of the taps' places lie outside of the image; none is at an integer.
    places = values(1, 8, 3, 4, low=0.1, high=0.4) - np.array([1, 0] * 4)[:, None, None]
    yield row("DeformConv", values(1, 2, 4, 5), values(3, 2, 2, 2), places)
    yield row("DeformConv", values(1, 2, 4, 5), values(4, 1, 2, 2), places, values(4),
              values(1, 4, 3, 4), name="masked", group=2)  # fmt: skip


def pools():
    for kernel, stride, pad, ceil, dilation in (
        (2, 2, 0, 0, 1), (3, 2, 1, 0, 1), (3, 1, 1, 0, 2), (3, 3, 1, 1, 1),
        (2, 3, 0, 1, 1), (1, 2, 0, 0, 1),
    ):  # fmt: skip
        options = dict(
            kernel_shape=[kernel] * 2,
            strides=[stride] * 2,
            pads=[pad] * 4,
            dilations=[dilation] * 2,
            ceil_mode=ceil,
        )
        name = f"{kernel}/{stride} {pad} {dilation}" + " ceil" * ceil
        x = spread(values(2, 3, 9, 8))
        yield row("MaxPool", x, name=name, **options)
        for count in (0, 1):
            yield row("AveragePool", x, name=f"{name} {count}",
                      count_include_pad=count, **options)  # fmt: skip
        yield row("LpPool", x + 2, name=name, p=3, **options)
    line = spread(values(1, 2, 9))
    yield row("MaxPool", line, name="1-D", kernel_shape=[3], strides=[2])
    yield row("AveragePool", line, name="1-D", kernel_shape=[3])
    cube = spread(values(1, 1, 4, 5, 3))
    yield row("MaxPool", cube, name="3-D", kernel_shape=[2, 3, 1])
    yield row("AveragePool", cube, name="3-D", kernel_shape=[2, 3, 1],
              pads=[1, 0, 0, 0, 0, 0])  # fmt: skip
    for op in ("GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool"):
        yield row(op, spread(values(2, 3, 5, 1, low=0.1)))
    places = Constant(np.array([[[[1, 3], [8, 10]]]]))
    yield row("MaxUnpool", values(1, 1, 2, 2), places, kernel_shape=[2, 2],
              strides=[2, 2])  # fmt: skip


# Weights of samples have kinks where places are integers: values at random are
# not near them.
def samples():
    image, grid = values(1, 2, 5, 4), values(1, 3, 2, 2, low=-1.4, high=1.4)
    for mode, outside, corners in (
        ("linear", "zeros", 0), ("linear", "border", 0), ("linear", "reflection", 1),
        ("nearest", "zeros", 0), ("cubic", "border", 1), ("cubic", "reflection", 0),
    ):  # fmt: skip
        yield row("GridSample", image, grid, name=f"{mode} {outside} {corners}",
                  mode=mode, padding_mode=outside, align_corners=corners)  # fmt: skip
    space = values(2, 1, 2, 3, 3, low=-0.9, high=0.9)
    yield row("GridSample", values(2, 2, 3, 4, 3), space, name="3-D")
    for aligns in (0, 1):
        yield row("AffineGrid", values(2, 2, 3), ints(2, 1, 3, 4), name=f"{aligns}",
                  align_corners=aligns)  # fmt: skip
    boxes = np.array([[0.33, 0.67, 3.1, 3.7], [1.2, 0.14, 2.9, 4.4]])
    for mode in ("avg", "max"):
        for place in ("half_pixel", "output_half_pixel"):
            yield row("RoiAlign", values(2, 2, 5, 4), boxes, np.array([1, 0]),
                      name=f"{mode} {place}", mode=mode, output_height=2,
                      output_width=3, sampling_ratio=2,
                      coordinate_transformation_mode=place)  # fmt: skip


# Extents that no tile or vector divides, and longer than one.
def odd():
    x = values(2, 17, 15, 19)
    yield row("Conv", x, values(21, 17, 3, 3), values(21), pads=[1, 1, 1, 1])
    yield row("Conv", x, values(19, 17, 3, 3), name="strided", strides=[2, 2])
    yield row("Conv", x, values(18, 17, 1, 1), name="1x1")
    yield row("Conv", x, values(18, 17, 1, 1), name="1x1 strided", strides=[2, 2])
    yield row("Conv", values(2, 64, 7, 6), values(9, 64, 3, 3), name="whole panels",
              strides=[2, 2], pads=[1, 1, 1, 1])  # fmt: skip
    yield row("Conv", x, values(17, 1, 5, 3), name="depthwise", group=17)
    yield row("Conv", values(2, 70, 13, 11), values(70, 1, 3, 3), values(70), group=70,
              name="depthwise, strided", strides=[2, 2], pads=[1] * 4)  # fmt: skip
    yield row("Conv", values(2, 24, 9, 8), values(48, 2, 3, 3), name="narrow groups",
              group=12, pads=[1] * 4)  # fmt: skip
    yield row("Conv", values(2, 40, 37), values(40, 1, 31), name="long, depthwise",
              group=40, pads=[15, 15])  # fmt: skip
    yield row("ConvTranspose", values(3, 17, 7, 5), values(17, 9, 3, 3),
              strides=[2, 2])  # fmt: skip
    yield row("ConvTranspose", values(2, 20, 7, 5), values(20, 2, 4, 3), values(40),
              name="narrow groups", group=20, strides=[2, 3], pads=[1] * 4)  # fmt: skip
    yield row("MaxPool", 99 * spread(x), kernel_shape=[3, 3], strides=[2, 2])
    yield row("AveragePool", x, kernel_shape=[2, 2], strides=[2, 2])
    yield row("MatMul", values(67, 131), values(131, 37))
    yield row("MatMul", values(3, 1, 35, 19), values(5, 19, 33), name="broadcast")
    yield row("Gemm", values(33, 65), values(47, 65), values(47), transB=1)
    y, scale = values(5, 7, 263), values(263)
    yield row("LayerNormalization", y, scale, values(263))
    yield row("RMSNormalization", y, scale)
    yield row("Softmax", y)
    yield row("LogSoftmax", y, axis=1)
    yield row("BatchNormalization", values(9, 13, 7, 5), values(13), values(13),
              values(13), values(13, low=0.5, high=2), name="of the batch",
              training_mode=1, outputs=3)  # fmt: skip
    yield row("ReduceSum", y, ints(0, 1))
    yield row("ReduceMax", spread(y), ints(1))
    yield row("Add", y, values(7, 1), name="broadcast")
    yield row("CumSum", y, ints(-1))
    heads = [values(2, 3, length, 24) for length in (37, 41, 41)]
    yield row("Attention", *heads)
    yield row("Attention", *heads, name="causal", is_causal=1)
    yield row("Gather", values(53, 39), np.arange(77).reshape(7, 11) * 5 % 53)
    yield row("LSTM", values(5, 3, 19), values(1, 84, 19), values(1, 84, 21),
              values(1, 168), hidden_size=21)  # fmt: skip


FAMILIES = (convolutions, pools, samples, odd)


def models():
    for family in FAMILIES:
        yield family.__name__, list(family())
