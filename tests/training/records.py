"""Training on rows, lines and shards of records: records.py

The samples of an archive as CSV, JSON lines, MosaicML's shards and shards of zstd, of numbers and
of images, give the same weights, also over an interruption, by tcc-run eval and by the [data] of a
recipe. Damaged ones end a run with one line and the documented code, or are skipped.
"""

import ctypes as c
import ctypes.util
import io
import json
import os
import tempfile

import numpy as np
from PIL import Image

import harness
from images import write_tar
from spine.loaders import Loader, describe
from training import run, sources, transforms

NAMES = ("setosa", "versi,color", 'virgi"nica', "no name", "last")


def quote(field):
    return '"' + str(field).replace('"', '""') + '"'


def write_csv(path, names, rows, delimiter=","):
    """Every other row has its fields in quotes, ends as on Windows, and a blank line behind it."""
    with open(path, "w", encoding="utf-8", newline="") as file:
        for i, row in enumerate([names, *rows]):
            fields = [quote(x) if i % 2 or delimiter in str(x) or '"' in str(x) else str(x) for x in row]
            file.write(delimiter.join(fields) + ("\r\n\n" if i % 2 else "\n"))


def write_lines(path, rows):
    with open(path, "w", encoding="utf-8") as file:
        file.write("".join(json.dumps(row) + "\n" for row in rows))


class MdsFolder:
    """As MosaicML's streaming 0.13 writes it, of which this is the part that is read."""

    def __init__(self, path, columns, in_shard, compress=None):
        self.path, self.columns, self.in_shard, self.compress = path, columns, in_shard, compress
        self.index = {"version": 2, "shards": []}
        os.mkdir(path)

    def write(self, samples):
        for begin in range(0, len(samples), self.in_shard):
            self.write_shard(samples[begin : begin + self.in_shard])
        with open(os.path.join(self.path, "index.json"), "w", encoding="utf-8") as file:
            json.dump(self.index, file)

    def write_shard(self, samples):
        names, encodings, sizes = zip(*self.columns)
        about = {"column_names": names, "column_encodings": encodings, "column_sizes": sizes,
                 "format": "mds", "version": 2, "hashes": [], "size_limit": 1 << 26,
                 "compression": self.compress and "zstd:3"}  # fmt: skip
        config = json.dumps(about, sort_keys=True).encode()
        bodies = []
        for sample in samples:
            head = [len(value) for value, size in zip(sample, sizes) if size is None]
            bodies.append(np.array(head, "<u4").tobytes() + b"".join(sample))
        first = 4 + 4 * (len(bodies) + 1) + len(config)
        ends = np.cumsum([first, *map(len, bodies)]).astype("<u4")
        data = np.uint32(len(bodies)).tobytes() + ends.tobytes() + config + b"".join(bodies)
        name = f"shard.{len(self.index['shards']):05}.mds"
        files = {"raw_data": {"basename": name, "bytes": len(data), "hashes": {}}, "zip_data": None}
        if self.compress:
            data, name = self.compress(data), name + ".zstd"
            files["zip_data"] = {"basename": name, "bytes": len(data), "hashes": {}}
        with open(os.path.join(self.path, name), "wb") as file:
            file.write(data)
        self.index["shards"].append({**about, **files, "samples": len(bodies)})


def compress(data):
    """By libzstd, which Python 3.11 has not."""
    zstd = c.CDLL(ctypes.util.find_library("zstd"))
    zstd.ZSTD_compressBound.restype = zstd.ZSTD_compress.restype = c.c_size_t
    room = c.create_string_buffer(zstd.ZSTD_compressBound(c.c_size_t(len(data))))
    size = zstd.ZSTD_compress(room, c.c_size_t(len(room)), data, c.c_size_t(len(data)), 3)
    return room.raw[:size]


def compress_file(path):
    with open(path, "rb") as file, open(path + ".zst", "wb") as to:
        to.write(compress(file.read()))
    return path + ".zst"


