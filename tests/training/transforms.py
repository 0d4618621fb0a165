"""Transforms of images: transforms.py

What [data] of a TOML file declares gives the same weights as an archive of the pixels that Pillow
makes with the same numbers drawn; where torchvision is installed, its functions give these pixels,
too. Files that are wrong end a run with one line and the documented code.
"""

import io
import json
import math
import os
import tempfile

import numpy as np
import onnx
from PIL import Image, ImageEnhance, ImageOps

import harness
from images import write_tar
from onnx import TensorProto, helper
from spine.loaders import Loader, describe
from training import run

try:
    from torchvision.transforms import functional
except ImportError:
    functional = None

COUNT, STEPS, HEIGHT, WIDTH, SEED = 40, 5, 24, 20, 7
WORD = 2**64 - 1


class Draws:
    """SplitMix64, keyed by seed, epoch and sample."""

    def __init__(self, seed, epoch, number):
        self.state = self.mix(self.mix(self.mix(seed) + epoch & WORD) + number & WORD)

    @staticmethod
    def mix(word):
        word = (word ^ (word >> 30)) * 0xBF58476D1CE4E5B9 & WORD
        word = (word ^ (word >> 27)) * 0x94D049BB133111EB & WORD
        return word ^ (word >> 31)

    def uniform(self, low=0.0, high=1.0):
        self.state = self.state + 0x9E3779B97F4A7C15 & WORD
        return low + (high - low) * ((self.mix(self.state) >> 11) * 2.0**-53)

    def below(self, count):
        return int(self.uniform() * count)


def agree(image, other):
    """With torchvision."""
    if functional:
        assert image.tobytes() == other().tobytes()
    return image


def resize(image, height, width):
    done = image.resize((width, height), Image.Resampling.BILINEAR)
    return agree(done, lambda: functional.resize(image, [height, width]))


def resize_shorter(image, _draws, side=30):
    short, long = sorted(image.size)
    size = (side, int(side * long / short))
    width, height = size if image.width <= image.height else size[::-1]
    done = image.resize((width, height), Image.Resampling.BILINEAR)
    return agree(done, lambda: functional.resize(image, side))


