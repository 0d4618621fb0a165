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
    yield "narrow integers", list(integers()), NarrowModel