class Suite(sources.Suite):
    """The arrays of data.npz as records of each kind."""

    def __init__(self, tally, folder):
        super().__init__(tally, folder)
        with np.load(self.path("data.npz")) as data:
            self.x, self.labels = data["x"], data["labels"]
        numbers = [[float(value) for value in row] for row in self.x]
        names = [f"f{i}" for i in range(self.x.shape[1])]
        half = len(numbers) // 2
        rows = [[*row, NAMES[label]] for row, label in zip(numbers, self.labels)]
        write_csv(self.path("first.csv"), [*names, "species"], rows[:half])
        write_csv(self.path("last.csv"), [*names, "species"], rows[half:])
        write_csv(self.path("whole.tsv"), ["labels", *names],
                  [[label, *row] for row, label in zip(numbers, self.labels)], "\t")  # fmt: skip
        write_lines(self.path("whole.jsonl"), [{"labels": int(label), "note": None, "x": row}
                                               for row, label in zip(numbers, self.labels)])  # fmt: skip
        columns = [("labels", "int", 8), ("t", "str", None), ("x", "ndarray:float32:7", 28)]
        samples = [(np.int64(label).tobytes(), b"abc"[: label % 4], row.tobytes())
                   for row, label in zip(self.x, self.labels)]  # fmt: skip
        MdsFolder(self.path("mds"), columns, 30).write(samples)
        shaped = [("labels", "uint8", 1), ("x", "ndarray:float32", None)]
        MdsFolder(self.path("zipped"), shaped, 60, compress).write([
            (np.uint8(label).tobytes(), bytes([1 << 2, len(row)]) + row.tobytes())
            for row, label in zip(self.x, self.labels)])  # fmt: skip
        write_tar(self.path("whole.tar"), [
            (f"{i:03}", {"x": " ".join(map(str, row)).encode(), "cls": b"%d" % label})
            for i, (row, label) in enumerate(zip(numbers, self.labels))])  # fmt: skip
        compress_file(self.path("whole.tar"))
        species = {"labels": list(NAMES[: run.CLASSES])}
        self.specs = {
            "npz": self.specs["npz"],
            "csv": self.plan("csv", "csv:first.csv,last.csv", map={"labels": "species"}, classes=species),
            "tsv": "csv:" + self.path("whole.tsv"),
            "columns": self.plan("columns", "csv:whole.tsv", map={"x": names}),
            "jsonl": "jsonl:" + self.path("whole.jsonl"),
            "mds": "mds:" + self.path("mds"),
            "mds.zstd": "mds:" + self.path("zipped"),
            "tar.zst": "webdataset:" + self.path("whole.tar.zst"),
        }

    def write(self, name, text):
        with open(self.path(name), "w", encoding="utf-8") as file:
            file.write(text)
        return self.path(name)

    def plan(self, name, source, **tables):
        lines = [f"{key} = {{{', '.join(f'{k} = {json.dumps(v)}' for k, v in table.items())}}}"
                 for key, table in tables.items()]  # fmt: skip
        return self.write(f"{name}.toml", f'[data]\nsource = "{source}"\n' + "\n".join(lines) + "\n")

    def refuse(self, name, spec, code, said, *flags):
        done = self.train(spec, "none", 1, "-q", "--no-shuffle", *flags)
        is_right = done.code == code and said in done.err and done.err.count("\n") == 1
        self.tally.check(f"{name}: refused", is_right, f"{done.code}: {done.err}")


