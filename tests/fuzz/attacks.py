"""Archives that are made to do harm, in pairs of a name and the bytes."""

import io
import json
import struct
import tarfile
import zipfile

import numpy as np


def read(path):
    """The entries of an archive by their names in its folder."""
    with zipfile.ZipFile(path) as archive:
        return {name.split("/", 1)[1]: archive.read(name) for name in archive.namelist()}


def pack(entries, method=zipfile.ZIP_STORED):
    """An archive of pairs of whole names and bytes."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", method) as archive:
        for name, data in entries:
            archive.writestr(zipfile.ZipInfo(name), data, method)
    return stream.getvalue()


def within(entries):
    return [(f"m/{name}", data) for name, data in entries.items()]


def patch_sizes(data, size):
    """The sizes in the directory say `size`."""
    changed = bytearray(data)
    place = changed.find(b"PK\x01\x02")
    while place >= 0:
        changed[place + 20 : place + 28] = struct.pack("<II", size, size)
        place = changed.find(b"PK\x01\x02", place + 46)
    return bytes(changed)


def zip_attacks(entries):
    """Names with the bytes of archives that are none."""
    whole = pack(within(entries))
    yield "empty", pack([])
    yield "no model", pack([("m/a", b"x")])
    yield "header alone", whole[:30]
    yield "sizes beyond the file", patch_sizes(whole, 1 << 30)
    yield "sizes of 64 bits without them", patch_sizes(whole, 0xFFFFFFFF)
    yield "folder up", pack([*within(entries), ("m/../../etc/passwd", b"x")])
    yield "absolute", pack([*within(entries), ("/etc/passwd", b"x")])
    yield "backslash", pack([*within(entries), ("m/..\\x", b"x")])
    yield "two folders", pack([*within(entries), ("n/x", b"x")])
    yield "twice", pack([*within(entries), ("m/byteorder", b"little")])
    yield "directory elsewhere", whole[:-6] + struct.pack("<I", 7) + whole[-2:]
    text = next(name for name in entries if name.endswith((".json", ".pkl")))
    bomb = entries | {text: b" " * (64 << 20)}
    yield "bomb", pack(within(bomb), zipfile.ZIP_DEFLATED)
    yield "without it", pack(within({k: v for k, v in entries.items() if k != text}))


def change(model, *path, value):
    """A copy of the JSON with the value at `path`."""
    copy = json.loads(json.dumps(model))
    place = copy
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    return copy


def program_attacks(entries):
    name = next(name for name in entries if name.startswith("models/"))
    model = json.loads(entries[name])
    graph = "graph_module", "graph"
    values = model["graph_module"]["graph"]["tensor_values"]
    first = next(name for name in values if not name.startswith(("p_", "b_")))
    size = (*graph, "tensor_values", first, "sizes")
    node = model["graph_module"]["graph"]["nodes"][0]
    changes = {
        "major version": change(model, "schema_version", "major", value=9),
        "no nodes": change(model, *graph, "nodes", value=[]),
        "nodes of a number": change(model, *graph, "nodes", value=3),
        "a node of text": change(model, *graph, "nodes", 0, value="x"),
        "an unknown op": change(model, *graph, "nodes", 0, "target", value="torch.ops.aten.x.y"),
        "another library": change(model, *graph, "nodes", 0, "target", value="os.system"),
        "no inputs": change(model, *graph, "nodes", 0, "inputs", value=[]),
        "too many inputs": change(model, *graph, "nodes", 0, "inputs", value=node["inputs"] * 99),
        "a negative size": change(model, *size, value=[{"as_int": -3}]),
        "a huge size": change(model, *size, value=[{"as_int": 1 << 62}] * 8),
        "a size of text": change(model, *size, value=[{"as_int": "x"}]),
        "an element type": change(model, *graph, "tensor_values", first, "dtype", value=77),
        "no signature": change(model, "graph_module", "signature", value=None),
        "specs of text": change(model, "graph_module", "signature", "input_specs", value=["x"]),
        "no outputs": change(model, "graph_module", "signature", "output_specs", value=[]),
        "a stated type": change(
            model, *graph, "tensor_values", node["name"], "dtype", value=5
        ),
    }
    for key, changed in changes.items():
        yield key, pack(within(entries | {name: json.dumps(changed).encode()}))
    nested = b'{"a":' * 5000 + b"1" + b"}" * 5000
    yield "nested", pack(within(entries | {name: nested}))
    yield "not JSON", pack(within(entries | {name: b"{" * 100}))
    config = "data/weights/model_weights_config.json"
    weights = json.loads(entries[config])["config"]
    key = next(iter(weights))
    meta = ("config", key, "tensor_meta")
    for label, path, value in (
        ("offset", (*meta, "storage_offset"), {"as_int": 1 << 40}),
        ("negative offset", (*meta, "storage_offset"), {"as_int": -1}),
        ("stride", (*meta, "strides"), [{"as_int": 1 << 60}] * 4),
        ("negative stride", (*meta, "strides"), [{"as_int": -1}] * 4),
        ("fewer strides", (*meta, "strides"), []),
        ("extents", (*meta, "sizes"), [{"as_int": 1 << 31}] * 4),
        ("path", ("config", key, "path_name"), "../../secret"),
        ("pickled", ("config", key, "use_pickle"), True),
    ):
        changed = change({"config": weights}, *path, value=value)
        yield f"tensor {label}", pack(within(entries | {config: json.dumps(changed).encode()}))


def tensor_of(name):
    return {"as_tensor": {"name": name}}


def meta_of(sizes, strides=None):
    strides = strides or [int(np.prod(sizes[i + 1 :])) for i in range(len(sizes))]
    sizes, strides = ([{"as_int": n} for n in numbers] for numbers in (sizes, strides))
    return {"dtype": 7, "sizes": sizes, "strides": strides, "storage_offset": {"as_int": 0}}


def node_of(target, results, *arguments):
    inputs = [{"name": "", "arg": argument, "kind": 1} for argument in arguments]
    outputs = [tensor_of(name) for name in results]
    return {"target": target, "inputs": inputs, "outputs": outputs, "name": results[0]}


def made_program(nodes, inputs, outputs, copies=0):
    """A program of its own, with `copies` large tensors within one small entry."""
    specs = [{"user_input": {"arg": tensor_of(name)}} for name, _ in inputs]
    stored = {f"t{i}": meta_of((1 << 12, 1 << 10), [0, 1]) for i in range(copies)}
    for name in stored:
        specs.append({"parameter": {"arg": {"name": name}, "parameter_name": name}})
    graph = {"nodes": nodes, "tensor_values": dict(inputs)}
    results = [{"user_output": {"arg": tensor_of(name)}} for name in outputs]
    signature = {"input_specs": specs, "output_specs": results}
    model = {"graph_module": {"graph": graph, "signature": signature}}
    model["schema_version"] = {"major": 8, "minor": 8}
    places = {k: {"path_name": "w", "tensor_meta": v} for k, v in stored.items()}
    entries = {
        "archive_format": b"pt2", "archive_version": b"0", "byteorder": b"little",
        "models/model.json": json.dumps(model).encode(),
        "data/weights/model_weights_config.json": json.dumps({"config": places}).encode(),
        "data/weights/w": bytes(4096),
    }  # fmt: skip
    return pack(within(entries))


def made_attacks():
    """Calls whose operands have too few axes, and what lies or is read oddly."""
    aten = "torch.ops.aten."
    x, scalar = tensor_of("x"), meta_of(())
    zero, one = {"as_int": 0}, {"as_int": 1}
    for target, *arguments in (
        ("chunk", one), ("diff",), ("glu",), ("narrow", zero, zero, one),
        ("repeat_interleave.self_int", one, zero), ("roll", {"as_ints": [1]}, {"as_ints": [0]}),
        ("select.int", zero, zero), ("slice.Tensor", zero), ("sort",), ("split.Tensor", one),
        ("topk", one), ("unbind.int",), ("unflatten.int", zero, {"as_ints": [1, 1]}),
    ):  # fmt: skip
        node = node_of(aten + target, ["y"], x, *arguments)
        yield f"{target} of a scalar", made_program([node], [("x", scalar)], ["y"])
    inputs = [("x", meta_of((2, 4, 3, 3))), ("s", scalar)]
    node = node_of(aten + "group_norm", ["y"], x, {"as_int": 2}, tensor_of("s"))
    yield "a scalar weight", made_program([node], inputs, ["y"])
    states = {"as_tensors": [{"name": "h"}, {"name": "c"}]}
    inputs = [("h", meta_of((2, 3))), ("c", meta_of((4,))), ("w", meta_of((12, 3)))]
    weights = tensor_of("w"), tensor_of("w")
    node = node_of(aten + "lstm_cell", ["y", "z"], tensor_of("h"), states, *weights)
    yield "a cell of rank 1", made_program([node], inputs, ["y"])
    inputs = [("x", meta_of((2, 3)))]
    relu = node_of(aten + "relu", ["y"], x)
    yield "expanded tensors", made_program([relu], inputs, ["y"], copies=40)
    yield "inputs of one name", made_program([relu], inputs * 2, ["y"])
    wrapped = {"as_graph": {"name": "g", "graph": {"inputs": [tensor_of("a")], "nodes": []}}}
    target = "torch.ops.higher_order.wrap_with_set_grad_enabled"
    nodes = [relu, node_of(target, ["z"], {"as_bool": False}, wrapped, x)]
    yield "a graph without outputs", made_program(nodes, inputs, ["y", "z"])
    a = tensor_of("a")
    nodes = [
        node_of(aten + "clone", ["a"], x),
        node_of(aten + "reshape", ["b"], a, {"as_ints": [6]}),
        node_of(aten + "add_.Tensor", ["c"], tensor_of("b"), one),
        node_of(aten + "relu", ["y"], a),
    ]
    yield "a read of what may be written", made_program(nodes, inputs, ["y"])


def unicode_of(text):
    return b"X" + struct.pack("<I", len(text)) + text.encode()


def tensor(key="0", offset=0, extents=(2,), strides=(1,), storage="FloatStorage", count=2):
    """The opcodes of a tensor."""

    def integers(values):
        return b"(" + b"".join(b"J" + struct.pack("<i", v) for v in values) + b"t"

    parts = b"(" + unicode_of("storage") + f"ctorch\n{storage}\n".encode() + unicode_of(key)
    parts += unicode_of("cpu") + b"J" + struct.pack("<i", count) + b"tQ"
    parts += b"J" + struct.pack("<i", offset)
    parts += integers(extents) + integers(strides) + b"\x89N"
    return b"ctorch._utils\n_rebuild_tensor_v2\n(" + parts + b"tR"


def pickle_attacks():
    """Pickles that would run code, or are not what they say."""
    yield "os.system", b"cos\nsystem\n" + unicode_of("true") + b"\x85R."
    yield "eval", b"cbuiltins\neval\n" + unicode_of("1") + b"\x85R."
    yield "getattr", b"cbuiltins\ngetattr\n" + unicode_of("a") + unicode_of("b") + b"\x86R."
    yield "a class of torch", b"ctorch.serialization\nload\n" + unicode_of("x") + b"\x85R."
    yield "inst", b"(" + unicode_of("true") + b"ios\nsystem\n."
    yield "obj", b"(cos\nsystem\n" + unicode_of("true") + b"o."
    yield "stack_global", unicode_of("os") + unicode_of("system") + b"\x93."
    yield "ext", b"\x82\x01."
    # CVE-2026-24747: SETITEM and SETITEMS on what is no dictionary, and a storage that
    # says to have more elements than its entry.
    for label, target in (
        ("an instance", b"c__torch__\nDigits\n)\x81"), ("a list", b"]"), ("a tuple", b")"),
        ("a number", b"K\x01"), ("a tensor", tensor()), ("a text", unicode_of("x")),
    ):  # fmt: skip
        yield f"setitems on {label}", target + b"(K\x01K\x02u."
        yield f"setitem on {label}", target + b"K\x01K\x02s."
        if label != "a list":
            yield f"append to {label}", target + b"K\x01a."
    yield "a storage of more than its entry", tensor(count=1 << 20) + b"."
    yield "a storage of less than none", tensor(count=-1) + b"."
    yield "build on a number", b"K\x01}b."
    yield "no end", b"}" * 100
    yield "only marks", b"(" * (1 << 20) + b"."
    yield "pop of nothing", b"R."
    yield "recall of nothing", b"h\x07."
    yield "a long text", b"X\xff\xff\xff\xffabc."
    yield "a long integer", b"\x8a\xff" + b"\x7f" * 255 + b"."
    yield "deep lists", b"]" * 400000 + b"a" * 399999 + b"."
    yield "deep dictionaries", b"}K\x00" * 300000 + b"N" + b"s" * 300000 + b"."
    yield "deep tuples", b")" + b"\x85" * 500000 + b"."
    yield "a list in itself", b"]q\x00h\x00a."
    yield "an instance in itself", (
        b"c__torch__\nDigits\n)\x81q\x00}(" + unicode_of("conv") + b"h\x00ub."
    )
    huge = 1 << 30
    for label, made in (
        ("far offset", tensor(offset=huge)),
        ("negative offset", tensor(offset=-4)),
        ("huge extents", tensor(extents=(huge, huge, huge), strides=(1, 1, 1))),
        ("negative extents", tensor(extents=(-2,))),
        ("huge strides", tensor(strides=(huge,))),
        ("negative strides", tensor(strides=(-1,))),
        ("fewer strides", tensor(strides=())),
        ("no such entry", tensor(key="9999")),
        ("an entry elsewhere", tensor(key="../../etc/passwd")),
        ("no such storage", tensor(storage="OddStorage")),
    ):
        yield label, made + b"."


def old_formats():
    """CVE-2025-32434: what PyTorch wrote before zip files, a tar file and bare pickles,
    was read without an allow-list."""
    attack = b"\x80\x02cos\nsystem\n" + unicode_of("true") + b"\x85R."
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as archive:
        for name in ("storages", "tensors", "pickle"):
            info = tarfile.TarInfo(name)
            info.size = len(attack)
            archive.addfile(info, io.BytesIO(attack))
    yield "a tar file", stream.getvalue()
    magic = b"\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19."
    yield "pickles", magic + b"\x80\x02M\xe9\x03." + b"\x80\x02}." + attack
    yield "a pickle", attack


FORWARD = """class Activations(Module):
  def forward(self: __torch__.frontends.archives.modules.Activations,
    x: Tensor) -> Tensor:
