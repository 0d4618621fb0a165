"""ONNX's backend test cases as files, in the layout of ONNX's test data.

The onnx wheel generates its cases; dump() writes those up to an opset once, to
a folder per case, and gives a list of Case.
"""

import collections
import json
import os
import shutil
import warnings

import numpy as np
import onnx
from onnx import TensorProto, numpy_helper
from onnx.backend.test.case import model as model_cases
from onnx.backend.test.case import node as node_cases

from harness import cache_folder

MAX_OPSET = 28

# ops: op types of the main graph; folder: where the case's files are.
Case = collections.namedtuple("Case", "name folder ops")


def to_proto(value, info):
    """The value as a proto of the type that the model declares for it."""
    kind = info.type.WhichOneof("value")
    if isinstance(value, (TensorProto, onnx.SequenceProto, onnx.OptionalProto)):
        value.name = info.name
        return value
    if kind == "optional_type":
        return numpy_helper.from_optional(value, name=info.name)
    if kind == "sequence_type":
        return numpy_helper.from_list(list(value), name=info.name)
    if kind == "map_type":
        return numpy_helper.from_dict(value, name=info.name)
    array = np.asarray(value)
    tensor = numpy_helper.from_array(array, name=info.name)
    declared = info.type.tensor_type.elem_type
    if tensor.data_type == declared:
        return tensor
    values = array.flatten().tolist()
    return onnx.helper.make_tensor(info.name, declared, array.shape, values)


def write_case(case, folder):
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "model.onnx"), "wb") as stream:
        stream.write(case.model.SerializeToString())
    graph = case.model.graph
    for number, (inputs, outputs) in enumerate(case.data_sets or []):
        data = os.path.join(folder, f"test_data_set_{number}")
        os.makedirs(data, exist_ok=True)
        for kind, infos, values in (
            ("input", graph.input, inputs),
            ("output", graph.output, outputs),
        ):
            for i, (info, value) in enumerate(zip(infos, values)):
                with open(os.path.join(data, f"{kind}_{i}.pb"), "wb") as stream:
                    stream.write(to_proto(value, info).SerializeToString())


def is_wanted(case):
    if case.model is None or case.kind not in ("node", "simple"):
        return False
    opsets = {o.domain or "ai.onnx": o.version for o in case.model.opset_import}
    return opsets.get("ai.onnx", 0) <= MAX_OPSET


def dump():
    folder = os.path.join(
        cache_folder("node-cases"), f"onnx-{onnx.__version__}-opset-{MAX_OPSET}"
    )
    index = os.path.join(folder, "index.json")
    if not os.path.exists(index):
        shutil.rmtree(folder, ignore_errors=True)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            write_all(folder, index)
    with open(index) as stream:
        return [
            Case(name, os.path.join(folder, name), ops)
            for name, ops in json.load(stream).items()
        ]


def write_all(folder, index):
    known = {}
    collected = [*node_cases.collect_testcases(None), *model_cases.collect_testcases()]
    for case in filter(is_wanted, collected):
        write_case(case, os.path.join(folder, case.name))
        known[case.name] = sorted({node.op_type for node in case.model.graph.node})
    with open(index, "w") as stream:
        json.dump(known, stream, indent=0, sort_keys=True)