def center_crop(image, _draws, height=HEIGHT, width=WIDTH):
    missing_x, missing_y = max(width - image.width, 0), max(height - image.height, 0)
    border = (missing_x // 2, missing_y // 2, (missing_x + 1) // 2, (missing_y + 1) // 2)
    padded = ImageOps.expand(image, border)
    left, top = round((padded.width - width) / 2), round((padded.height - height) / 2)
    done = padded.crop((left, top, left + width, top + height))
    return agree(done, lambda: functional.center_crop(image, [height, width]))


def random_crop(image, draws):
    top = draws.below(image.height - HEIGHT + 1)
    left = draws.below(image.width - WIDTH + 1)
    return image.crop((left, top, left + WIDTH, top + HEIGHT))


def random_resized_crop(image, draws, scale=(0.08, 1), ratio=(3 / 4, 4 / 3)):
    for _ in range(10):
        part = image.width * image.height * draws.uniform(*scale)
        aspect = math.exp(draws.uniform(math.log(ratio[0]), math.log(ratio[1])))
        width, height = round(math.sqrt(part * aspect)), round(math.sqrt(part / aspect))
        if 0 < width <= image.width and 0 < height <= image.height:
            top = draws.below(image.height - height + 1)
            left = draws.below(image.width - width + 1)
            break
    else:
        width, height = image.size
        if width / height < ratio[0]:
            height = round(width / ratio[0])
        elif width / height > ratio[1]:
            width = round(height * ratio[1])
        left, top = (image.width - width) // 2, (image.height - height) // 2
    return resize(image.crop((left, top, left + width, top + height)), HEIGHT, WIDTH)


def flip(image, draws):
    return ImageOps.mirror(image) if draws.uniform() < 0.5 else image


def vertical_flip(image, draws):
    return ImageOps.flip(image) if draws.uniform() < 0.5 else image


def rotate(image, draws):
    angle = draws.uniform(-30, 30)
    return agree(image.rotate(angle), lambda: functional.rotate(image, angle))


def pad(image, _draws):
    done = ImageOps.expand(image, (1, 2, 3, 4))
    return agree(done, lambda: functional.pad(image, [1, 2, 3, 4]))


def shift_hue(image, share):
    hue, saturation, value = image.convert("HSV").split()
    turned = np.asarray(hue) + np.array(int(share * 255) % 256, np.uint8)
    done = Image.merge("HSV", (Image.fromarray(turned), saturation, value)).convert("RGB")
    return agree(done, lambda: functional.adjust_hue(image, share))


def color_jitter(image, draws, strengths=(0.4, 0.5, 0.6, 0.2)):
    factors = [draws.uniform(max(0, 1 - strength), 1 + strength) for strength in strengths[:3]]
    factors.append(draws.uniform(-strengths[3], strengths[3]))
    order = list(range(4))
    for left in range(4, 1, -1):
        chosen = draws.below(left)
        order[left - 1], order[chosen] = order[chosen], order[left - 1]
    kinds = (ImageEnhance.Brightness, ImageEnhance.Contrast, ImageEnhance.Color)
    for change in order:
        if change == 3:
            image = shift_hue(image, factors[3])
        else:
            image = kinds[change](image).enhance(factors[change])
    return image


CHAINS = {
    "resize": (["decode", f"resize {HEIGHT} {WIDTH}"], [lambda i, d: resize(i, HEIGHT, WIDTH)]),
    "shorter": (["resize 30", f"center_crop {HEIGHT} {WIDTH}"], [resize_shorter, center_crop]),
    "small": (["resize 18", f"center_crop {HEIGHT} {WIDTH}"],
              [lambda i, d: resize_shorter(i, d, 18), center_crop]),
    "crop": ([f"random_crop {HEIGHT} {WIDTH}", "flip"], [random_crop, flip]),
    "imagenet": ([f"random_resized_crop {HEIGHT} {WIDTH}", "flip"], [random_resized_crop, flip]),
    "narrow": ([f"random_resized_crop {HEIGHT} {WIDTH} scale 2 3 ratio 0.9 1.1"],
               [lambda i, d: random_resized_crop(i, d, (2, 3), (0.9, 1.1))]),
    "flips": (["flip", "resize 30", "flip", "vertical_flip", f"center_crop {HEIGHT} {WIDTH}"],
              [flip, resize_shorter, flip, vertical_flip, center_crop]),
    "rotate": (["rotate 30", f"resize {HEIGHT} {WIDTH}"],
               [rotate, lambda i, d: resize(i, HEIGHT, WIDTH)]),
    "pad": (["pad 1 2 3 4", f"random_crop {HEIGHT} {WIDTH}"], [pad, random_crop]),
    "colors": ([f"resize {HEIGHT} {WIDTH}", "color_jitter 0.4 0.5 0.6 0.2"],
               [lambda i, d: resize(i, HEIGHT, WIDTH), color_jitter]),
}  # fmt: skip


def encode(pixels, index):
    """Files of each kind; JPEGs with whole and halved colours, progressive ones and grey ones."""
    stream = io.BytesIO()
    if index % 9 == 0:
        pixels = pixels[:, :, 0]
    if index % 5 == 0:
        Image.fromarray(pixels).save(stream, "PNG")
        return "png", stream.getvalue()
    if index % 5 == 1 and pixels.ndim == 3:
        Image.fromarray(pixels).save(stream, "WEBP")
        return "webp", stream.getvalue()
    Image.fromarray(pixels).save(stream, "JPEG", quality=90, subsampling=(0, 1, 2)[index % 3],
                                 progressive=index % 4 == 0)  # fmt: skip
    return "jpg", stream.getvalue()


class Suite:
    def __init__(self, tally, folder):
        self.tally, self.folder = tally, folder
        random = np.random.default_rng(3)
        self.files = []
        for i in range(COUNT):
            small = random.integers(0, 256, (6, 6, 3), dtype=np.uint8)
            size = (int(random.integers(32, 90)), int(random.integers(32, 90)))
            pixels = np.array(Image.fromarray(small).resize(size))
            pixels += random.integers(0, 16, pixels.shape, dtype=np.uint8)
            self.files.append(encode(pixels, i))
        self.labels = [i % run.CLASSES for i in range(COUNT)]
        fields = [(f"{i:04}", {kind: data, "num": b"%d" % label})
                  for i, ((kind, data), label) in enumerate(zip(self.files, self.labels))]  # fmt: skip
        write_tar(self.path("train.tar"), fields)
        self.save_model("net", 3)
        self.compile("net")

    def save_model(self, name, channels, dtype=TensorProto.FLOAT):
        size = channels * HEIGHT * WIDTH
        nodes = [helper.make_node("Cast", ["x"], ["numbers"], to=TensorProto.FLOAT),
                 helper.make_node("Flatten", ["numbers"], ["flat"]),
                 helper.make_node("MatMul", ["flat", "weight"], ["logits"])]  # fmt: skip
        path = self.path(f"{name}.onnx")
        run.save_model(path, nodes, {"weight": run.normal(size, run.CLASSES)},
                       [channels, HEIGHT, WIDTH])  # fmt: skip
        model = onnx.load(path)
        model.graph.input[0].type.tensor_type.elem_type = dtype
        onnx.save(model, path)

    def compile(self, name, package=None, recipe="", code=0, loss="cross_entropy"):
        """The model of that name."""
        with open(self.path("recipe.toml"), "w", encoding="utf-8") as file:
            file.write(run.RECIPE.format(micro=8).replace("cross_entropy", loss) + recipe)
        package = self.path(f"{package or name}.tcc")
        done = harness.run_tool("tcc", self.path(f"{name}.onnx"), "-q", "-o", package,
                                "--train=" + self.path("recipe.toml"))  # fmt: skip
        assert done.code == code, done.err
        return done.err

    def path(self, name):
        return os.path.join(self.folder, name)

    def write(self, name, text):
        with open(self.path(name), "w", encoding="utf-8") as file:
            file.write(text)
        return self.path(name)

    def plan(self, name, transforms, more=""):
        return self.write(f"{name}.toml", f"""
[data]
source = "webdataset:train.tar"
map = {{labels = "num"}}
{more}
[data.train]
x = {json.dumps(transforms)}
""")  # fmt: skip

    def pixels(self, steps, epoch=0, mode="RGB"):
        """Of all samples: channels first, bytes."""
        for i, (_, data) in enumerate(self.files):
            image, draws = Image.open(io.BytesIO(data)).convert("RGB"), Draws(SEED, epoch, i)
            for step in steps:
                image = step(image, draws)
            array = np.asarray(image.convert(mode))
            yield array.reshape(HEIGHT, WIDTH, -1).transpose(2, 0, 1)

    def damage(self):
        """A shard with two files cut off."""
        fields = []
        for i, ((kind, data), label) in enumerate(zip(self.files, self.labels)):
            whole = len(data) if i not in (5, 17) else len(data) // 2
            fields.append((f"{i:04}", {kind: data[:whole], "num": b"%d" % label}))
        write_tar(self.path("damaged.tar"), fields)
        return self.path("damaged.tar")

    def save(self, name, arrays):
        np.savez(self.path(name), x=np.stack(list(arrays)), labels=np.array(self.labels))
        return "npz:" + self.path(name)

    def squared(self):
        return scaled(self.pixels([lambda image, _: resize(image, HEIGHT, WIDTH)]))

    def soft_arrays(self):
        shares = np.eye(run.CLASSES, dtype="f4")[self.labels]
        np.savez(self.path("soft.npz"), x=np.stack(list(self.squared())), labels=shares)
        with open(self.path("far.jsonl"), "w", encoding="utf-8") as file:
            for _ in range(8):
                file.write(json.dumps({"x": [0] * (3 * HEIGHT * WIDTH), "num": 9}) + "\n")
        return "npz:" + self.path("soft.npz")

    def train(self, spec, *flags, package="net", steps=STEPS):
        data = ("--data", spec) if spec else ()  # else what the recipe has
        return harness.run_tool("tcc-run", "train", self.path(f"{package}.tcc"), *data,
                                "--steps", steps, "--seed", SEED, *flags)  # fmt: skip

    def state(self, spec, *flags, package="net", steps=STEPS):
        with tempfile.TemporaryDirectory() as folder:
            done = self.train(spec, "--checkpoint-dir", folder, "-q", *flags, package=package,
                              steps=steps)  # fmt: skip
            assert done.code == 0, done.err
            return run.read_tensors(os.path.join(folder, f"step-{steps}/state.safetensors"))

    def refuse(self, name, spec, code, said, *flags):
        done = self.train(spec, "-q", *flags, steps=1)
        is_right = done.code == code and said in done.err and done.err.count("\n") == 1
        self.tally.check(f"{name}: refused", is_right, f"{done.code}: {done.err}")


def scaled(arrays):
    return (array.astype("f4") / np.float32(255) for array in arrays)


def test_chains(suite):
    for name, (lines, steps) in CHAINS.items():
        expected = suite.state(suite.save("data.npz", scaled(suite.pixels(steps))))
        found = suite.state(suite.plan(name, lines))
        suite.tally.check(f"{name}: the same weights", found == expected)


def test_forms(suite):
    """Numbers that are normalized, a grey input, and threads that change nothing."""
    lines, steps = CHAINS["imagenet"]
    mean, deviation = np.float32([0.485, 0.456, 0.406]), np.float32([0.229, 0.224, 0.225])
    arrays = ((array - mean[:, None, None]) / deviation[:, None, None]
              for array in scaled(suite.pixels(steps)))  # fmt: skip
    expected = suite.state(suite.save("data.npz", arrays))
    normalize = "normalize mean 0.485 0.456 0.406 std 0.229 0.224 0.225"
    plan = suite.plan("normalize", [*lines, normalize])
    suite.tally.check("normalize: the same weights", suite.state(plan) == expected)
    suite.save_model("grey", 1)
    suite.compile("grey")
    expected = suite.state(suite.save("data.npz", scaled(suite.pixels(steps, mode="L"))),
                           package="grey")  # fmt: skip
    plan = suite.plan("grey", lines)
    suite.tally.check("grey: the same weights", suite.state(plan, package="grey") == expected)
    suite.save_model("bytes", 3, TensorProto.UINT8)
    suite.compile("bytes")
    expected = suite.state(suite.save("data.npz", suite.pixels(steps)), package="bytes")
    plan = suite.plan("bytes", lines)
    suite.tally.check("bytes: the same weights", suite.state(plan, package="bytes") == expected)
    plan, steps = suite.plan("threads", lines), 3 * STEPS
    expected = suite.state(plan, steps=steps)
    for workers in (0, 2):
        found = suite.state(plan, "--set", f"data.workers={workers}", steps=steps)
        suite.tally.check(f"{workers} workers: the same weights", found == expected)
    once = suite.state(suite.save("data.npz", scaled(suite.pixels(CHAINS["imagenet"][1]))),
                       steps=steps)  # fmt: skip
    suite.tally.check("each epoch draws anew", once != expected)


def test_prologue(suite):
    """Bytes cross to the model, which makes of them what it took before."""
    lines, _ = CHAINS["imagenet"]
    mean, deviation = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]
    normalize = f"normalize mean {' '.join(map(str, mean))} std {' '.join(map(str, deviation))}"
    for name, keys, more in (
        ("plain", "", []),
        ("nhwc", "layout = 'nhwc'", []),
        ("normalized", f"mean = {mean}\nstd = {deviation}", [normalize]),
        ("both", f"mean = {mean}\nstd = {deviation}\nlayout = 'nhwc'", [normalize]),
        ("one number", "mean = 0.5\nstd = 0.25", ["normalize mean 0.5 std 0.25"]),
    ):
        suite.compile("net", "prologue", f"[input.x]\ndtype = 'u8'\n{keys}\n")
        expected = suite.state(suite.plan("floats", [*lines, *more]))
        found = suite.state(suite.plan("bytes", lines), package="prologue")
        suite.tally.check(f"prologue, {name}: the same weights", found == expected)
    refused = suite.train(suite.plan("floats", [*lines, normalize]), package="prologue")
    suite.tally.check("prologue: normalized twice", refused.code == 2 and "has bytes" in refused.err, refused.err)
    for name, text, code, said in (
        ("input", "[input.y]\ndtype = 'u8'", 2, "input 'y', the model's are 'x'"),
        ("numbers", "[input.x]\ndtype = 'u8'\nmean = [1, 2]", 2, "other channels than mean or std"),
        ("dtype", "[input.x]\ndtype = 'i4'", 3, "input.x.dtype is 'i4', expected 'u8'"),
        ("no dtype", "[input.x]\nmean = 0", 3, "input.x needs dtype"),
        ("std", "[input.x]\ndtype = 'u8'\nstd = 0", 3, "expected a number above 0"),
        ("key", "[input.x]\ndtype = 'u8'\nscale = 2", 3, "unknown key 'input.x.scale'"),
        ("table", "[input]\nx = 3", 3, "input.x is 3, expected a table"),
    ):
        err = suite.compile("net", "bad", text + "\n", code)
        suite.tally.check(f"prologue, {name}: refused", said in err, err)


