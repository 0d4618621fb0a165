"""Malformed archives of PyTorch: archives.py [--count N]

N truncations and N flips of each of a few small archives, seeded, and attacks made
by hand. Whatever the bytes are, tcc ends with 3 or 4 and a plain line; a flip may
also hit bytes that mean nothing.
"""

import argparse
import functools
import glob
import io
import json
import os
import struct
import tempfile
import warnings
import zipfile

from frontends.archives.run import FIXTURES
from fuzz import malformed
from harness import Tally

REFUSED = {3, 4}
MUTATED = ("digits", "branches", "in_place")


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
    for name in ("byteorder", text):
        yield f"without {name}", pack(within({k: v for k, v in entries.items() if k != name}))


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


def check_attacks(tally, name, attacks):
    """Each of them is refused."""
    attacks = list(attacks)
    check = functools.partial(malformed.check_model, codes=REFUSED, name="model.pt2")
    for (label, data), i in zip(attacks, range(len(attacks))):
        with tempfile.TemporaryDirectory() as folder:
            message = check(data, folder)
        tally.check(f"{name} {i}: {label}", message is None, message)


def check_mutations(tally, name, data, count):
    kept = functools.partial(malformed.check_model, codes=REFUSED | {0}, name="model.pt2")
    cut = functools.partial(malformed.check_model, codes=REFUSED, name="model.pt2")
    for mutate, check in ((malformed.truncated, cut), (malformed.flipped, kept)):
        damaged = malformed.mutations(data, mutate, count)
        # What is left of very short files is no archive, and so no ONNX model.
        malformed.check_all(tally, f"{name} {mutate.__name__}", check, damaged)


def main(count):
    warnings.filterwarnings("ignore", "Duplicate name")
    tally = Tally()
    program = read(f"{FIXTURES}/digits.pt2")
    check_attacks(tally, "zip", zip_attacks(program))
    check_attacks(tally, "program", program_attacks(program))
    for name in MUTATED:
        for path in glob.glob(f"{FIXTURES}/{name}*.pt*"):
            with open(path, "rb") as stream:
                check_mutations(tally, os.path.basename(path), stream.read(), count)
    tally.close()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=100)
    main(parser.parse_args().count)
