"""LSTM, GRU and RNN nodes by themselves: lstm.100x1x256 has 100 steps, a batch
of 1 and 256 hidden units; .both runs in both directions."""

import os

import numpy as np
import onnx
from harness import cache_folder
from models import cases
from onnx import helper, numpy_helper

GATES = {"lstm": 4, "gru": 3, "rnn": 1}
STEPS, BATCHES, HIDDEN = (1, 16, 100), (1, 8), (128, 256, 512)


def models():
    """Case descriptions by name, as wheels.models()."""
    result = {}
    for kind in GATES:
        for steps in STEPS:
            for batch in BATCHES:
                for hidden in HIDDEN:
                    case = {"kind": kind, "sizes": [steps, batch, hidden]}
                    name = f"{kind}.{steps}x{batch}x{hidden}"
                    result[name] = {**case, "directions": 1}
                    result[name + ".both"] = {**case, "directions": 2}
    return result


def build(case):
    kind, directions = case["kind"], case["directions"]
    steps, batch, hidden = case["sizes"]
    random, rows = np.random.RandomState(0), GATES[kind] * hidden

    def weights(name, *shape):
        values = random.randn(directions, *shape) / np.sqrt(hidden)
        return numpy_helper.from_array(values.astype(np.float32), name)

    def floats(name, *shape):
        return helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, shape)

    attributes = {"hidden_size": hidden}
    attributes["direction"] = "bidirectional" if directions == 2 else "forward"
    if kind == "gru":
        attributes["linear_before_reset"] = 1  # as PyTorch exports it
    graph = helper.make_graph(
        [helper.make_node(kind.upper(), ["x", "w", "r", "b"], ["y"], kind, **attributes)],
        kind,
        [floats("x", steps, batch, hidden)],
        [floats("y", steps, directions, batch, hidden)],
        [weights("w", rows, hidden), weights("r", rows, hidden), weights("b", 2 * rows)],
    )
    opset = [helper.make_opsetid("", 17)]
    return helper.make_model(graph, opset_imports=opset, ir_version=9)


def make(name, case):
    """The case's folder: model, seeded inputs, ONNX Runtime's outputs."""
    folder = cache_folder("recurrent", name)
    path = os.path.join(folder, "model.onnx")
    if not os.path.exists(path):
        model = build(case)
        onnx.save(model, path + ".new")
        feed = cases.feed_for(cases.inputs_of(model), case)
        outputs = cases.reference(path + ".new", feed)
        cases.write_data_set(os.path.join(folder, "test_data_set_0"), feed, outputs)
        os.rename(path + ".new", path)
    return folder