def test_scaled(suite):
    """JPEGs that are decoded at a part of their size are close to those that are not."""
    random = np.random.default_rng(8)
    files = {}
    for i in range(16):
        small = random.integers(0, 256, (9, 12, 3), dtype=np.uint8)
        picture = Image.fromarray(small).resize((500 + 7 * i, 375 - 5 * i), Image.Resampling.BICUBIC)
        stream = io.BytesIO()
        picture.save(stream, "JPEG", quality=90, subsampling=(0, 1, 2)[i % 3], progressive=i % 4 == 0)
        files[f"{i:04}"] = {"jpg": stream.getvalue(), "cls": b"0"}
    write_tar(suite.path("large.tar"), list(files.items()))
    tensors = [describe("x", "uint8", (16, 3, HEIGHT, WIDTH)), describe("y", "int64", (16,), True)]
    spec = "webdataset:" + suite.path("large.tar")

    def read(*lines):
        loader = Loader(spec, tensors, f"train.x={json.dumps(lines)}")
        loader.read(0)
        pixels, _ = loader.arrays()
        loader.close()
        return pixels.astype(int)

    for name, lines in (
        ("resize", [f"resize {HEIGHT} {WIDTH}"]),
        ("crop", [f"random_resized_crop {HEIGHT} {WIDTH}", "flip"]),
        ("crop of a resized one", ["resize 60", f"random_crop {HEIGHT} {WIDTH}"]),
        ("flip first", ["flip", f"resize {HEIGHT} {WIDTH}"]),
        ("no smaller", [f"random_crop {HEIGHT} {WIDTH}"]),
    ):
        whole, scaled = read("decode", *lines), read("decode scaled", *lines)
        off = np.abs(whole - scaled)
        expects = name != "no smaller"
        suite.tally.check(f"scaled, {name}: close", off.mean() < 1.5 and off.max() <= 24, f"{off.mean()} {off.max()}")
        suite.tally.check(f"scaled, {name}: scaled", bool(off.any()) == expects, f"{off.mean()}")