"""


def script_attacks(entries):
    for label, data in pickle_attacks():
        for name in ("data.pkl", "constants.pkl"):
            yield f"{name}: {label}", pack(within(entries | {name: data}))
    code = "code/__torch__/frontends/archives/modules.py"
    for label, lines in {
        "recursion": "    return (self).forward(x, )\n",
        "a loop": "    for i in range(1000000000000):\n      pass\n    return x\n",
        "a loop that goes on": "    while True:\n      pass\n    return x\n",
        "import": "    import os\n",
        "an operator": "    return x ^ x\n",
        "no operand": "    return x +\n",
        "operators in operators": "    return x" + " + x" * 5000 + "\n",
        "signs": "    return " + "-" * 5000 + "x\n",
        "powers": "    return x" + " ** x" * 5000 + "\n",
        "a slice without end": "    return x[1:2, :\n",
        "a number of a list": "    return [x] + 1\n",
        "a method of a number": "    return (1).sum()\n",
        "lambda": "    return (lambda: x)()\n",
        "eval": "    return eval('1')\n",
        "a name": "    return y\n",
        "a list that grows": "    l = [x]\n    for i in range(99):\n"
        "      l1 = torch.extend(l, l)\n    return x\n",
        "lists in lists": "    l = [x]\n    for i in range(500000):\n      l = [l]\n"
        "    return torch.add(l, 1)\n",
        "equal lists in themselves": "    l = [1]\n    l1 = torch.append(l, l)\n    m = [1]\n"
        "    m1 = torch.append(m, m)\n    n = torch.eq(l, m)\n    return l\n",
        "a list in itself": "    l = [x]\n    l1 = torch.append(l, l)\n    return l\n",
        "depth": "    return " + "(" * 9000 + "x" + ")" * 9000 + "\n",
        "a chain": "    return x" + ".a" * 9000 + "\n",
        "minus": "    return " + "-" * 9000 + "1\n",
        "a constant": "    return CONSTANTS.c99999999999999999999\n",
        "indentation": "     return x\n   return x\n",
        "a string": "    return 'x\n",
        "an index": "    l = [x]\n    return l[-9]\n",
        "division": "    return torch.floordiv(1, 0)\n",
        "view": "    return torch.view(x, [-1, 9223372036854775807])\n",
        "repeat": "    return torch.repeat(x, [1099511627776, 1, 1, 1])\n",
        "negative": "    return torch.zeros([-5])\n",
        "nothing": "    pass\n",
    }.items():
        changed = FORWARD + lines
        yield f"code: {label}", pack(within(entries | {code: changed.encode()}))
    yield "code of zeros", pack(within(entries | {code: b"\0" * 1000}))
    versionless = {k: v for k, v in entries.items() if not k.endswith("version")}
    yield "no version", pack(within(versionless))
    yield "version", pack(within(versionless | {"version": b"999\n"}))
