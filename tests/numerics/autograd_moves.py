"""Rows that move, gather, scatter and sample, each with the PyTorch function
that means the same."""

import numpy as np

from numerics.autograd_rows import case, values
from numerics.rows import Constant, ints, row

# --- movement -----------------------------------------------------------------


def moves():
    x = values(2, 3, 4)
    for function, op, operands, options in (
        (lambda t, x: x.permute(2, 0, 1), "Transpose", [], dict(perm=[2, 0, 1])),
        (lambda t, x: x.expand(2, 2, 3, 4), "Expand", [ints(2, 1, 3, 1)], {}),
        (lambda t, x: x.repeat(1, 2, 3), "Tile", [ints(1, 2, 3)], {}),
        (lambda t, x: x.reshape(6, 4), "Reshape", [ints(-1, 4)], {}),
        (lambda t, x: x[:, 1:, ::2], "Slice", [ints(1, 0), ints(3, 4), ints(1, 2),
                                              ints(1, 2)], {}),
        (lambda t, x: t.split(x, [1, 2], 1), "Split", [ints(1, 2)],
         dict(axis=1, outputs=2)),
        (lambda t, x: t.triu(x, 1), "Trilu", [ints(1)], {}),
        (lambda t, x: t.tril(x, -1), "Trilu", [ints(-1)], dict(upper=0)),
    ):  # fmt: skip
        yield case(function, op, x, *operands, name=str(options), **options)
    yield case(lambda t, x, y: t.cat([x, y], 1), "Concat", x, values(2, 1, 4), axis=1)
    image = values(1, 8, 2, 3)
    yield case(lambda t, x: t.pixel_shuffle(x, 2), "DepthToSpace", image, blocksize=2,
               mode="CRD")  # fmt: skip
    yield case(lambda t, x: t.fold(x, (3, 4), 2), "Col2Im", values(2, 8, 6), ints(3, 4),
               ints(2, 2))  # fmt: skip
    image = values(1, 2, 4, 5)
    for mode, name in (("constant", "constant"), ("reflect", "reflect"),
                       ("edge", "replicate"), ("wrap", "circular")):  # fmt: skip
        function = lambda t, x, m=name: t.pad(x, (1, 2, 2, 1), mode=m)  # noqa: E731
        yield case(function, "Pad", image, ints(0, 0, 2, 1, 0, 0, 1, 2), name=mode,
                   mode=mode)  # fmt: skip


MODES = (
    ("nearest", "asymmetric", dict(mode="nearest")),
    ("linear", "half_pixel", dict(mode="bilinear")),
    ("linear", "align_corners", dict(mode="bilinear", align_corners=True)),
    ("cubic", "half_pixel", dict(mode="bicubic")),
    ("cubic", "align_corners", dict(mode="bicubic", align_corners=True)),
)


def grid_samples(image):
    """Of places some of which lie outside; all corners are among the integers."""
    grid = values(1, 3, 2, 2, low=-1.3, high=1.3)
    for mode, name in (("linear", "bilinear"), ("nearest", "nearest"), ("cubic", "bicubic")):
        for outside in ("zeros", "border", "reflection"):
            for corners in (0, 1):
                # PyTorch moves no cubic place outside, but what it reads there.
                if mode == "cubic" and (outside == "border" or not corners):
                    continue
                function = lambda t, x, g, m=name, o=outside, c=corners: t.grid_sample(  # noqa: E731
                    x, g, m, o, bool(c)
                )
                options = dict(mode=mode, padding_mode=outside, align_corners=corners)
                title = f"{mode} {outside} {corners}"
                yield case(function, "GridSample", image, grid, name=title, **options)
                if outside != "reflection":
                    ends = np.array([[[[-1.0, -1], [1, 1], [0, 0.5]]]])
                    yield case(function, "GridSample", image, ends, **options,
                               name=f"{title} at corners")  # fmt: skip