def test_cache(suite):
    """Images that are kept give the same pixels, also where only some find room."""
    chains = {"imagenet": CHAINS["imagenet"], "after a resize": CHAINS["shorter"],
              "flips": CHAINS["flips"]}  # fmt: skip
    for name, (lines, _) in chains.items():
        plan = suite.plan("cache", lines)
        expected = suite.state(plan, steps=3 * STEPS)
        for size, least in (("64MiB", COUNT), ("300KB", 1)):
            flags = "--set", f"data.cache=ram:{size}", "--set", "data.workers=1"
            found = suite.state(plan, *flags, steps=3 * STEPS)
            use = json.loads(suite.train(plan, "--json", *flags, steps=3 * STEPS).out)["image_cache"]
            told = least <= use["hits"] < use["lookups"] and 0 < use["bytes"] <= 64 << 20
            suite.tally.check(f"cache, {name}, {size}: the same weights", found == expected)
            suite.tally.check(f"cache, {name}, {size}: {use}", told)
    suite.refuse("cache", plan, 2, "expected 'ram:SIZE', 'disk:FOLDER:SIZE'", "--set", "data.cache=ram:much")
    suite.state(plan, "--set", "data.memory=1MiB")
    suite.refuse("memory", plan, 2, "data.memory is 9000 bytes, a batch takes 46144, and 2 are needed",
                 "--set", "data.memory=9KB")  # fmt: skip


