"""Writes model.onnx, and photos with shapes on them in tar shards: prepare.py [FOLDER]

Each picture is a piece of one of the two photos in scikit-learn's wheel (CC BY), 500 x 375, with a
disk, a square, a triangle or a ring drawn on it, which is its class. Needs numpy, onnx, pillow and
pip.
"""

import glob
import io
import os
import subprocess
import sys
import tarfile
import tempfile
import zipfile

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from PIL import Image, ImageDraw

SCIKIT = "scikit-learn==1.9.1"
WIDTH, HEIGHT = 500, 375
SHARDS, IN_SHARD, TEST = 4, 400, 320
CHANNELS, CLASSES, SIDE = (3, 16, 32, 64), 4, 64


def read_photos():
    with tempfile.TemporaryDirectory() as folder:
        pip = [sys.executable, "-m", "pip", "download", "-q", "--no-deps"]
        subprocess.run([*pip, "-d", folder, SCIKIT], check=True)
        (wheel,) = glob.glob(folder + "/*.whl")
        with zipfile.ZipFile(wheel) as archive:
            for name in ("china", "flower"):
                data = archive.read(f"sklearn/datasets/images/{name}.jpg")
                yield Image.open(io.BytesIO(data)).convert("RGB")


def draw_shape(picture, label, random):
    draw = ImageDraw.Draw(picture)
    radius = int(random.integers(50, 90))
    x = int(random.integers(WIDTH // 2 - 80, WIDTH // 2 + 80))
    y = int(random.integers(HEIGHT // 2 - 40, HEIGHT // 2 + 40))
    box = (x - radius, y - radius, x + radius, y + radius)
    color = tuple(int(c) for c in random.integers(0, 256, 3))
    if label == 0:
        draw.ellipse(box, fill=color)
    elif label == 1:
        draw.rectangle(box, fill=color)
    elif label == 2:
        draw.polygon([(x, y - radius), (x - radius, y + radius), (x + radius, y + radius)], fill=color)
    else:
        draw.ellipse(box, outline=color, width=radius // 3)


def make_picture(photos, label, random):
    photo = photos[int(random.integers(len(photos)))]
    left = int(random.integers(photo.width - WIDTH + 1))
    top = int(random.integers(photo.height - HEIGHT + 1))
    picture = photo.crop((left, top, left + WIDTH, top + HEIGHT))
    draw_shape(picture, label, random)
    stream = io.BytesIO()
    picture.save(stream, "JPEG", quality=90)
    return stream.getvalue()


def write_shard(path, photos, count, random):
    """WebDataset: files that follow one another and share a name are a sample."""
    with tarfile.open(path, "w", format=tarfile.USTAR_FORMAT) as shard:
        for i in range(count):
            label = i % CLASSES
            for ending, data in (
                ("jpg", make_picture(photos, label, random)),
                ("cls", b"%d" % label),
            ):
                member = tarfile.TarInfo(f"{i:05}.{ending}")
                member.size = len(data)
                shard.addfile(member, io.BytesIO(data))


def make_model(random):
    """Three convolutions with pooling, the mean of all places, and a linear layer."""
    weights, nodes, last = [], [], "image"

    def parameters(name, *shape):
        bound = (6 / np.prod(shape[1:])) ** 0.5
        values = random.uniform(-bound, bound, shape).astype(np.float32)
        weights.append(numpy_helper.from_array(values, f"{name}.weight"))
        weights.append(numpy_helper.from_array(np.zeros(shape[0], np.float32), f"{name}.bias"))
        return [f"{name}.weight", f"{name}.bias"]

    def add(op, inputs=(), **attributes):
        nonlocal last
        nodes.append(helper.make_node(op, [last, *inputs], [f"value{len(nodes)}"], **attributes))
        last = nodes[-1].output[0]

    for i, (before, after) in enumerate(zip(CHANNELS, CHANNELS[1:], strict=False)):
        add("Conv", parameters(f"conv{i + 1}", after, before, 3, 3), pads=[1, 1, 1, 1])
        add("Relu")
        add("MaxPool", kernel_shape=[2, 2], strides=[2, 2])
    add("GlobalMaxPool")
    add("Flatten")
    add("Gemm", parameters("linear", CLASSES, CHANNELS[-1]), transB=1)
    nodes[-1].output[0] = "logits"
    image = helper.make_tensor_value_info("image", TensorProto.FLOAT, ["batch", 3, SIDE, SIDE])
    logits = helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["batch", CLASSES])
    graph = helper.make_graph(nodes, "images", [image], [logits], weights)
    opset = helper.make_opsetid("", 20)
    return helper.make_model(graph, ir_version=10, opset_imports=[opset])


def main(folder="."):
    os.makedirs(folder, exist_ok=True)
    random = np.random.default_rng(0)
    model = make_model(random)
    onnx.checker.check_model(model, full_check=True)
    onnx.save(model, os.path.join(folder, "model.onnx"))
    photos = list(read_photos())
    for i in range(SHARDS):
        write_shard(os.path.join(folder, f"train-{i}.tar"), photos, IN_SHARD, random)
    write_shard(os.path.join(folder, "test.tar"), photos, TEST, random)


if __name__ == "__main__":
    main(*sys.argv[1:])