def samples():
    image = values(1, 2, 4, 5)
    for mode, place, options in MODES:
        for size in ((7, 8), (3, 2)):
            function = lambda t, x, s=size, o=options: t.interpolate(x, s, **o)  # noqa: E731
            yield case(function, "Resize", image, None, None, ints(1, 2, *size),
                       name=f"{mode} {place} {size}", mode=mode, nearest_mode="floor",
                       coordinate_transformation_mode=place)  # fmt: skip
    yield from grid_samples(image)
    # torchvision has no gradient of boxes.
    boxes = np.array([[0.33, 0.67, 3.1, 3.7], [-1.2, 0.14, 5.9, 4.4]])
    numbered = np.hstack([np.zeros((2, 1)), boxes])
    function = lambda t, x: t.roi_align(x, t.tensor(numbered), (2, 3), 1, 2, True)  # noqa: E731
    yield case(function, "RoiAlign", image, Constant(boxes), np.array([0, 0]),
               output_height=2, output_width=3, sampling_ratio=2)  # fmt: skip
    # Places between integers, some of them outside.
    places, mask = values(1, 8, 3, 4, low=0.1, high=0.9) - 0.5, values(1, 4, 3, 4)
    deform = lambda t, x, w, p, b, m: t.deform_conv2d(x, p, w, b, mask=m)  # noqa: E731
    yield case(deform, "DeformConv", image, values(4, 1, 2, 2), places, values(4), mask,
               group=2)  # fmt: skip
    yield case(lambda t, x: t.affine_grid(x, (2, 1, 3, 4), False), "AffineGrid",
               values(2, 2, 3), ints(2, 1, 3, 4))  # fmt: skip


# --- indices ------------------------------------------------------------------


def indices():
    x, rows = values(5, 4), np.array([[4, 0, 2], [2, 2, 0]])
    yield case(lambda t, x: t.embedding(t.tensor(rows), x), "Gather", x, rows)
    yield case(lambda t, x: t.gather(x, 0, t.tensor(rows)), "GatherElements", x, rows)
    pairs = np.array([[0, 1], [4, 3], [4, 3]])
    yield case(lambda t, x: x[tuple(t.tensor(pairs.T))], "GatherND", x, pairs)
    yield case(lambda t, x: x[t.tensor([0, 2])], "Compress", x,
               Constant(np.array([True, False, True])), axis=0)  # fmt: skip
    distinct, tied = np.array([[1, 0, 3], [2, 4, 0]]), np.array([[1, 0, 3]] * 2)
    updates = values(2, 3)
    yield case(lambda t, x, u: t.scatter(x, 0, t.tensor(distinct), u), "ScatterElements",
               x, distinct, updates)  # fmt: skip
    yield case(lambda t, x, u: t.scatter_add(x, 0, t.tensor(tied), u), "ScatterElements",
               x, tied, updates, name="add", reduction="add")  # fmt: skip
    # An update that equals another one, and one that equals what it meets.
    updates[1, 0] = updates[0, 0]
    updates[0, 1] = x[0, 1]
    x[1, 0] = -3
    for kind, name in (("mul", "prod"), ("max", "amax"), ("min", "amin")):
        function = lambda t, x, u, n=name: t.scatter_reduce(x, 0, t.tensor(tied), u, n)  # noqa: E731
        yield case(function, "ScatterElements", x, tied, updates, name=kind,
                   reduction=kind)  # fmt: skip
    zeros, some = x.copy(), updates.copy()
    zeros[0, 1] = some[1, 2] = some[0, 0] = some[1, 0] = 0
    yield case(lambda t, x, u: t.scatter_reduce(x, 0, t.tensor(tied), u, "prod"),
               "ScatterElements", zeros, tied, some, name="mul of zeros",
               reduction="mul")  # fmt: skip
    places = np.array([[1], [3], [1]])
    yield case(lambda t, x, u: x.index_put((t.tensor(places[:2, 0]),), u), "ScatterND", x,
               places[:2], values(2, 4))  # fmt: skip
    yield case(lambda t, x, u: x.index_put((t.tensor(places[:, 0]),), u, accumulate=True),
               "ScatterND", x, places, values(3, 4), name="add", reduction="add")  # fmt: skip


FAMILIES = (moves, samples, indices)


def models():
    for family in FAMILIES:
        yield family.__name__, list(family())
