"""The C API of libtcc_runtime through ctypes, as far as tests need it."""

import ctypes as c

import numpy as np

DTYPES = ["float32", "float16", None, "float64", "int8", "int16", "int32"]
DTYPES += ["int64", "uint8", "uint16", "uint32", "uint64", "bool"]


class Tensor(c.Structure):
    _fields_ = [
        ("data", c.c_void_p),
        ("dtype", c.c_int),
        ("rank", c.c_size_t),
        ("shape", c.POINTER(c.c_int64)),
    ]


class PackageOptions(c.Structure):
    _fields_ = [("struct_size", c.c_size_t), ("skip_weight_check", c.c_int32)]


class ProgramOptions(c.Structure):
    _fields_ = [
        ("struct_size", c.c_size_t),
        ("weights_file", c.c_char_p),
        ("threads", c.c_int32),
        ("allocator", c.c_void_p),
        ("log", c.c_void_p),
        ("device", c.c_char_p),
    ]


class RunOptions(c.Structure):
    """tcc_context_options."""

    _fields_ = [
        ("struct_size", c.c_size_t),
        ("threads", c.c_int32),
        ("pool", c.c_void_p),
        ("allocator", c.c_void_p),
    ]


class SessionOptions(c.Structure):
    _fields_ = [
        *RunOptions._fields_,
        ("ranks", c.c_int32),
        ("rank", c.c_int32),
        ("rendezvous", c.c_char_p),
    ]


class StepMetrics(c.Structure):
    _fields_ = [
        ("step", c.c_int64),
        ("loss", c.c_double),
        ("grad_norm", c.c_double),
        ("lr", c.c_double),
        ("loss_scale", c.c_double),
        ("skipped", c.c_int32),
    ]


class Program(c.c_void_p):
    """Released, with what of its package is mapped, once nothing in Python needs it."""

    lib = None

    def __del__(self):
        if self:
            self.lib.tcc_program_release(self)


class Library:
    def __init__(self, path):
        self.lib = c.CDLL(path)
        self.lib.tcc_status_message.restype = c.c_char_p
        self.lib.tcc_program_find_input.restype = c.c_ssize_t
        self.lib.tcc_program_find_output.restype = c.c_ssize_t

    def call(self, name, *arguments):
        function = getattr(self.lib, name)
        function.restype = c.c_void_p
        status = function(*arguments)
        if status:
            raise RuntimeError(self.lib.tcc_status_message(c.c_void_p(status)))

    def count(self, name, handle):
        function = getattr(self.lib, name)
        function.restype = c.c_uint64
        return function(handle)

    def open(self, path, check_weights=True, device=None):
        """The program of a package, on the device that it is for, or another."""
        package, program = c.c_void_p(), Program()
        program.lib = self.lib
        options = PackageOptions(c.sizeof(PackageOptions), not check_weights)
        self.call(
            "tcc_package_open",
            str(path).encode(),
            c.byref(options),
            c.byref(package),
        )
        options = ProgramOptions(c.sizeof(ProgramOptions), None, 0, None, None)
        options.device = device.encode() if device else None
        self.call("tcc_program_create", package, c.byref(options), c.byref(program))
        self.lib.tcc_package_release(package)
        return program


def tensor_of(array):
    """It reads the array, which must be dense, in place."""
    shape = (c.c_int64 * max(1, array.ndim))(*array.shape)
    dtype = DTYPES.index(array.dtype.name)
    return Tensor(array.ctypes.data, dtype, array.ndim, shape)


class Context:
    """One context; `run` takes and gives numpy arrays by name.

    The inputs stay bound, for runs that follow by tcc_context_run.
    """

    def __init__(self, library, program, threads=0):
        self.library, self.program = library, program
        self.handle = c.c_void_p()
        options = RunOptions(c.sizeof(RunOptions), threads, None, None)
        library.call(
            "tcc_context_create", program, c.byref(options), c.byref(self.handle)
        )

    def __del__(self):
        self.library.lib.tcc_context_release(self.handle)

    def run(self, inputs, outputs):
        lib, self.bound = self.library.lib, []
        for name, array in inputs.items():
            array = np.asarray(array, order="C")
            tensor = tensor_of(array)
            self.bound.append(array)
            index = lib.tcc_program_find_input(self.program, name.encode())
            self.library.call(
                "tcc_context_bind_input",
                self.handle,
                c.c_size_t(index),
                c.byref(tensor),
            )
        self.library.call("tcc_context_run", self.handle)
        return [self.output(name) for name in outputs]

    def planned_bytes(self):
        return self.library.count("tcc_context_planned_bytes", self.handle)

    def output(self, name):
        index = self.library.lib.tcc_program_find_output(
            self.program, name.encode()
        )
        tensor = Tensor()
        self.library.call(
            "tcc_context_output", self.handle, c.c_size_t(index), c.byref(tensor)
        )
        shape = [tensor.shape[i] for i in range(tensor.rank)]
        dtype = np.dtype(DTYPES[tensor.dtype])
        count = int(np.prod(shape, dtype=np.int64))
        bytes_ = c.string_at(tensor.data, count * dtype.itemsize)
        return np.frombuffer(bytes_, dtype).reshape(shape)


class Session:
    """Trains a package; `step` takes the inputs and the target of a batch."""

    def __init__(self, library, program, threads=0, ranks=1, rank=0, rendezvous=None):
        self.library, self.program = library, program
        self.handle = c.c_void_p()
        options = SessionOptions(c.sizeof(SessionOptions), threads, None, None,
                                 ranks, rank, rendezvous and rendezvous.encode())  # fmt: skip
        library.call(
            "tcc_session_create", program, c.byref(options), c.byref(self.handle)
        )

    def __del__(self):
        self.library.lib.tcc_session_release(self.handle)

    def step(self, *arrays):
        arrays = [np.asarray(array, order="C") for array in arrays]
        batch = (Tensor * len(arrays))(*map(tensor_of, arrays))
        metrics = StepMetrics()
        self.library.call(
            "tcc_session_step",
            self.handle,
            batch,
            c.c_size_t(len(arrays)),
            c.byref(metrics),
        )
        return metrics

    def planned_bytes(self):
        return self.library.count("tcc_session_planned_bytes", self.handle)