def test_recipe(suite):
    """What a package says of data holds until something else is said."""
    recipe = run.RECIPE.format(micro=8)
    toml = """
[data]
source = "csv:first.csv,last.csv"
map = {labels = "species"}
classes = {labels = %s}
split = 0.2
""" % json.dumps(list(NAMES))
    package = suite.path("own.tcc")

    def compile(text, code, said):
        suite.write("own.toml", recipe + text)
        done = harness.run_tool("tcc", suite.path("model.onnx"), "-q", "-o", package,
                                "--train=" + suite.path("own.toml"))  # fmt: skip
        suite.tally.check(f"recipe: {said}", done.code == code and said in done.err, done.err)

    def train(folder, *flags):
        return harness.run_tool("tcc-run", "train", package, "--steps", sources.STEPS, "-q",
                                "--checkpoint-dir", suite.path(folder), *flags, cwd=suite.folder)  # fmt: skip

    compile("[data]\ndepht = 3\n", 3, "unknown key 'data.depht'")
    compile("[data]\nsource = 3\n", 3, "data.source is 3, expected a source")
    compile("data = 3\n", 3, "data")
    compile(toml, 0, "")
    told = json.loads(harness.call("tcc-run", "info", package, "--json"))["data"]
    suite.tally.check("recipe: tcc-run info says it", "split = 0.2" in told, told)
    done = train("recipe")
    suite.tally.check("recipe: trains", done.code == 0, done.err)
    plan = suite.write("plan.toml", toml)
    harness.call("tcc-run", "train", package, "--data", plan, "--steps", sources.STEPS, "-q",
                 "--checkpoint-dir", suite.path("plan"))  # fmt: skip
    suite.tally.check("recipe: the weights of the same plan",
                      suite.read_state("recipe") == suite.read_state("plan"))  # fmt: skip
    done = train("all", "--set", "data.split=0")
    suite.tally.check("recipe: --set", suite.read_state("all") == suite.read_state("csv whole"), done.err)
    done = train("other", "--data", "csv:" + suite.path("whole.tsv"), "--set", "data.split=0", "--set",
                 "data.map={}", "--set", "data.classes={}")  # fmt: skip
    suite.tally.check("recipe: --data", suite.read_state("other") == suite.read_state("csv whole"), done.err)
    said = [harness.run_tool("tcc-run", "eval", package, *flags, cwd=suite.folder)
            for flags in ((), ("--data", plan))]  # fmt: skip
    suite.tally.check("recipe: evaluates what split keeps",
                      said[0].code == 0 and said[0].out == said[1].out, said[0].err)  # fmt: skip
    compile("[data]\nworkers = 1\n", 0, "")
    for command in (("train", "--steps", 1), ("eval",)):
        done = harness.run_tool("tcc-run", command[0], package, *command[1:])
        suite.tally.check(f"recipe: {command[0]} without data",
                          done.code == 2 and "on which data?" in done.err, done.err)  # fmt: skip


def test_images(suite):
    """Rows and lines name files; columns of MosaicML's shards are files."""
    folder = suite.path("pictures")
    os.mkdir(folder)
    inner = transforms.Suite(suite.tally, folder)
    lines, steps = transforms.CHAINS["imagenet"]
    expected = inner.state(inner.save("data.npz", transforms.scaled(inner.pixels(steps))))
    names = []
    for i, (kind, data) in enumerate(inner.files):
        names.append(f"{i % 3}/{i}.{kind}")
        os.makedirs(os.path.join(folder, str(i % 3)), exist_ok=True)
        with open(os.path.join(folder, names[-1]), "wb") as file:
            file.write(data)
    write_csv(inner.path("list.csv"), ["file", "labels"], zip(names, inner.labels))
    write_lines(inner.path("list.jsonl"), [{"file": name, "labels": label}
                                           for name, label in zip(names, inner.labels)])  # fmt: skip
    MdsFolder(inner.path("mds"), [("file", "jpeg", None), ("labels", "int32", 4)], 16).write(
        [(data, np.int32(label).tobytes()) for (_, data), label in zip(inner.files, inner.labels)])
    for kind in ("csv:list.csv", "jsonl:list.jsonl", "mds:mds"):
        plan = inner.write("plan.toml", f"""
[data]
source = "{kind}"
map = {{x = "file"}}
[data.train]
x = {json.dumps(lines)}
""")  # fmt: skip
        suite.tally.check(f"images, {kind}: the same weights", inner.state(plan) == expected)
    # Columns of numbers are an image that nobody has to decode.
    pixels = list(transforms.scaled(inner.pixels(steps)))
    columns = [f"p{i}" for i in range(pixels[0].size)]
    write_csv(inner.path("pixels.csv"), [*columns, "labels"],
              [[*map(float, image.ravel()), label] for image, label in zip(pixels, inner.labels)])  # fmt: skip
    found = inner.state("csv:" + inner.path("pixels.csv"))
    suite.tally.check("images, numbers: the same weights", found == expected)
    write_csv(inner.path("leaves.csv"), ["x", "labels"], [["../list.csv", 0], ["/etc/passwd", 1]] * 8)
    inner.refuse("a path that leaves", "csv:" + inner.path("leaves.csv"), 3, "no path of a file in its folder")
    write_csv(inner.path("missing.csv"), ["x", "labels"], [["none.jpg", 0]] * 16)
    inner.refuse("no such file", "csv:" + inner.path("missing.csv"), 3, "there is no file")


