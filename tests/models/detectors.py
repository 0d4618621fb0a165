"""Detectors with their post-processing inside, beside onnxruntime: one package each, images
of many sizes.

  detectors.py [--long] [NAME...]    20 images each, or 200

What is found must be the same boxes, of the same labels. Where two floats that decide
are nearer than MARGIN, either may be right: such images are left out, and few.
"""

import gzip
import os
import sys
import tempfile
import zlib

import numpy as np
import onnx
import onnxruntime
from onnx import numpy_helper

from harness import Tally, first_line, run_tool

onnxruntime.set_default_logger_severity(4)
FIXTURES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "fixtures")
SMALL = ("retinanet", "ssdlite")
SIZES = [(128, 128), (160, 240), (224, 192), (320, 240), (320, 288)]
MARGIN = 1e-4
LEFT_OUT = 0.05  # of the images, at most
BOXES = (10, 100)
# Models whose images with other numbers of boxes are passed over: random gates of squeeze
# and excitation let one image have hundreds, another none; dense anchors allow few boxes,
# or overlaps lie near the threshold.
UNEVEN = ("ssdlite320_mobilenet_v3_large", "retinanet_resnet50_fpn")
TOLERANCES = {"boxes": 0.02, "scores": 1e-4}  # pixels of up to 320; parts of 1


def draw(model):
    """Gives a model the weights that its file describes."""
    drawn = onnx.ModelProto()
    drawn.CopyFrom(model)
    for weight in drawn.graph.initializer:
        if weight.doc_string:
            random = np.random.default_rng(zlib.crc32(weight.name.encode()))
            values = random.standard_normal(tuple(weight.dims), np.float32)
            values *= np.float32(weight.doc_string)
            weight.raw_data = values.tobytes()
            weight.doc_string = ""
    return drawn


def load(name):
    with gzip.open(os.path.join(FIXTURES, name + ".onnx.gz")) as stream:
        return draw(onnx.load_from_string(stream.read()))


def open_session(model):
    return onnxruntime.InferenceSession(model.SerializeToString())