def test_skipped(suite):
    """Damaged samples end a run, or others stand in for them, counted and named."""
    lines, _ = CHAINS["imagenet"]
    source = "data.source=webdataset:" + suite.damage()
    plan = suite.plan("skip", lines, 'on_bad = "skip"')
    suite.refuse("stop", plan, 3, "damaged.tar' at byte", "--set", source, "--set", "data.on_bad=stop",
                 "--no-shuffle")  # fmt: skip
    states = [suite.state(plan, "--set", source, "--set", f"data.workers={workers}")
              for workers in (0, 2)]  # fmt: skip
    suite.tally.check("skip: any number of workers", states[0] == states[1])
    done = suite.train(plan, "--set", source, "--json")
    suite.tally.check("skip: counted", json.loads(done.out)["skipped_samples"] == 2, done.out)
    told = suite.train(plan, "--set", source).out
    suite.tally.check("skip: told", ", 2 damaged samples skipped" in told, told)
    named = done.err.count("warning: skipped: ")
    suite.tally.check("skip: named", named == 2 and "sample 17: its" in done.err, done.err)


def mix_as_torchvision(kind, images, labels, mixed):
    """What torchvision makes of a batch with the share and the box that were drawn."""
    own, before = labels, np.roll(labels, 1)
    row = int(np.argmax(own != before))
    shares = mixed[1][row, own[row]], mixed[1][row, before[row]]
    one_hot = np.eye(run.CLASSES, dtype="f4")[labels]
    target = np.roll(one_hot, 1, 0) * shares[1] + one_hot * shares[0]
    if kind == "mixup":
        return np.roll(images, 1, 0) * shares[1] + images * shares[0], target
    changed = (mixed[0] != images).any((0, 1))
    box = np.ix_(changed.any(1), changed.any(0))
    expected = images.copy()
    for sample, other in zip(expected, np.roll(images, 1, 0)):
        for plane, source in zip(sample, other):
            plane[box] = source[box]
    assert abs(1 - changed[box].size / changed.size - shares[0]) < 1e-6
    return expected, target


