"""Cases in the layout of ONNX's test data: CASE/model.onnx and
CASE/test_data_set_<n>/{input,output}_<i>.pb."""

import os

import numpy as np
import onnx
import onnxruntime
from onnx import numpy_helper

onnxruntime.set_default_logger_severity(4)


def inputs_of(model):
    """(name, numpy dtype, dims) of each graph input that is no initializer.

    A dim is a number or a symbol's name, INPUT.AXIS for an unnamed one.
    """
    weights = {tensor.name for tensor in model.graph.initializer}
    result = []
    for value in model.graph.input:
        if value.name in weights:
            continue
        tensor = value.type.tensor_type
        dims = [
            d.dim_value
            if d.dim_value > 0
            else d.dim_param.replace("?", "") or f"{value.name}.{axis}"
            for axis, d in enumerate(tensor.shape.dim)
        ]
        dtype = onnx.helper.tensor_dtype_to_np_dtype(tensor.elem_type)
        result.append((value.name, dtype, dims))
    return result


def feed_for(inputs, case, seed=0):
    """Seeded values: floats in [0, 1) or the case's range, integers in [0, 10)."""
    random = np.random.RandomState(seed)
    values = {**case.get("values", {}), **case.get("fixed", {})}
    feed = {}
    for name, dtype, dims in inputs:
        sizes = case.get("dims", {})
        shape = case.get("shapes", {}).get(name) or [
            d if isinstance(d, int) else sizes.get(d, 1) for d in dims
        ]
        if name in values:
            value = np.full(shape, values[name])
        elif np.issubdtype(dtype, np.floating):
            low, high = case.get("ranges", {}).get(name, (0, 1))
            value = low + (high - low) * random.rand(*shape)
        else:
            value = random.randint(0, 10, size=shape)
        feed[name] = np.asarray(value).astype(dtype)
    return feed


def reference(path, feed):
    """ONNX Runtime's outputs, with its own graph optimisations off."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = (
        onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    )
    session = onnxruntime.InferenceSession(
        path, options, providers=["CPUExecutionProvider"]
    )
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(names, feed)))


def write_data_set(folder, feed, outputs):
    os.makedirs(folder, exist_ok=True)
    for kind, values in (("input", feed), ("output", outputs)):
        for i, (name, value) in enumerate(values.items()):
            tensor = numpy_helper.from_array(np.asarray(value), name)
            with open(os.path.join(folder, f"{kind}_{i}.pb"), "wb") as stream:
                stream.write(tensor.SerializeToString())


def data_sets(case_folder):
    return sorted(
        os.path.join(case_folder, name)
        for name in os.listdir(case_folder)
        if name.startswith("test_data_set_")
    )