def test_disk(suite):
    """Every kind of source gives the same weights from blocks that an earlier run has kept."""
    cache = suite.path("blocks")
    for kind, spec in suite.specs.items():
        uses = []
        for turn in ("first", "second"):
            done = suite.train(spec, f"{kind} {turn}", sources.STEPS, "--json", "--set",
                               f"data.cache=disk:{cache}:64MiB")  # fmt: skip
            uses.append(json.loads(done.out)["block_cache"])
            same = suite.read_state(f"{kind} {turn}") == suite.read_state(f"{kind} whole")
            suite.tally.check(f"cache, {kind}, {turn}: the same weights", same)
        # An archive is read into memory otherwise.
        hits = uses[1]["hits"] == uses[1]["lookups"] > 0
        suite.tally.check(f"cache, {kind}: nothing is read again", hits or kind == "npz", str(uses))
    with open(suite.path("no folder"), "w"):
        pass
    suite.refuse("cache", suite.specs["tsv"], 5, "no folder", "--set",
                 "data.cache=disk:" + suite.path("no folder") + ":1MiB")  # fmt: skip
    suite.refuse("cache, no size", suite.specs["tsv"], 2, "'disk:FOLDER:SIZE'", "--set",
                 "data.cache=disk:" + suite.path("blocks"))  # fmt: skip


def test_balance(suite):
    """Of 90 samples of one class, and 5 of two others, each class is taken as often."""
    labels = [0] * 90 + [3, 7] * 5
    write_csv(suite.path("classes.csv"), ["x", "labels"], list(enumerate(labels)))
    tensors = [describe("x", "int64", (10,)), describe("labels", "int64", (10,), True)]

    def read(epochs, *settings):
        loader = Loader("csv:" + suite.path("classes.csv"), tensors, "balance=labels", *settings)
        for number in range(10 * epochs):
            loader.read(number)
            yield from zip(*(array.tolist() for array in loader.arrays()))
        loader.close()

    samples = list(read(3))
    counts = [[sum(1 for _, label in samples[at : at + 100] if label == wanted) for wanted in (0, 3, 7)]
              for at in (0, 100, 200)]  # fmt: skip
    suite.tally.check("balance: a third of an epoch each", all(33 <= n <= 34 for row in counts for n in row), str(counts))
    suite.tally.check("balance: the labels of the samples", all(labels[x] == label for x, label in samples))
    for wanted, most in ((0, 90), (3, 5), (7, 5)):
        taken = [x for x, label in samples if label == wanted]
        times = [taken.count(x) for x in set(taken)]
        even = len(times) == most and max(times) - min(times) <= 1
        suite.tally.check(f"balance, {wanted}: each as often", even, str(times))
    suite.tally.check("balance: any workers", samples == list(read(3, "workers=2")))
    for name, settings, said in (
        ("no input", ["balance=y"], "expected an input of one integer"),
        ("weights", ["weights=[1]"], "does not go with data.weights"),
    ):
        try:
            list(read(1, *settings))
            found = "nothing was refused"
        except RuntimeError as error:
            found = str(error)
        suite.tally.check(f"balance, {name}: refused", said in found, found)


