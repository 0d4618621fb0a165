"""Nodes by themselves whose data decide how many elements they choose, and sorts:
nms.half.1000 has 10,000 boxes, half of which score enough, and chooses at most
1000; nonzero.f32.1 has a million elements, of which 1 % are not zero."""

import os

import numpy as np
import onnx
from harness import cache_folder
from models import cases
from onnx import helper, numpy_helper

BOXES, ELEMENTS, SORTED = 10_000, 1_000_000, 100_000
SHARES = (1, 50)  # percent of the elements that are chosen


def models():
    """Case descriptions by name, as wheels.models()."""
    result = {}
    for candidates, score in (("all", 0.0), ("half", 0.5)):
        for most in (100, 1000, BOXES):
            result[f"nms.{candidates}.{most}"] = {"most": most, "score": score}
    for share in SHARES:
        for dtype in ("f32", "bool"):
            result[f"nonzero.{dtype}.{share}"] = {"dtype": dtype, "share": share}
        result[f"compress.{share}"] = {"share": share}
    for values in (100, SORTED):
        result[f"unique.{values}"] = {"values": values}
    for most in (10, 1000, SORTED):
        result[f"topk.{most}"] = {"most": most}
    return result


# Each gives the op, its inputs, those that are constant, and its outputs' dtypes.


def boxes(case, random):
    corners = random.uniform(0, 1000, (1, BOXES, 2))
    ends = corners + random.uniform(10, 100, (1, BOXES, 2))
    feed = {
        "boxes": np.concatenate([corners, ends], 2).astype(np.float32),
        "scores": random.random_sample((1, 1, BOXES)).astype(np.float32),
    }
    constants = {
        "most": np.array([case["most"]]),
        "overlap": np.array([0.5], np.float32),
        "score": np.array([case["score"]], np.float32),
    }
    return "NonMaxSuppression", feed, constants, {"y": np.int64}


def elements(case, random):
    x = random.random_sample(ELEMENTS) * 100 < case["share"]
    if case["dtype"] == "f32":
        x = (x * random.uniform(-1, 1, ELEMENTS)).astype(np.float32)
    return "NonZero", {"x": x}, {}, {"y": np.int64}


def choice(case, random):
    x = random.standard_normal(ELEMENTS).astype(np.float32)
    mask = random.random_sample(ELEMENTS) * 100 < case["share"]
    return "Compress", {"x": x, "mask": mask}, {}, {"y": np.float32}


def repeated(case, random):
    x = random.randint(0, case["values"], SORTED).astype(np.float32)
    return "Unique", {"x": x}, {}, {"y": np.float32}


def shuffled(case, random):
    x = random.standard_normal(SORTED).astype(np.float32)
    outputs = {"y": np.float32, "indices": np.int64}
    return "TopK", {"x": x}, {"k": np.array([case["most"]])}, outputs


MAKERS = {
    "nms": boxes,
    "nonzero": elements,
    "compress": choice,
    "unique": repeated,
    "topk": shuffled,
}


def build(name, case):
    """The model and what its inputs are."""
    maker = MAKERS[name.split(".")[0]]
    kind, feed, constants, outputs = maker(case, np.random.RandomState(0))

    def declare(name, dtype, shape):
        number = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
        return helper.make_tensor_value_info(name, number, shape)

    graph = helper.make_graph(
        [helper.make_node(kind, [*feed, *constants], [*outputs], kind.lower())],
        kind,
        [declare(name, x.dtype, x.shape) for name, x in feed.items()],
        [declare(name, dtype, None) for name, dtype in outputs.items()],
        [numpy_helper.from_array(x, name) for name, x in constants.items()],
    )
    opset = [helper.make_opsetid("", 17)]
    return helper.make_model(graph, opset_imports=opset, ir_version=9), feed


def make(name, case):
    """The case's folder: model, inputs, ONNX Runtime's outputs."""
    folder = cache_folder("compaction", name)
    path = os.path.join(folder, "model.onnx")
    if not os.path.exists(path):
        model, feed = build(name, case)
        onnx.save(model, path + ".new")
        outputs = cases.reference(path + ".new", feed)
        cases.write_data_set(os.path.join(folder, "test_data_set_0"), feed, outputs)
        os.rename(path + ".new", path)
    return folder
