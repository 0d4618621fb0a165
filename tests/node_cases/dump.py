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
# Lengths of the inputs that are sequences or optionals, by name, of each data set.
LENGTHS = "lengths.json"

# ops: op types of the main graph; folder: where the case's files are.
Case = collections.namedtuple("Case", "name folder ops")


def to_tensor(value, name, declared):
    """The value as a proto of the element type that the model declares for it."""
    if isinstance(value, TensorProto):
        value.name = name
        return value
    array = np.asarray(value)
    tensor = numpy_helper.from_array(array, name=name)
    if tensor.data_type == declared:
        return tensor
    values = array.flatten().tolist()
    return onnx.helper.make_tensor(name, declared, array.shape, values)


def to_numpy(value):
    """Sequences and optionals that are protos as lists, arrays and None."""
    if isinstance(value, onnx.SequenceProto):
        return numpy_helper.to_list(value)
    if isinstance(value, onnx.OptionalProto):
        return numpy_helper.to_optional(value)
    return value


def to_tensors(value, name, kind):
    """The tensors that tcc makes of a value, and the length of what is none.

    A sequence is its elements, an optional what it holds. The length is that of
    --input-length, and "" for a tensor.
    """
    value, is_optional = to_numpy(value), kind.HasField("optional_type")
    if is_optional:
        kind = kind.optional_type.elem_type
        if value is None:
            return [], "none"
    if not kind.HasField("sequence_type"):
        tensor = to_tensor(value, name, kind.tensor_type.elem_type)
        return [tensor], "1" if is_optional else ""
    declared = kind.sequence_type.elem_type.tensor_type.elem_type
    tensors = [to_tensor(v, f"{name}[{i}]", declared) for i, v in enumerate(value)]
    return tensors, str(len(tensors))


def write_data(folder, kind, infos, values):
    """Files of the tensors; the lengths by the names of sequences and optionals."""
    tensors, lengths = [], {}
    for info, value in zip(infos, values):
        parts, length = to_tensors(value, info.name, info.type)
        tensors += parts
        if length:
            lengths[info.name] = length
    for i, tensor in enumerate(tensors):
        with open(os.path.join(folder, f"{kind}_{i}.pb"), "wb") as stream:
            stream.write(tensor.SerializeToString())
    return lengths


def write_case(case, folder):
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "model.onnx"), "wb") as stream:
        stream.write(case.model.SerializeToString())
    graph = case.model.graph
    for number, (inputs, outputs) in enumerate(case.data_sets or []):
        data = os.path.join(folder, f"test_data_set_{number}")
        os.makedirs(data, exist_ok=True)
        lengths = write_data(data, "input", graph.input, inputs)
        write_data(data, "output", graph.output, outputs)
        with open(os.path.join(data, LENGTHS), "w") as stream:
            json.dump(lengths, stream)


def is_wanted(case):
    if case.model is None or case.kind not in ("node", "simple"):
        return False
    opsets = {o.domain or "ai.onnx": o.version for o in case.model.opset_import}
    return opsets.get("ai.onnx", 0) <= MAX_OPSET


def dump():
    folder = os.path.join(
        cache_folder("node-cases"), f"onnx-{onnx.__version__}-opset-{MAX_OPSET}-tensors"
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