def test_command(suite):
    """tcc-run data: what there is, what is damaged, and indices of shards."""
    folder = suite.path("looked at")
    os.mkdir(folder)
    inner = transforms.Suite(suite.tally, folder)

    def look(action, data, code=0):
        done = harness.run_tool("tcc-run", "data", action, data, *(["--json"] if action != "index" else []))
        suite.tally.check(f"data {action} {data[:12]}: exit {code}", done.code == code, done.err)
        return json.loads(done.out)["sources"] if action != "index" else done.out.splitlines()

    (row,) = look("info", "webdataset:" + inner.path("train.tar"))
    fields = {field["name"]: field for field in row["fields"]}
    sizes = [len(data) for kind, data in inner.files if kind == "jpg"]
    widths = [Image.open(io.BytesIO(data)).width for kind, data in inner.files if kind == "jpg"]
    jpg = fields["jpg"]
    ok = row["samples"] == row["looked_at"] == transforms.COUNT and fields["num"]["kind"] == "text"
    ok &= jpg["kind"] == "image" and jpg["count"] == len(sizes) and jpg["bytes"] == sum(sizes)
    ok &= (jpg["least_bytes"], jpg["most_bytes"]) == (min(sizes), max(sizes))
    ok &= (jpg["least_pixels"][0], jpg["most_pixels"][0]) == (min(widths), max(widths))
    ok &= jpg["histogram"] == [sum(1 for s in sizes if s.bit_length() == i)
                               for i in range(max(sizes).bit_length() + 1)]  # fmt: skip
    suite.tally.check("data info: what there is", ok, str(row))
    (row,) = look("check", "webdataset:" + inner.damage(), 3)
    suite.tally.check("data check: names what is damaged", row["damaged"] == 2 and len(row["problems"]) == 2
                      and "sample 17: its" in row["problems"][1], str(row["problems"]))  # fmt: skip
    for spec, samples in (("mds", 100), ("jsonl", 100), ("tsv", 100), ("csv", 100)):
        rows = look("check", suite.specs[spec])
        counts = {field["count"] for row in rows for field in row["fields"] if field["kind"] != "nothing"}
        suite.tally.check(f"data check {spec}", sum(row["samples"] for row in rows) == samples
                          and counts == {100}, str(rows))  # fmt: skip
    (row,) = look("info", suite.specs["npz"])
    suite.tally.check("data info, arrays", [field["kind"] for field in row["fields"]] == ["f32 100x7", "i64 100"]
                      or [field["kind"] for field in row["fields"]] == ["i64 100", "f32 100x7"], str(row))
    (path,) = look("index", "webdataset:" + inner.path("train.tar"))
    lines, _ = transforms.CHAINS["imagenet"]
    plan = inner.plan("plan", lines)
    expected = inner.state(plan)
    os.remove(path)
    suite.tally.check("data index: the same weights", inner.state(plan) == expected)
    look("index", "webdataset:" + inner.path("train.tar"))
    for name, change in (("cut", lambda data: data[:-9]), ("other", lambda data: b"\xff" * 99),
                         ("a key", lambda data: data.replace(b'"ends"', b'"endz"')),
                         ("an end", lambda data: data.replace(b'"ends":[', b'"ends":[99999999,')),
                         ("deep", lambda data: b"[" * 100000)):  # fmt: skip
        with open(path, "rb") as file:
            data = file.read()
        with open(path, "wb") as file:
            file.write(change(data))
        inner.refuse(f"index, {name}", plan, 3, "is damaged, or of another version")
        with open(path, "wb") as file:
            file.write(data)
    os.utime(inner.path("train.tar"), (1, 1))
    suite.tally.check("index of another shard", inner.state(plan) == expected)
    look("index", suite.specs["jsonl"], 2)
    done = harness.run_tool("tcc-run", "data", "info", "webdataset:none.tar")
    suite.tally.check("data info, no file", done.code == 5 and done.err.count("\n") == 1, done.err)


def test_hostile_rows(suite):
    head, row = "f0,f1,f2,f3,f4,f5,f6,labels\n", "1,2,3,4,5,6,7,0\n"
    for name, text, said in (
        ("empty", "", "has no line"),
        ("no rows", head, "there is no row"),
        ("two names", head.replace("f1", "f0") + row, "two columns 'f0'"),
        ("short", head + row * 7 + "1,2,3\n", "its row has 3 fields, expected 8"),
        ("quotes", head + row * 7 + '1,2,3,4,5,6,7,"0"x\n', "its quotes do not fit"),
        ("text", head + row * 7 + row.replace("3", "three"), "'three' is no number of f32"),
        ("a class", head + row * 7 + row.replace(",0", ",1.5"), "'1.5' is no number of i64"),
    ):
        suite.write("bad.csv", text)
        suite.refuse(f"csv, {name}", "csv:" + suite.path("bad.csv"), 3, said)
    suite.write("bad.csv", head + row)
    suite.refuse("csv, none", "csv:" + suite.path("nowhere.csv"), 5, "nowhere.csv")
    suite.refuse("csv, other columns", f"csv:{suite.path('bad.csv')},{suite.path('whole.tsv')}", 3, "")
    suite.refuse("csv, a class that is not named", suite.plan("bad", "csv:first.csv,last.csv", map={
        "labels": "species"}, classes={"labels": ["setosa"]}), 3, "is none of the classes")  # fmt: skip
    suite.refuse("arrays are not padded", suite.specs["npz"], 2, "has padding, and npz:FILE has none", "--set",
                 "data.pad={x=0}")  # fmt: skip
    suite.refuse("arrays have no classes", suite.specs["npz"], 2, "records have them", "--set",
                 "data.classes={labels=['a']}")  # fmt: skip
    whole = json.dumps({"x": [1.0] * 7, "labels": 0}) + "\n"
    for name, text, said in (
        ("empty", "\n \n", "there is no line"),
        ("no object", "[1]\n", "it is no object of JSON"),
        ("cut", whole * 7 + whole[:20] + "\n", "it is no object of JSON"),
        ("deep", whole * 7 + '{"x": ' + "[" * 100000 + "\n", "it is no object of JSON, or too deep"),
        ("short", whole * 7 + whole.replace("[1.0, ", "["), "1 numbers fewer"),
        ("long", whole * 7 + whole.replace("[", "[[2], "), "more numbers than a sample of 'x'"),
        ("null", whole * 7 + whole.replace("0}", "null}"), "it has no 'labels'"),
        ("an object", whole * 7 + whole.replace(": 0}", ": {}}"), "its 'labels' is a object"),
    ):
        suite.write("bad.jsonl", text)
        suite.refuse(f"jsonl, {name}", "jsonl:" + suite.path("bad.jsonl"), 3, said)
    done = suite.train("jsonl:" + suite.path("bad.jsonl"), "none", 1, "--set", "data.on_bad=skip")
    suite.tally.check("jsonl: skipped", ", 1 damaged samples skipped" in done.out, done.out + done.err)