def make_image(number):
    """Patches, as many along the shorter side whatever it is, and noise."""
    random = np.random.default_rng(number)
    height, width = SIZES[number % len(SIZES)]
    image = 0.2 * random.random((3, height, width), np.float32)
    for count in (8, 32):
        side = -(-min(height, width) // count)
        coarse = random.random((3, -(-height // side), -(-width // side)), np.float32)
        image += 0.4 * coarse.repeat(side, 1).repeat(side, 2)[:, :height, :width]
    return image


def find_deciding(model):
    """The scores that a threshold is compared with, and the thresholds; the tensors that
    the branch with the suppression reads; and its threshold."""
    constants = {
        node.output[0]: numpy_helper.to_array(node.attribute[0].t)
        for node in model.graph.node
        if node.op_type == "Constant"
    }
    compared = [
        (node.input[0], float(constants[node.input[1]]))
        for node in model.graph.node
        if node.op_type == "Greater" and node.input[1] in constants
    ]
    for branch in (a.g for n in model.graph.node if n.op_type == "If" for a in n.attribute):
        own = {name for node in branch.node for name in node.output}
        read = {name for node in branch.node for name in node.input} - own
        for node in branch.node:
            if node.op_type == "NonMaxSuppression":
                overlap = next(n for n in branch.node if node.input[3] in n.output)
                threshold = numpy_helper.to_array(overlap.attribute[0].t).item()
                return compared, sorted(read - set(constants)), threshold
    raise ValueError("the model has no NonMaxSuppression in a branch")


def overlaps(boxes):
    """What each two boxes share, of what they cover."""
    low = np.maximum(boxes[:, None, :2], boxes[None, :, :2])
    high = np.minimum(boxes[:, None, 2:], boxes[None, :, 2:])
    both = np.prod(np.maximum(high - low, 0), axis=-1)
    area = np.prod(boxes[:, 2:] - boxes[:, :2], axis=-1)
    with np.errstate(invalid="ignore"):  # boxes of no area
        return both / (area[:, None] + area[None, :] - both)


class Reference:
    """The model in onnxruntime, which also gives what decides."""

    def __init__(self, model):
        self.compared, self.read, self.overlap = find_deciding(model)
        names = {name for name, _ in self.compared} | set(self.read)
        wide = onnx.ModelProto()
        wide.CopyFrom(model)
        given = {output.name for output in model.graph.output}
        for name in sorted(names - given):
            wide.graph.output.append(onnx.helper.make_empty_tensor_value_info(name))
        self.session = open_session(wide)
        self.names = [output.name for output in self.session.get_outputs()]

    def run(self, image):
        values = dict(zip(self.names, self.session.run(None, {"image": image})))
        results = [values[name] for name in ("boxes", "scores", "labels")]
        return results, self.is_tie(values)

    def is_tie(self, values):
        for name, threshold in self.compared:
            if np.any(np.abs(values[name] - threshold) < MARGIN):
                return True
        read = [values[name] for name in self.read]
        boxes = next(x for x in read if x.ndim == 2)
        scores = next(x for x in read if x.ndim == 1 and x.dtype == np.float32)
        labels = next(x for x in read if x.ndim == 1 and x.dtype == np.int64)
        rivals = np.triu(labels[:, None] == labels[None, :], 1)
        shared = overlaps(boxes)
        is_near = np.abs(shared - self.overlap) < MARGIN
        is_equal = np.abs(scores[:, None] - scores[None, :]) < MARGIN
        return bool(np.any(rivals & (is_near | (is_equal & (shared > self.overlap)))))


def compare(found, expected):
    """What differs, if anything: boxes may be in another order where scores are equal."""
    if found[1].shape != expected[1].shape:
        return f"{len(found[1])} boxes, expected {len(expected[1])}"
    if len(found[1]) == 0:
        return ""
    boxes, scores, labels = found
    if np.any(np.diff(scores) > MARGIN):
        return "scores are not in order"
    distance = np.abs(boxes[None] - expected[0][:, None]).max(-1)
    distance += np.where(labels[None] == expected[2][:, None], 0, np.inf)
    order = distance.argmin(1)
    if len(set(order)) != len(order):
        return "other boxes or labels"
    for name, own, right in zip(("boxes", "scores"), found, expected):
        off = np.abs(own[order] - right).max()
        if off > TOLERANCES[name]:
            return f"{name} are {off:.1e} off"
    return ""


def run_package(package, image, work):
    path = os.path.join(work, "image.npy")
    np.save(path, image)
    run = run_tool(
        "tcc-run", "run", package, "--input", f"image={path}", "--output-dir", work
    )
    if run.code != 0:
        return None, first_line(run)
    return [np.load(os.path.join(work, f"output_{i}.npy")) for i in range(3)], ""


def check(tally, name, count, work):
    model = load(name)
    path, package = os.path.join(work, "m.onnx"), os.path.join(work, "m.tcc")
    onnx.save(model, path)
    sides = ["--dim", "height=128..320", "--dim", "width=128..320"]
    run = run_tool("tcc", path, "-o", package, "-q", *sides)
    if not tally.check(f"{name} compiles", run.code == 0, first_line(run)):
        return
    reference, left_out, counts, seconds = Reference(model), 0, [], run.seconds
    for number in range(4 * count):
        if len(counts) == count:
            break
        image = make_image(number)
        expected, is_tie = reference.run(image)
        if name in UNEVEN and not BOXES[0] <= len(expected[1]) <= BOXES[1]:
            continue
        counts.append(len(expected[1]))
        if is_tie:
            left_out += 1
            continue
        found, problem = run_package(package, image, work)
        problem = problem or compare(found, expected)
        tally.check(f"{name} image {number}", not problem, problem)
    title = f"{name}: {min(counts)} to {max(counts)} boxes, {left_out} images left out"
    print(f"{title}, compiled in {seconds:.1f} s", flush=True)
    tally.check(f"{name} boxes", BOXES[0] <= min(counts) and max(counts) <= BOXES[1], title)
    tally.check(f"{name} images", left_out <= LEFT_OUT * count, title)


def main(arguments):
    tally, is_long = Tally(), "--long" in arguments
    names = [name for name in arguments if name != "--long"]
    with tempfile.TemporaryDirectory() as work:
        for name in names or SMALL:
            check(tally, name, 200 if is_long else 20, work)
    tally.close()


if __name__ == "__main__":
    main(sys.argv[1:])
