"""Training on data of each kind: sources.py

The same samples from an npz archive, a folder of npy files (in narrower types, too) and a
safetensors file give the same weights, also over an interruption and by tcc-run eval; so do
files of tokens and of text, and an archive of their windows.
Files that lack something, lie about their sizes, or shrink while they are read end a run
with one line and the documented code.
"""

import collections
import json
import os
import shutil
import tempfile

import numpy as np
from safetensors.numpy import load_file, save_file

import harness
from training import cases, run, torch_files

COUNT, STEPS = 100, 12


class Suite:
    def __init__(self, tally, folder):
        self.tally, self.folder = tally, folder
        run.save_mlp(self.path("model.onnx"))
        with open(self.path("recipe.toml"), "w", encoding="utf-8") as file:
            file.write(run.RECIPE.format(micro=8))
        harness.call("tcc", self.path("model.onnx"), "-q", "--train=" + self.path("recipe.toml"),
                     "-o", self.path("train.tcc"))  # fmt: skip
        samples = np.random.default_rng(6)
        # Values that f16 has, so that it may hold them.
        x = samples.integers(-99, 99, (COUNT, 7)).astype("f4") / 32
        arrays = {"x": x, "labels": samples.integers(0, run.CLASSES, COUNT)}
        narrow = {"x": x.astype("f2"), "labels": arrays["labels"].astype("u1")}
        np.savez(self.path("data.npz"), **arrays)
        np.savez_compressed(self.path("narrow.npz"), **narrow)
        for name, of in (("npy", arrays), ("narrow", narrow)):
            os.mkdir(self.path(name))
            for key, array in of.items():
                np.save(self.path(f"{name}/{key}.npy"), array)
        save_file(arrays, self.path("data.safetensors"))
        self.specs = {
            "npz": "npz:" + self.path("data.npz"),
            "narrow npz": "npz:" + self.path("narrow.npz"),
            "npy": "npy:" + self.path("npy"),
            "narrow npy": "npy:" + self.path("narrow"),
            "safetensors": "safetensors:" + self.path("data.safetensors"),
        }

    def path(self, name):
        return os.path.join(self.folder, name)

    def train(self, spec, folder, steps, *flags):
        return harness.run_tool("tcc-run", "train", self.path("train.tcc"), "--data", spec, "--steps",
                                steps, "--checkpoint-dir", self.path(folder), *flags)  # fmt: skip

    def read_state(self, folder):
        return run.read_tensors(self.path(f"{folder}/step-{STEPS}/state.safetensors"))


