"""Training on images: images.py

Shards of tar files in three forms and a folder of classes give the same weights as an archive of
the pixels that Pillow decodes. Damaged files and samples end a run with one line and the
documented code.
"""

import io
import os
import tarfile
import tempfile
import zlib

import numpy as np
from onnx import helper
from PIL import Image

import harness
from training import run

COUNT, STEPS, HEIGHT, WIDTH = 40, 6, 20, 28
FORMATS = {
    "jpg": {"format": "JPEG", "quality": 90},
    "png": {"format": "PNG"},
    "webp": {"format": "WEBP"},
}


def encode(pixels, kind):
    stream = io.BytesIO()
    Image.fromarray(pixels).save(stream, **FORMATS[kind])
    return stream.getvalue()


def decode(data):
    """Channels first, from 0 to 1."""
    pixels = np.asarray(Image.open(io.BytesIO(data)).convert("RGB"))
    return pixels.transpose(2, 0, 1).astype("f4") / np.float32(255)


def write_tar(path, samples, form=tarfile.USTAR_FORMAT, folder=""):
    with tarfile.open(path, "w", format=form) as shard:
        for key, fields in samples:
            for name, data in fields.items():
                member = tarfile.TarInfo(f"{folder}{key}.{name}")
                member.size = len(data)
                shard.addfile(member, io.BytesIO(data))


class Suite:
    def __init__(self, tally, folder):
        self.tally, self.folder = tally, folder
        size = 3 * HEIGHT * WIDTH
        nodes = [helper.make_node("Flatten", ["x"], ["flat"]),
                 helper.make_node("MatMul", ["flat", "weight"], ["logits"])]  # fmt: skip
        run.save_model(self.path("model.onnx"), nodes, {"weight": run.normal(size, run.CLASSES)},
                       [3, HEIGHT, WIDTH])  # fmt: skip
        with open(self.path("recipe.toml"), "w", encoding="utf-8") as file:
            file.write(run.RECIPE.format(micro=8))
        harness.call("tcc", self.path("model.onnx"), "-q", "--train=" + self.path("recipe.toml"),
                     "-o", self.path("train.tcc"))  # fmt: skip
        self.samples = list(self.make_samples())

    def make_samples(self):
        """Smooth images of each format, grey ones and ones of a palette among them; by class."""
        random = np.random.default_rng(8)
        for i in range(COUNT):
            small = random.integers(0, 256, (4, 5, 3), dtype=np.uint8)
            pixels = np.asarray(Image.fromarray(small).resize((WIDTH, HEIGHT)))
            kind = list(FORMATS)[i % 3]
            if i % 7 == 0 and kind != "webp":
                pixels = pixels[:, :, 0]
            yield f"{i:04}", kind, encode(pixels, kind), i * run.CLASSES // COUNT

    def path(self, name):
        return os.path.join(self.folder, name)

    def train(self, spec, steps=STEPS, *flags):
        return harness.run_tool("tcc-run", "train", self.path("train.tcc"), "--data", spec, "--steps",
                                steps, *flags)  # fmt: skip

    def read_state(self, spec, name):
        harness.call("tcc-run", "train", self.path("train.tcc"), "--data", spec, "--steps", STEPS,
                     "--checkpoint-dir", self.path(name), "-q")  # fmt: skip
        return run.read_tensors(self.path(f"{name}/step-{STEPS}/state.safetensors"))

    def refuse(self, name, spec, code, said):
        done = self.train(spec, 1, "-q")
        is_right = done.code == code and said in done.err and done.err.count("\n") == 1
        self.tally.check(f"{name}: refused", is_right, f"{done.code}: {done.err}")