def change_json(path, to):
    with open(path, encoding="utf-8") as file:
        index = json.load(file)
    to(index["shards"][0])
    with open(path, "w", encoding="utf-8") as file:
        json.dump(index, file)


def test_hostile_shards(suite):
    columns = [("labels", "int", 8), ("x", "ndarray:float32:7", 28)]
    samples = [(np.int64(0).tobytes(), np.zeros(7, "f4").tobytes())] * 16

    def write(name, *change):
        MdsFolder(suite.path(name), columns, 16).write(samples)
        index = suite.path(f"{name}/index.json")
        for to in change:
            change_json(index, to)
        return "mds:" + suite.path(name)

    def patch(spec, at, data):
        with open(os.path.join(spec[4:], "shard.00000.mds"), "r+b") as file:
            file.seek(at)
            file.write(data)
        return spec

    def cut(path, size):
        os.truncate(path, size)

    outside = {"basename": "../mds/shard.00000.mds"}
    for number, (spec, code, said) in enumerate((
        (write("m0", lambda shard: shard.update(format="xsv")), 3, "expected shards of format mds"),
        (write("m1", lambda shard: shard.update(raw_data=outside)), 3, "no file in the folder"),
        (write("m2", lambda shard: shard.update(column_sizes=[8])), 3, "a shard has no columns"),
        (write("m3", lambda shard: shard.update(samples=17)), 3, "its index says 17"),
        (write("m4", lambda shard: shard.update(compression="gz")), 4, "are not supported yet"),
        (write("m5", lambda shard: shard.update(column_sizes=[8, 1 << 40])), 3, "longer than it is"),
        (write("m6", lambda shard: shard.update(column_encodings=["int", "pkl"])), 4, "which is not supported"),
        (patch(write("m7"), 4, b"\xff" * 8), 3, "and its shard has"),
        (patch(write("m8"), 0, b"\xff" * 4), 3, "samples, its index says 16"),
    )):  # fmt: skip
        suite.refuse(f"mds, {number}", spec, code, said)
    spec = write("m9")
    cut(suite.path("m9/shard.00000.mds"), 300)
    suite.refuse("mds, cut", spec, 3, "and its shard has 300")
    cut(suite.path("m9/shard.00000.mds"), 0)
    suite.refuse("mds, empty", spec, 3, "ends at byte 0")
    suite.write("m9/index.json", "[" * 100000)
    suite.refuse("mds, deep", spec, 3, "no index of shards")
    suite.refuse("mds, none", "mds:" + suite.path("nowhere"), 5, "nowhere/index.json")
    path = suite.path("whole.tar.zst")
    with open(path, "rb") as file:
        data = file.read()
    for name, text, said in (
        ("empty", b"", "there is no sample"),
        ("cut", data[: len(data) // 2], "it ends within a frame"),
        ("other bytes", b"\x00" * 100, "it is no file of zstd"),
        ("no tar", compress(b"x" * 5000), "there is no header of a tar file"),
    ):
        with open(path, "wb") as file:
            file.write(text)
        suite.refuse(f"zstd, {name}", "webdataset:" + path, 3, said)


def main():
    tally = harness.Tally()
    with tempfile.TemporaryDirectory() as folder:
        suite = Suite(tally, folder)
        sources.test_kinds(suite)
        test_recipe(suite)
        test_images(suite)
        test_disk(suite)
        test_balance(suite)
        test_command(suite)
        test_hostile_rows(suite)
        test_hostile_shards(suite)
    tally.close()


if __name__ == "__main__":
    main()
