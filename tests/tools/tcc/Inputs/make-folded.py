"""Writes a model with the metadata of PyTorch's exporter:

make-folded.py MODEL [twice]    fc.weight is folded into one tensor, or two
"""

import sys

import numpy
import onnx
from onnx import TensorProto, helper, numpy_helper

SOURCES = {
    "val_0": "['fc.weight']",
    "val_1": "['fc.weight']",
    "expand": "['token', 'val_1', 'val_2']",
    "table": "['cos', 'arange', 'val_3']",
}
KIND = "pkg.torch.export.graph_signature.InputSpec.kind"
FOLDED = "pkg.onnxscript.optimizer.folded_from"


def main(path, times="once"):
    tensors = {
        "val_0": numpy.ones((4, 3)),
        "fc.bias": numpy.ones(3),
        "expand": numpy.ones((2, 4)),
        "table": numpy.ones(3),
    }
    nodes = [
        helper.make_node("Add", ["x", "expand"], ["a"]),
        helper.make_node("MatMul", ["a", "val_0"], ["b"]),
        helper.make_node("Add", ["b", "fc.bias"], ["c"]),
        helper.make_node("Mul", ["c", "table"], ["y"]),
    ]
    if times == "twice":
        tensors["val_1"] = tensors["val_0"]
        nodes[2:2] = [helper.make_node("MatMul", ["x", "val_1"], ["other"])]
        nodes[3].input[1] = "other"
    infos = []
    for name, value in tensors.items():
        info = helper.make_tensor_value_info(name, TensorProto.FLOAT, value.shape)
        key, text = (FOLDED, SOURCES[name]) if name in SOURCES else (KIND, "PARAMETER")
        info.metadata_props.add(key=key, value=text)
        infos.append(info)
    graph = helper.make_graph(
        nodes,
        "model",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, (2, 4))],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, (2, 3))],
        [numpy_helper.from_array(v.astype("f4"), k) for k, v in tensors.items()],
        value_info=infos,
    )
    opset = helper.make_opsetid("", 18)
    onnx.save(helper.make_model(graph, ir_version=10, opset_imports=[opset]), path)


main(*sys.argv[1:])