def test_mixing(suite):
    """Batches that are mixed are those of torchvision's MixUp and CutMix, by any number of threads."""
    with open(suite.path("soft.onnx"), "wb") as to, open(suite.path("net.onnx"), "rb") as model:
        to.write(model.read())
    suite.compile("soft", recipe="", code=0, loss="soft_cross_entropy")
    crop = f"center_crop {HEIGHT} {WIDTH}"
    plan = suite.plan("soft", [crop], 'mix = ["mixup 0.4", "cutmix 1"]')
    with open(plan, "a", encoding="utf-8") as file:
        file.write('labels = ["one_hot"]\n')
    states = [suite.state(plan, "--set", f"data.workers={count}", package="soft", steps=3 * STEPS)
              for count in (0, 2)]  # fmt: skip
    suite.tally.check("mixing: any number of workers", states[0] == states[1])
    with tempfile.TemporaryDirectory() as folder:
        for steps in STEPS + 2, 3 * STEPS:
            suite.train(plan, "--checkpoint-dir", folder, "--resume-if-any", package="soft", steps=steps)
        resumed = run.read_tensors(os.path.join(folder, f"step-{3 * STEPS}/state.safetensors"))
    suite.tally.check("mixing: goes on to the bit", resumed == states[0])
    suite.tally.check("mixing: learns other weights",
                      suite.state(plan, "--set", "data.mix=none", package="soft", steps=3 * STEPS) != states[0])  # fmt: skip
    tensors = [describe("x", "float32", (8, 3, HEIGHT, WIDTH)), describe("labels", "float32", (8, run.CLASSES), True)]
    for kind in "mixup", "cutmix":
        loaders = [Loader(plan, tensors, f"mix={mix}", "workers=1", seed=SEED) for mix in (kind + " 1", "none")]
        same = True
        for number in range(10):
            for loader in loaders:
                loader.read(number)
            mixed, plain = (list(loader.arrays()) for loader in loaders)
            expected = mix_as_torchvision(kind, plain[0], plain[1].argmax(1), mixed)
            same = same and all(np.array_equal(*each) for each in zip(mixed, expected))
        suite.tally.check(f"{kind}: torchvision's batches", same)
        for loader in loaders:
            loader.close()
    evaluated = json.loads(harness.call("tcc-run", "eval", suite.path("soft.tcc"), "--data", suite.soft_arrays(),
                                        "--json"))  # fmt: skip
    classes = json.loads(harness.call("tcc-run", "eval", suite.path("net.tcc"), "--data",
                                      suite.save("data.npz", suite.squared()), "--json"))  # fmt: skip
    same = all(abs(evaluated[key] - classes[key]) < 1e-5 for key in ("loss", "accuracy"))
    suite.tally.check("one-hot shares: the loss of classes", same, (evaluated, classes))
    suite.refuse("mixing of classes", suite.plan("bad", [crop], 'mix = "mixup 1"'), 2, "needs a target of floats")
    suite.refuse("no mixing", suite.plan("bad", [crop], 'mix = "blend 1"'), 3, "'blend 1' mixes nothing")
    suite.refuse("one_hot of a number", plan, 2, "data.train.labels: 'twice' is no transform", "--set",
                 "data.train.labels=['one_hot', 'twice']")  # fmt: skip
    far = suite.train(plan, "--set", "data.source=jsonl:" + suite.path("far.jsonl"), "--set", "data.map={x='x'}",
                      "--set", "data.train={}", "--set", "data.train.labels=one_hot", "--set", "data.mix=none", package="soft", steps=1)  # fmt: skip
    suite.tally.check("a class that is none", far.code == 3 and "'9' is none of the 5 places of 'labels'" in far.err, far.err)


