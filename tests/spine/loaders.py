"""The C API of libtcc_data through ctypes, as far as tests need it."""

import ctypes as c
import os

import numpy as np

from harness import BIN
from spine import capi


class LoaderTensor(c.Structure):
    _fields_ = [
        ("name", c.c_char_p),
        ("dtype", c.c_int),
        ("rank", c.c_size_t),
        ("shape", c.POINTER(c.c_int64)),
        ("is_target", c.c_int32),
        ("tokens_ahead", c.c_int32),
        ("ignore_index", c.c_int64),
        ("variant_count", c.c_size_t),
        ("variants", c.POINTER(c.POINTER(c.c_int64))),
    ]


class LoaderOptions(c.Structure):
    _fields_ = [
        ("struct_size", c.c_size_t),
        ("phase", c.c_int),
        ("seed", c.c_uint64),
        ("keeps_order", c.c_int32),
        ("setting_count", c.c_size_t),
        ("settings", c.POINTER(c.c_char_p)),
        ("plan", c.c_char_p),
    ]


NO_INDEX = -(1 << 63)


def describe(name, dtype, shape, is_target=False, tokens_ahead=-1, ignore_index=NO_INDEX, variants=()):
    """A tensor of one shape, or of that of each of `variants`."""
    extents = [(c.c_int64 * len(each))(*each) for each in variants]
    pointers = (c.POINTER(c.c_int64) * len(extents))(
        *(c.cast(each, c.POINTER(c.c_int64)) for each in extents)
    )
    return LoaderTensor(name.encode(), capi.DTYPES.index(dtype), len(shape),
                        (c.c_int64 * len(shape))(*shape), is_target, tokens_ahead, ignore_index,
                        len(extents), pointers)  # fmt: skip


class Loader:
    """Batches of tensors that `describe` gives."""

    def __init__(self, data, tensors, *settings, seed=7, keeps_order=False):
        self.library = capi.Library(os.path.join(BIN, "../runtime/libtcc_data.so"))
        texts = (c.c_char_p * len(settings))(*(setting.encode() for setting in settings))
        options = LoaderOptions(c.sizeof(LoaderOptions), 0, seed, keeps_order, len(settings), texts, None)
        given, self.handle = (LoaderTensor * len(tensors))(*tensors), c.c_void_p()
        self.library.call("tcc_loader_open", data.encode(), given, c.c_size_t(len(tensors)),
                          c.byref(options), c.byref(self.handle))  # fmt: skip
        self.views = (capi.Tensor * len(tensors))()

    def read(self, number):
        self.library.call("tcc_loader_read", self.handle, c.c_int64(number), c.c_int64(1), self.views)

    def arrays(self):
        """Copies of what was read."""
        for view in self.views:
            shape = view.shape[: view.rank]
            dtype = np.dtype(capi.DTYPES[view.dtype])
            size = int(np.prod(shape)) * dtype.itemsize
            yield np.frombuffer(c.string_at(view.data, size), dtype).reshape(shape)

    def close(self):
        self.library.lib.tcc_loader_release(self.handle)