def test_sources(suite):
    np.savez(suite.path("data.npz"), x=np.stack([decode(data) for _, _, data, _ in suite.samples]),
             labels=np.array([label for *_, label in suite.samples]))  # fmt: skip
    fields = [(key, {kind: data, "cls": b"%d\n" % label})
              for key, kind, data, label in suite.samples]  # fmt: skip
    half = COUNT // 2
    long = "folder/" + "deep" * 30 + "/"
    write_tar(suite.path("ustar-08.tar"), fields[:half])
    write_tar(suite.path("ustar-09.tar"), fields[half:])
    write_tar(suite.path("pax.tar"), fields, tarfile.PAX_FORMAT, long)
    write_tar(suite.path("gnu.tar"), fields, tarfile.GNU_FORMAT, long)
    for key, kind, data, label in suite.samples:
        os.makedirs(suite.path(f"images/class {label:02}"), exist_ok=True)
        with open(suite.path(f"images/class {label:02}/{key}.{kind}"), "wb") as file:
            file.write(data)
    expected = suite.read_state("npz:" + suite.path("data.npz"), "npz")
    for name, spec in {
        "a pattern": "webdataset:" + suite.path("ustar-{08..09}.tar"),
        "a list": f"webdataset:{suite.path('ustar-08.tar')},{suite.path('ustar-09.tar')}",
        "pax": "webdataset:" + suite.path("pax.tar"),
        "gnu": "webdataset:" + suite.path("gnu.tar"),
        "folders": "images:" + suite.path("images"),
    }.items():
        suite.tally.check(f"{name}: the same weights", suite.read_state(spec, name) == expected)


def test_hostile(suite):
    _, kind, data, _ = next(sample for sample in suite.samples if sample[1] == "jpg")

    def refuse(name, fields, said, code=3):
        path = suite.path(f"{name}.tar")
        write_tar(path, [(f"{i}", fields) for i in range(8)])
        suite.refuse(name, "webdataset:" + path, code, said)

    refuse("cut", {kind: data[:len(data) // 2], "cls": b"1"}, "its JPEG is damaged")
    png = encode(np.zeros((HEIGHT, WIDTH, 3), np.uint8), "png")
    refuse("cut png", {"png": png[:-20], "cls": b"1"}, "its PNG is damaged")
    bomb = png[:16] + b"\x7f\xff\xff\xff" * 2 + png[24:]
    refuse("bomb", {"png": bomb, "cls": b"1"}, "damaged")
    header = b"IHDR" + b"\0\0\x7f\xff" * 2 + png[24:29]
    bomb = png[:12] + header + zlib.crc32(header).to_bytes(4, "big") + png[33:]
    refuse("claims", {"png": bomb, "cls": b"1"}, "it claims 32767x32767 pixels")
    webp = encode(np.zeros((HEIGHT, WIDTH, 3), np.uint8), "webp")
    refuse("cut webp", {"webp": webp[:-8], "cls": b"1"}, "its WebP is damaged")
    write_tar(suite.path("fewer.tar"), [("0", {kind: data, "cls": b"1"}), ("1", {kind: data})] * 4)
    suite.refuse("fewer fields", "webdataset:" + suite.path("fewer.tar"), 3, "it has no 'cls'")
    write_tar(suite.path("twice.tar"), [("0", {kind: data, "cls": b"1"})] * 2)
    suite.refuse("twice", "webdataset:" + suite.path("twice.tar"), 3, "sample '0' has 'jpg' twice")
    refuse("no image", {"png": b"GIF89a", "cls": b"1"}, "no JPEG, PNG or WebP")
    small = encode(np.zeros((HEIGHT, 1, 3), np.uint8), "png")
    refuse("small", {"png": small, "cls": b"1"}, "its image has 20 rows of 1 pixels")
    refuse("label", {kind: data, "cls": b"one"}, "'one' is no number")
    refuse("no label", {kind: data, "txt": b"1"}, "no field is for 'labels'", 2)
    with open(suite.path("cut.tar"), "rb") as file:
        shard = file.read()
    for name, shape, said in (
        ("half a shard", shard[: 512 + 100], "more bytes than there are"),
        ("half a header", shard[:100], "ends within a header"),
        ("another file", b"\x01" * 2048, "no header of a tar file"),
        ("empty", b"", "there is no sample"),
    ):
        with open(suite.path("bad.tar"), "wb") as file:
            file.write(shape)
        suite.refuse(name, "webdataset:" + suite.path("bad.tar"), 3, said)
    suite.refuse("no shard", "webdataset:" + suite.path("x{0..3}.tar"), 5, "x0.tar")
    suite.refuse("a pattern", "webdataset:" + suite.path("x{3..0}.tar"), 2, "{FIRST..LAST}")
    os.mkdir(suite.path("nothing"))
    suite.refuse("no class", "images:" + suite.path("nothing"), 3, "no folder of a class")


def main():
    tally = harness.Tally()
    with tempfile.TemporaryDirectory() as folder:
        suite = Suite(tally, folder)
        test_sources(suite)
        test_hostile(suite)
    tally.close()


if __name__ == "__main__":
    main()