def test_kinds(suite):
    whole, results = {}, {}
    for name, spec in suite.specs.items():
        suite.train(spec, f"{name} whole", STEPS)
        done = suite.train(spec, f"{name} half", STEPS // 2, "--json")
        wait = json.loads(done.out)["data_wait_s"]
        suite.tally.check(f"{name}: says how long it waits", 0 < wait < 1, wait)
        suite.train(spec, f"{name} half", STEPS, "--resume")
        whole[name] = suite.read_state(f"{name} whole")
        resumed = suite.read_state(f"{name} half")
        suite.tally.check(f"{name}: the same weights", whole[name] == whole["npz"])
        suite.tally.check(f"{name}: over an interruption", resumed == whole[name])
        results[name] = harness.call("tcc-run", "eval", suite.path("train.tcc"), "--data", spec)
        suite.tally.check(f"{name}: evaluates", results[name] == results["npz"], results[name])


def change(path, to):
    """The file with other bytes than it has."""
    with open(path, "rb") as file:
        data = file.read()
    with open(path, "wb") as file:
        file.write(to(data))


HOSTILE = {
    "empty": (lambda data: b"", 3),
    "half": (lambda data: data[: len(data) // 2], 3),
    "no header": (lambda data: b"\xff" * len(data), 3),
    "more than it says": (lambda data: data + b"\0" * 64, 3),
}


def test_tokens(suite, shifts):
    """Windows of files of tokens are an archive of the same windows."""
    case = cases.single("gpt2_tiny")
    with open(suite.path("text.toml"), "w", encoding="utf-8") as file:
        recipe = cases.recipe("gpt2_tiny", case.optimizer, "f32")
        kind = 'kind = "causal_lm"\n'
        assert recipe.count(kind) == 1
        file.write(recipe.replace(kind, kind + f"shift = {json.dumps(shifts)}\n"))
    package = suite.path("text.tcc")
    harness.call("tcc", os.path.join(cases.FIXTURES, "gpt2_tiny.onnx"), "-q", "-o", package,
                 "--train=" + suite.path("text.toml"))  # fmt: skip
    with np.load(os.path.join(cases.FIXTURES, "text.npz")) as data:
        length, tokens = data["x"].shape[1], data["x"].ravel()
    first, last = tokens[:500].astype("u2"), tokens[500:].astype("u2")
    ahead = 0 if shifts else 1
    rows = [(part[at : at + length], part[at + ahead : at + ahead + length])
            for part in (first, last)
            for at in range(0, len(part) - ahead - length + 1, length)]  # fmt: skip
    np.savez(suite.path("text.npz"), x=[x for x, _ in rows], labels=[y for _, y in rows])
    header = np.zeros(256, "i4")
    header[:3] = 20240520, 1, len(first)
    with open(suite.path("first.bin"), "wb") as file:
        file.write(header.tobytes() + first.tobytes())
    last.tofile(suite.path("last.bin"))
    first.astype("u1").tofile(suite.path("first.txt"))
    last.astype("u1").tofile(suite.path("last.txt"))
    lists = {"tokens": ("first.bin", "last.bin"), "text": ("first.txt", "last.txt")}
    specs = {"npz": "npz:" + suite.path("text.npz")}
    specs |= {kind: f"{kind}:" + ",".join(map(suite.path, of)) for kind, of in lists.items()}
    states, said = {}, {}
    for kind, spec in specs.items():
        for folder, steps, *flags in ((f"{kind} {shifts}", 8), (f"{kind} {shifts} part", 4),
                                      (f"{kind} {shifts} part", 8, "--resume")):  # fmt: skip
            harness.call("tcc-run", "train", package, "-q", "--data", spec, "--steps", steps,
                         "--checkpoint-dir", suite.path(folder), *flags)  # fmt: skip
            path = suite.path(f"{folder}/step-{steps}/state.safetensors")
            states[folder] = run.read_tensors(path)
        said[kind] = harness.call("tcc-run", "eval", package, "--data", spec)
        found = states[f"{kind} {shifts}"], states[f"{kind} {shifts} part"]
        same = found[0] == found[1] == states[f"npz {shifts}"]
        suite.tally.check(f"{kind}, shift {shifts}: the same weights, also resumed", same)
        suite.tally.check(f"{kind}, shift {shifts}: evaluates", said[kind] == said["npz"])


def test_strides(suite):
    """Windows that overlap, or leave tokens out, of files that the last test left."""
    package = suite.path("text.tcc")
    with np.load(suite.path("text.npz")) as data:
        length = data["x"].shape[1]
    for stride in (length // 2 + 1, length + 5):
        rows = []
        for name in ("first.txt", "last.txt"):
            tokens = np.fromfile(suite.path(name), "u1").astype("i8")
            rows += [tokens[at : at + length + 1]
                     for at in range(0, len(tokens) - length, stride)]  # fmt: skip
        np.savez(suite.path("strides.npz"), x=[row[:-1] for row in rows], labels=[row[1:] for row in rows])
        text = "text:" + suite.path("first.txt") + "," + suite.path("last.txt")
        window = f'data.train.x=["window {length} stride {stride}"]'
        for folder, *data in (("by hand", "npz:" + suite.path("strides.npz")), ("window", text, "--set", window)):
            harness.call("tcc-run", "train", package, "-q", "--data", *data, "--steps", 8,
                         "--checkpoint-dir", suite.path(f"{folder} {stride}"))  # fmt: skip
        found = [run.read_tensors(suite.path(f"{folder} {stride}/step-8/state.safetensors"))
                 for folder in ("by hand", "window")]  # fmt: skip
        suite.tally.check(f"stride {stride}: the same weights", found[0] == found[1])
    for lines in ("window 3", f"window {length} stride 0", f"window {length} step 3", "flip"):
        done = harness.run_tool("tcc-run", "train", package, "--data", text, "--steps", 1, "--set",
                                f'data.train.x=["{lines}"]')  # fmt: skip
        ok = done.code == 2 and "its one transform is window" in done.err
        suite.tally.check(f"stride, {lines}", ok, done.err)


def test_hostile_tokens(suite):
    done = suite.train("tokens:" + suite.path("first.bin"), "none", 1)
    said = "files of tokens have nothing for 'x': it is "
    ok = done.code == 2 and said in done.err and done.err.count("\n") == 1
    suite.tally.check("tokens for a model of no text", ok, done.err)
    for name, (to, code) in HOSTILE.items():
        copy = suite.path("copy.bin")
        shutil.copy(suite.path("first.bin"), copy)
        change(copy, to)
        if name == "no header":  # what has none is tokens, none of which the model knows
            code = 2
        done = harness.run_tool("tcc-run", "train", suite.path("text.tcc"), "-q", "--data",
                                "tokens:" + copy, "--steps", 1)  # fmt: skip
        ok = done.code == code and done.err.count("\n") == 1
        suite.tally.check(f"tokens, {name}", ok, f"{done.code}: {done.err}")


def test_times(suite):
    """bench and tune measure updates on data of all kinds."""
    for name in ("npz", "npy"):
        done = harness.run_tool("tcc-run", "bench", suite.path("train.tcc"), "--data", suite.specs[name], "--iterations",
                                20, "--warmup", 0, "--json")  # fmt: skip
        found = json.loads(done.out) if done.code == 0 else {}
        is_right = found.get("n") == 20 and found["med_ms"] > 0 and 0 <= found["data_wait_share"] <= 1
        rate = 8 / (found["samples_per_s"] * 1e-3) if is_right else 0
        suite.tally.check(f"bench on {name}", is_right and found["min_ms"] <= rate, (found, done.err))
    other = suite.path("other.tcc")
    shutil.copy(suite.path("train.tcc"), other)
    done = harness.run_tool("tcc-run", "tune", suite.path("train.tcc"), other, "--data", suite.specs["npz"], "--json",
                            "--tune-cache", suite.path("m.tune"))  # fmt: skip
    found = json.loads(done.out)["packages"] if done.code == 0 else []
    suite.tally.check("tune on data", [row["samples"] for row in found] == [8, 8], done.err)
    done = harness.run_tool("tcc-run", "bench", suite.path("train.tcc"), "--data", "npz:" + suite.path("none.npz"))
    suite.tally.check("bench on no data", done.code == 5 and "none.npz" in done.err, done.err)


def test_index(suite):
    """Parameters of several files, as Hugging Face's libraries write them."""
    whole, spec = suite.path("whole.safetensors"), suite.specs["npz"]
    suite.train(spec, "from", 3, "--export", whole)
    tensors = load_file(whole)
    names = sorted(tensors)
    files = {name: f"model-{i % 2 + 1:05}-of-00002.safetensors" for i, name in enumerate(names)}
    for file in set(files.values()):
        save_file({name: tensors[name] for name in names if files[name] == file}, suite.path(file))
    index = suite.path("model.safetensors.index.json")

    def write(value):
        with open(index, "w", encoding="utf-8") as stream:
            json.dump(value, stream)

    write({"metadata": {"total_size": 1}, "weight_map": files})
    states = []
    for folder, init in (("of one", whole), ("of two", index)):
        suite.train(spec, folder, STEPS, "--init", init)
        states.append(suite.read_state(folder))
    suite.tally.check("index: the same weights", states[0] == states[1])
    for name, value, code, said in (
        ("no map", {"weights": files}, 3, "it has no 'weight_map'"),
        ("a list", [1], 3, "it has no 'weight_map'"),
        ("no name", {"weight_map": {names[0]: 3}}, 3, "no name of one in its folder"),
        ("outside", {"weight_map": {names[0]: "../x.safetensors"}}, 3, "no name of one in its folder"),
        ("no tensor", {"weight_map": {"other": files[names[0]]}}, 3, "has no tensor 'other'"),
        ("no file", {"weight_map": {names[0]: "none.safetensors"}}, 5, "none.safetensors"),
    ):
        write(value)
        done = suite.train(spec, "none", 1, "--init", index)
        ok = done.code == code and said in done.err and done.err.count("\n") == 1
        suite.tally.check(f"index, {name}", ok, f"{done.code}: {done.err}")


def test_torch(suite):
    """Parameters that torch.save wrote, of all its ways to name and to lay them out."""
    whole, spec = suite.path("whole.safetensors"), suite.specs["npz"]
    tensors = load_file(whole)
    suite.train(spec, "of safetensors", STEPS, "--init", whole)
    expected = suite.read_state("of safetensors")
    Stored, path = torch_files.Stored, suite.path("model.pth")
    plain = {name: Stored.of(array) for name, array in tensors.items()}
    flat = np.concatenate([array.ravel() for array in tensors.values()])
    starts = np.cumsum([0, *(array.size for array in tensors.values())])
    turned = {}
    for name, array in tensors.items():
        columns = np.asfortranarray(array)
        turned[name] = Stored(columns.ravel("K"), array.shape, [s // 4 for s in columns.strides])
    ways = {
        "a state_dict": collections.OrderedDict(plain),
        "parameters": {name: torch_files.Parameter(tensor) for name, tensor in plain.items()},
        "a checkpoint": {"epoch": 3, "state_dict": plain, "optimizer": {"lr": [0.1, None, True]}},
        "a wrapped model": {"model": {"module._orig_mod." + name: each for name, each in plain.items()}},
        "other strides": turned,
        "one storage": {
            name: Stored(flat, array.shape, [s // 4 for s in array.strides], int(start))
            for (name, array), start in zip(tensors.items(), starts)
        },
        "f64": {name: Stored.of(array.astype("f8")) for name, array in tensors.items()},
    }
    for name, value in ways.items():
        torch_files.save(path, value)
        done = suite.train(spec, name, STEPS, "--init", path)
        same = done.code == 0 and suite.read_state(name) == expected
        suite.tally.check(f"torch.save, {name}: the same weights", same, done.err)
    names = sorted(plain)
    halves = {f"pytorch_model-{i + 1:05}-of-00002.bin": names[i::2] for i in range(2)}
    for file, own in halves.items():
        torch_files.save(suite.path(file), {name: plain[name] for name in own})
    with open(suite.path("pytorch_model.bin.index.json"), "w", encoding="utf-8") as stream:
        json.dump({"weight_map": {name: file for file, own in halves.items() for name in own}}, stream)
    done = suite.train(spec, "bins", STEPS, "--init", suite.path("pytorch_model.bin.index.json"))
    suite.tally.check("torch.save, an index", done.code == 0 and suite.read_state("bins") == expected, done.err)
    first = names[0]
    array = tensors[first]
    outside = Stored(array.ravel(), array.shape, [s // 4 for s in array.strides], 1)
    wide = Stored(array.ravel(), [1 << 40, 1 << 20], [0, 0])
    run_me = {**plain, "x": print}
    for name, value, options, code, said in (
        ("no tensors", {"lr": 1}, {}, 3, "has no tensors by name, nor a 'state_dict' of them"),
        ("outside its entry", {**plain, first: outside}, {}, 3, f"'{first}' does not lie within its entry"),
        ("larger than the file", {**plain, first: wide}, {}, 3, f"'{first}' its strides make it larger"),
        ("big-endian", plain, {"order": b"big"}, 4, "is not in little-endian order"),
        ("an opcode", plain, {"change": lambda data: b"\x80\x02i" + data[2:]}, 3, "opcode 105"),
        ("cut", plain, {"change": lambda data: data[:-9]}, 3, "'data.pkl' ends early"),
        ("empty", plain, {"change": lambda data: b""}, 3, "'data.pkl' ends early"),
        ("another tensor", {"x": plain[first]}, {}, 2, "unexpected: x"),
    ):
        torch_files.save(path, value, **options)
        done = suite.train(spec, "none", 1, "--init", path)
        ok = done.code == code and said in done.err
        suite.tally.check(f"torch.save, {name}", ok, f"{done.code}: {done.err}")
    with open(path, "wb") as stream:
        stream.write(b"\x80\x02\x8a\x0al\xfc\x9cF\xf9 j\xa8P\x19.")
    done = suite.train(spec, "none", 1, "--init", path)
    suite.tally.check("torch.save, an old one", done.code == 4 and "before 1.6" in done.err, done.err)
    torch_files.save(path, run_me)
    done = suite.train(spec, "calls", STEPS, "--init", path)
    suite.tally.check("torch.save, a name of code is passed over", done.code == 0, done.err)
    with open(path, "rb") as stream:
        data = bytearray(stream.read())
    random = np.random.default_rng(2)
    for cut in random.integers(4, len(data), 4):
        for kind, bytes_ in ("cut", data[:cut]), ("changed", data[:cut] + b"\xff" + data[cut + 1 :]):
            with open(path, "wb") as stream:
                stream.write(bytes_)
            done = suite.train(spec, "none", 1, "--init", path)
            suite.tally.check(f"torch.save, {kind} at {cut}", done.code in (0, 2, 3, 4), f"{done.code}: {done.err}")


def test_hostile(suite):
    for kind, place, file in (("npz", "data.npz", ""), ("npy", "npy", "x.npy"),
                              ("safetensors", "data.safetensors", "")):  # fmt: skip
        for name, (to, code) in HOSTILE.items():
            if kind != "npy" and name == "more than it says":
                continue  # which both may have: an archive as a comment
            copy = suite.path("copy-" + place)
            if file:
                shutil.copytree(suite.path(place), copy, dirs_exist_ok=True)
            else:
                shutil.copy(suite.path(place), copy)
            change(os.path.join(copy, file) if file else copy, to)
            done = suite.train(f"{kind}:{copy}", "none", 1)
            ok = done.code == code and done.err.count("\n") == 1 and (file or place) in done.err
            suite.tally.check(f"{kind}, {name}", ok, f"{done.code}: {done.err}")
        done = suite.train(f"{kind}:{suite.path('nowhere')}", "none", 1)
        ok = done.code in (3, 5) and done.err.count("\n") == 1 and "nowhere" in done.err
        suite.tally.check(f"{kind}, none", ok, f"{done.code}: {done.err}")


def main():
    tally = harness.Tally()
    with tempfile.TemporaryDirectory() as folder:
        suite = Suite(tally, folder)
        test_kinds(suite)
        for shifts in (True, False):
            test_tokens(suite, shifts)
        test_strides(suite)
        test_hostile_tokens(suite)
        test_times(suite)
        test_index(suite)
        test_torch(suite)
        test_hostile(suite)
    tally.close()


if __name__ == "__main__":
    main()
