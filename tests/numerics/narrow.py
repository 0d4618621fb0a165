"""The rows of casts from and to floats of 8 and 4 bits and integers of 4 and 2.

The reference is ml_dtypes, on which ONNX's own is built. Results are bytes: a float's
bits, an integer's value.
"""

import ml_dtypes
import numpy as np
from onnx import TensorProto

from numerics.rows import Model, row

FLOATS = {
    "FLOAT8E4M3FN": ml_dtypes.float8_e4m3fn,
    "FLOAT8E4M3FNUZ": ml_dtypes.float8_e4m3fnuz,
    "FLOAT8E5M2": ml_dtypes.float8_e5m2,
    "FLOAT8E5M2FNUZ": ml_dtypes.float8_e5m2fnuz,
    "FLOAT4E2M1": ml_dtypes.float4_e2m1fn,
}
INTEGERS = {
    "INT4": ml_dtypes.int4,
    "UINT4": ml_dtypes.uint4,
    "INT2": ml_dtypes.int2,
    "UINT2": ml_dtypes.uint2,
}


class NarrowModel(Model):
    opsets = {"": 25}


def all_codes(dtype):
    count = 16 if dtype is ml_dtypes.float4_e2m1fn else 256
    return np.arange(count, dtype=np.uint8).view(dtype)


def numbers(dtype):
    """All finite ones, the middles between them, their neighbours in f32, and a few
    beyond the largest."""
    held = all_codes(dtype).astype(np.float32)
    held = np.unique(held[np.isfinite(held)])
    middles = (held[1:] + held[:-1]) / 2
    exact = np.concatenate([held, middles])
    around = [np.nextafter(exact, np.float32(to)) for to in (-np.inf, np.inf)]
    beyond = held[-1] * np.float32([1.01, 1.1, 1.5, 2, 1e6])
    return np.concatenate([exact, *around, beyond, -beyond, np.float32([0.0, -0.0, 1e-30])])


def to_bits(x, dtype, saturates):
    largest = np.float32(ml_dtypes.finfo(dtype).max)
    return (np.clip(x, -largest, largest) if saturates else x).astype(dtype).view(np.uint8)


def floats():
    for name, dtype in FLOATS.items():
        codes, number = all_codes(dtype), TensorProto.DataType.Value(name)
        yield row(
            "Cast", codes, name=f"from {name}", to=TensorProto.FLOAT,
            expected=codes.astype(np.float32), ulp=0,
        )  # fmt: skip
        x = numbers(dtype)
        for saturates in (1, 0) if name != "FLOAT4E2M1" else (1,):
            yield row(
                "Cast", x, name=f"to {name} {saturates}", to=number, saturate=saturates,
                expected=to_bits(x, dtype, saturates),
            )  # fmt: skip
        yield row("CastLike", x, codes[:1], name=name, expected=to_bits(x, dtype, True))


def powers():
    """E8M0, whose codes are exponents; each range of numbers is one code's."""
    dtype, number = ml_dtypes.float8_e8m0fnu, TensorProto.FLOAT8E8M0
    codes = np.arange(256, dtype=np.uint8).view(dtype)
    yield row(
        "Cast", codes, name="from FLOAT8E8M0", to=TensorProto.FLOAT,
        expected=codes.astype(np.float32), ulp=0,
    )  # fmt: skip
    held = codes[:-1].astype(np.float64)
    shares = {"exact": 1, "above": 1 + 2**-20, "below the middle": 1.5 - 2**-20, "middle": 1.5}
    for mode in ("up", "down", "nearest"):
        for saturates in (1, 0):
            for name, share in shares.items():
                goes_up = {"up": share > 1, "down": False, "nearest": share >= 1.5}[mode]
                expected = np.arange(255) + goes_up
                expected[expected > 254] = 254 if saturates else 255
                yield row(
                    "Cast", (held * share).astype(np.float32), to=number, saturate=saturates,
                    round_mode=mode, name=f"to FLOAT8E8M0 {mode} {saturates} {name}",
                    expected=expected.astype(np.uint8),
                )  # fmt: skip
            special = np.float32([np.nan, np.inf, 0, 2**-128, 3e38])
            beyond = 254 if saturates else 255
            least = 0 if saturates else 255
            largest = 254 if mode == "down" else beyond
            yield row(
                "Cast", special, to=number, saturate=saturates, round_mode=mode,
                name=f"to FLOAT8E8M0 {mode} {saturates} special",
                expected=np.uint8([255, beyond, least, least, largest]),
            )  # fmt: skip
    x = np.float32([1, 3, 4])
    yield row("CastLike", x, codes[:1], name="FLOAT8E8M0", expected=np.uint8([127, 129, 129]))
    wide, scales = np.linspace(-9, 9, 12, dtype=np.float32).reshape(3, 4), codes[[126, 127, 129]]
    yield row(
        "QuantizeLinear", wide, scales, name="by powers", axis=0, output_dtype=TensorProto.INT8,
        expected=np.rint(wide / scales.astype(np.float32)[:, None]).astype(np.int8),
    )  # fmt: skip


def integers():
    for name, dtype in INTEGERS.items():
        low, high = int(ml_dtypes.iinfo(dtype).min), int(ml_dtypes.iinfo(dtype).max)
        held = np.arange(low, high + 1).astype(dtype)
        kept = held.astype(np.int8 if low < 0 else np.uint8)
        number = TensorProto.DataType.Value(name)
        yield row(
            "Cast", held, name=f"from {name}", to=TensorProto.FLOAT,
            expected=held.astype(np.float32), ulp=0,
        )  # fmt: skip
        yield row("Cast", kept, name=f"to {name}", to=number, expected=kept)
        wide = np.arange(-300, 300, dtype=np.int32)
        wrapped = wide.astype(dtype).astype(kept.dtype)
        yield row("Cast", wide, name=f"to {name} wrapped", to=number, expected=wrapped)
        x = np.linspace(low, high, 37, dtype=np.float32)
        yield row(
            "Cast", x, name=f"floats to {name}", to=number,
            expected=np.trunc(x).astype(kept.dtype),
        )  # fmt: skip


def models():
    """Title, rows and kind of each model."""
    yield "narrow floats", list(floats()), NarrowModel
    yield "narrow powers", list(powers()), NarrowModel
    yield "narrow integers", list(integers()), NarrowModel