def test_hostile(suite):
    crop = f"center_crop {HEIGHT} {WIDTH}"
    for name, lines, said in (
        ("no transform", ["resise 30"], "transform 'resise 30': expected decode, resize"),
        ("no number", ["resize"], "transform 'resize': expected the shorter side"),
        ("no size", ["resize 0"], "transform 'resize 0'"),
        ("a huge size", ["resize 40000"], "transform 'resize 40000'"),
        ("half a range", ["random_resized_crop 24 scale 0.1"], "scale LOW HIGH"),
        ("a range", ["random_resized_crop 24 ratio 2 1"], "ratio LOW HIGH"),
        ("hue", ["color_jitter 0 0 0 0.6"], "hue, 0 to 0.5"),
        ("late", [crop, "decode"], "and it to come first"),
        ("last", ["normalize mean 0.5", crop], "nothing after normalize"),
    ):
        suite.refuse(name, suite.plan("bad", lines), 3, said)
    suite.refuse("size", suite.plan("bad", ["center_crop 10"]), 2, "10 rows of 10 pixels, it has 24 of 20")
    suite.refuse("images", suite.plan("bad", ["resize 40"]), 3, "its image has")
    suite.refuse("crop", suite.plan("bad", ["random_crop 80 80", "resize 24 20"]), 3, "random_crop takes")
    plan = suite.plan("good", [crop])
    for name, text, said in (
        ("key", "sorce = 'npz:x'", "in line 2: unknown key 'data.sorce', expected data.source"),
        ("value", "source = 3", "data.source is 3, expected a source or a list"),
        ("TOML", "source = ", "in line 2"),
        ("on_bad", "source = 'npz:x'\non_bad = 'maybe'", "data.on_bad is 'maybe'"),
        ("no source", "workers = 1", "there is no data.source"),
        ("deep", "x = " + "[" * 3000, "more than 2000"),
    ):
        suite.refuse(name, suite.write("bad.toml", f"[data]\n{text}\n"), 3, said)
    suite.refuse("no table", suite.write("bad.toml", "seed = 3\n"), 3, "there is no table [data]")
    suite.refuse("other", suite.write("bad.toml", "seed = 3\n[data]\n"), 3, "unknown key 'seed'")
    suite.refuse("no file", suite.path("none.toml"), 5, "none.toml")
    suite.refuse("map", plan, 2, "data.map has 'y', the inputs and the target are 'x', 'labels'",
                 "--set", "data.map={y='num'}")  # fmt: skip
    suite.refuse("field", plan, 2, "there is no field 'txt' for 'labels'", "--set",
                 "data.map={labels='txt'}")  # fmt: skip
    suite.refuse("setting", plan, 2, "--set: data.workers is 'many'", "--set", "data.workers=many")
    suite.refuse("no setting", plan, 2, "--set: unknown key 'data.speed'", "--set", "data.speed=1")
    arrays = suite.save("data.npz", scaled(suite.pixels([lambda i, d: resize(i, HEIGHT, WIDTH)])))
    suite.refuse("arrays", arrays, 2, "records have them", "--set", f"data.train.x={crop}")


def main():
    tally = harness.Tally()
    with tempfile.TemporaryDirectory() as folder:
        suite = Suite(tally, folder)
        test_chains(suite)
        test_forms(suite)
        test_prologue(suite)
        test_scaled(suite)
        test_cache(suite)
        test_skipped(suite)
        test_mixing(suite)
        test_hostile(suite)
    tally.close()


if __name__ == "__main__":
    main()
