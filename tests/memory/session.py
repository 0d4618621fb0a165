"""Training sessions through the C API, with memory whose pages can be counted."""

import ctypes
import mmap
import os
import re

import numpy
from harness import BIN, Failure

LIBRARY = os.path.join(os.path.dirname(BIN), "runtime/libtcc_runtime.so")
PAGE = mmap.PAGESIZE
NO_HUGE_PAGES = 15  # MADV_NOHUGEPAGE
DTYPES = ["f4", "f2", None, "f8", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "?"]

Pointer, Size = ctypes.c_void_p, ctypes.c_size_t
Allocate = ctypes.CFUNCTYPE(Pointer, Pointer, Size, Size)
Release = ctypes.CFUNCTYPE(None, Pointer, Pointer, Size)


class Allocator(ctypes.Structure):
    _fields_ = [("user", Pointer), ("allocate", Allocate), ("release", Release)]


class SessionOptions(ctypes.Structure):
    _fields_ = [
        ("struct_size", Size),
        ("threads", ctypes.c_int32),
        ("pool", Pointer),
        ("allocator", ctypes.POINTER(Allocator)),
    ]


class Dim(ctypes.Structure):
    _fields_ = [
        ("extent", ctypes.c_int64),
        ("min", ctypes.c_int64),
        ("max", ctypes.c_int64),
        ("symbol", ctypes.c_char_p),
    ]


class Spec(ctypes.Structure):
    _fields_ = [
        ("name", ctypes.c_char_p),
        ("dtype", ctypes.c_int),
        ("rank", Size),
        ("dims", ctypes.POINTER(Dim)),
    ]


class Tensor(ctypes.Structure):
    _fields_ = [
        ("data", Pointer),
        ("dtype", ctypes.c_int),
        ("rank", Size),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
    ]


class Pages:
    """Blocks on pages of their own, each between two that nothing can touch, so that
    the system counts it apart."""

    def __init__(self):
        self.libc = ctypes.CDLL(None, use_errno=True)
        self.libc.mmap.restype = Pointer
        self.libc.mmap.argtypes = [Pointer, Size] + [ctypes.c_int] * 3 + [ctypes.c_long]
        self.libc.mprotect.argtypes = [Pointer, Size, ctypes.c_int]
        self.libc.madvise.argtypes = [Pointer, Size, ctypes.c_int]
        self.libc.munmap.argtypes = [Pointer, Size]
        self.blocks = {}  # bytes by address
        self.hooks = Allocator(None, Allocate(self.allocate), Release(self.release))

    def allocate(self, _, size, alignment):
        room = -(-size // PAGE) * PAGE
        flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
        start = self.libc.mmap(None, room + 2 * PAGE, 0, flags, -1, 0)
        assert alignment <= PAGE and start not in (None, 2**64 - 1)
        address = start + PAGE
        self.libc.mprotect(address, room, mmap.PROT_READ | mmap.PROT_WRITE)
        self.libc.madvise(address, room, NO_HUGE_PAGES)
        self.blocks[address] = size
        return address

    def release(self, _, address, size):
        room = -(-self.blocks.pop(address) // PAGE) * PAGE
        self.libc.munmap(address - PAGE, room + 2 * PAGE)

    def resident(self):
        """(bytes that were asked for, bytes that are in memory) of each block."""
        rows, size = [], None
        with open("/proc/self/smaps") as stream:
            for line in stream:
                found = re.match(r"([0-9a-f]+)-[0-9a-f]+ ", line)
                if found:
                    size = self.blocks.get(int(found[1], 16))
                elif line.startswith("Rss:") and size is not None:
                    rows.append((size, int(line.split()[1]) * 1024))
        return rows


class Session:
    """Trains on one random batch."""

    def __init__(self, path, threads=1):
        self.library = ctypes.CDLL(LIBRARY)
        self.library.tcc_status_message.restype = ctypes.c_char_p
        self.pages = Pages()
        package, program, self.handle = Pointer(), Pointer(), Pointer()
        self.call("tcc_package_open", path.encode(), None, ctypes.byref(package))
        self.call("tcc_program_create", package, None, ctypes.byref(program))
        options = SessionOptions(
            ctypes.sizeof(SessionOptions), threads, None, ctypes.pointer(self.pages.hooks)
        )
        self.call(
            "tcc_session_create", program, ctypes.byref(options), ctypes.byref(self.handle)
        )
        self.library.tcc_program_release(program)
        self.library.tcc_package_release(package)
        self.batch = self.make_batch()

    def call(self, name, *arguments):
        function = getattr(self.library, name)
        function.restype = Pointer
        status = function(*arguments)
        if status:
            message = self.library.tcc_status_message(Pointer(status))
            raise Failure(f"{name}: {message.decode()}")

    def make_batch(self):
        """Floats in [0, 1); integers are 0."""
        self.library.tcc_session_input.restype = ctypes.POINTER(Spec)
        self.library.tcc_session_input_count.restype = Size
        random, tensors, self.arrays = numpy.random.default_rng(0), [], []
        for i in range(self.library.tcc_session_input_count(self.handle)):
            spec = self.library.tcc_session_input(self.handle, Size(i)).contents
            shape = [spec.dims[axis].extent for axis in range(spec.rank)]
            array = random.random(shape).astype(DTYPES[spec.dtype])
            extents = (ctypes.c_int64 * spec.rank)(*shape)
            self.arrays.append((array, extents))
            tensors.append(Tensor(array.ctypes.data, spec.dtype, spec.rank, extents))
        return (Tensor * len(tensors))(*tensors)

    def step(self):
        self.call("tcc_session_step", self.handle, self.batch, Size(len(self.batch)), None)

    def run_all(self):
        """Every entry point once."""
        count = Size(len(self.batch))
        sums = (ctypes.c_double * 4)()
        self.step()
        self.call("tcc_session_accumulate", self.handle, self.batch, count)
        self.call("tcc_session_apply", self.handle, None)
        self.call("tcc_session_evaluate", self.handle, self.batch, count, sums)

    def close(self):
        self.library.tcc_session_release(self.handle)
