"""Writes what torch.save writes, without PyTorch."""

import collections
import io
import pickle
import sys
import types
import zipfile

STORAGES = {
    "float32": "FloatStorage",
    "float64": "DoubleStorage",
    "float16": "HalfStorage",
    "int64": "LongStorage",
    "uint8": "ByteStorage",
    "bool": "BoolStorage",
}


class Stored:
    """A tensor: elements of `array`, which is flat, from `offset` on."""

    def __init__(self, array, shape, strides, offset=0):
        self.array, self.shape, self.strides, self.offset = array, shape, strides, offset

    @staticmethod
    def of(array):
        strides = [stride // array.itemsize for stride in array.strides]
        return Stored(array.ravel(), array.shape, strides)


class Parameter:
    def __init__(self, tensor):
        self.tensor = tensor


def make_modules():
    """Stands for those whose names a pickle has."""
    torch, utils = types.ModuleType("torch"), types.ModuleType("torch._utils")
    for name in STORAGES.values():
        setattr(torch, name, type(name, (), {"__module__": "torch"}))
    for name in ("_rebuild_tensor_v2", "_rebuild_parameter"):
        function = types.FunctionType((lambda *_: None).__code__, {})
        function.__module__, function.__qualname__ = "torch._utils", name
        setattr(utils, name, function)
    torch._utils = utils
    return {"torch": torch, "torch._utils": utils}


class Pickler(pickle.Pickler):
    def __init__(self, stream, modules):
        super().__init__(stream, protocol=2)
        self.modules, self.keys = modules, {}

    def persistent_id(self, value):
        if not isinstance(value, tuple) or len(value) != 2 or value[0] != "storage":
            return None
        array = value[1]
        key = self.keys.setdefault(id(array), (str(len(self.keys)), array))[0]
        storage = getattr(self.modules["torch"], STORAGES[array.dtype.name])
        return ("storage", storage, key, "cpu", array.size)

    def reducer_override(self, value):
        utils, hooks = self.modules["torch._utils"], collections.OrderedDict()
        if isinstance(value, Stored):
            return utils._rebuild_tensor_v2, (("storage", value.array), value.offset, tuple(value.shape),
                                              tuple(value.strides), False, hooks)  # fmt: skip
        if isinstance(value, Parameter):
            return utils._rebuild_parameter, (value.tensor, True, hooks)
        return NotImplemented


def save(path, value, *, order=b"little", change=None):
    """`change` takes and gives the bytes of the pickle."""
    modules = make_modules()
    before = {name: sys.modules.get(name) for name in modules}
    sys.modules.update(modules)
    try:
        stream = io.BytesIO()
        pickler = Pickler(stream, modules)
        pickler.dump(value)
    finally:
        for name, module in before.items():
            if module is None:
                del sys.modules[name]
            else:
                sys.modules[name] = module
    data = stream.getvalue()
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("archive/data.pkl", change(data) if change else data)
        archive.writestr("archive/byteorder", order)
        for key, array in pickler.keys.values():
            archive.writestr(f"archive/data/{key}", array.tobytes())
        archive.writestr("archive/version", "3\n")
