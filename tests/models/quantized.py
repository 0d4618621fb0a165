"""Models that ONNX Runtime quantized, beside those that it read: quantized.py [--long]

Small ones, and with --long those of optimised.py's real sizes: what the dynamic and
the static (QDQ) quantizer write, and the one of weights of 4 bits, and what the graph
optimiser makes of that. tcc is at most as far from the model of floats as ONNX Runtime
is, and from ONNX Runtime's results.
"""

import functools
import os
import tempfile

import numpy as np
import onnx
from onnx import helper, numpy_helper
from onnxruntime.quantization import (
    CalibrationDataReader,
    QuantFormat,
    QuantType,
    matmul_nbits_quantizer,
    quantize_dynamic,
    quantize_static,
)

from harness import first_line, run_tool
from models import cases, optimised

# By rounding alone two ways to quantize differ this much in distance.
SLACK = 1.1


class Feeds(CalibrationDataReader):
    def __init__(self, feed):
        self.rest = iter([feed])

    def get_next(self):
        return next(self.rest, None)


def dynamic(path, feed, out, **options):
    # Shapes behind fused operators are not known to it.
    floats = {"DefaultTensorType": onnx.TensorProto.FLOAT}
    quantize_dynamic(path, out, extra_options=floats, **options)


def static(path, feed, out):
    types = {"activation_type": QuantType.QUInt8, "weight_type": QuantType.QInt8}
    quantize_static(
        path, out, Feeds(feed), quant_format=QuantFormat.QDQ, per_channel=True, **types
    )


def bits(path, feed, out):
    quantizer = matmul_nbits_quantizer.MatMulNBitsQuantizer(
        onnx.load(path), block_size=16, is_symmetric=False
    )
    quantizer.process()
    quantizer.model.save_model_to_file(out)


QUANTIZERS = {
    "dynamic": functools.partial(dynamic, weight_type=QuantType.QUInt8),
    "dynamic by channel": functools.partial(
        dynamic, weight_type=QuantType.QInt8, per_channel=True, reduce_range=True
    ),
    "static": static,
    "4 bits": bits,
}


# Operators that small models must have by form, and those of them once optimised.
OPS = {
    "bert dynamic by channel": (
        {"MatMulInteger", "QAttention", "QEmbedLayerNormalization"},
        {"DynamicQuantizeMatMul", "QAttention", "QEmbedLayerNormalization"},
    ),
    "decoder dynamic": ({"MatMulInteger"}, {"DynamicQuantizeMatMul"}),
    "decoder dynamic by channel": ({"MatMulInteger"}, {"DynamicQuantizeMatMul"}),
    "decoder static": ({"DequantizeLinear"}, {"QLinearAdd", "QLinearMul", "QLinearSoftmax"}),
    "decoder 4 bits": ({"MatMulNBits"}, {"MatMulNBits"}),
    "resnet dynamic": ({"ConvInteger"}, {"ConvInteger"}),
    "resnet static": ({"DequantizeLinear"}, {"QLinearAdd", "QLinearConv"}),
    "lstm dynamic": ({"DynamicQuantizeLSTM"}, {"DynamicQuantizeMatMul"}),
    "lstm dynamic by channel": ({"DynamicQuantizeLSTM"}, {"DynamicQuantizeMatMul"}),
}


def write_lstm(path):
    """Both directions, and a product of what they give."""
    random = np.random.RandomState(0)
    hidden, width, steps, batch = 32, 24, 12, 2
    shapes = {
        "w": (2, 4 * hidden, width), "r": (2, 4 * hidden, hidden), "b": (2, 8 * hidden),
        "filters": (2 * hidden, 10),
    }  # fmt: skip
    weights = [
        numpy_helper.from_array(0.2 * random.normal(size=s).astype(np.float32), name)
        for name, s in shapes.items()
    ]
    weights.append(numpy_helper.from_array(np.array([steps, batch, 2 * hidden]), "shape"))
    nodes = [
        helper.make_node(
            "LSTM", ["x", "w", "r", "b"], ["y"], hidden_size=hidden, direction="bidirectional"
        ),
        helper.make_node("Transpose", ["y"], ["t"], perm=[0, 2, 1, 3]),
        helper.make_node("Reshape", ["t", "shape"], ["joined"]),
        helper.make_node("MatMul", ["joined", "filters"], ["z"]),
    ]
    float32 = onnx.TensorProto.FLOAT
    ends = [
        [helper.make_tensor_value_info(name, float32, shape)]
        for name, shape in (("x", [steps, batch, width]), ("z", [steps, batch, 10]))
    ]
    graph = helper.make_graph(nodes, "lstm", *ends, weights)
    opsets = [helper.make_opsetid("", 17)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=9), path)
    return {"x": random.normal(size=(steps, batch, width)).astype(np.float32)}


def run(work, path, feed):
    """tcc's outputs, or the line that says why there are none."""
    package, data, out = (os.path.join(work, name) for name in ("m.tcc", "data", "out"))
    compiled = run_tool("tcc", path, "-o", package, "-q")
    if compiled.code != 0:
        return None, first_line(compiled)
    cases.write_data_set(data, feed, {})
    ran = run_tool("tcc-run", "run", package, "--inputs-dir", data, "--output-dir", out)
    if ran.code != 0:
        return None, first_line(ran)
    count = len(onnx.load(path, load_external_data=False).graph.output)
    return [np.load(os.path.join(out, f"output_{i}.npy")) for i in range(count)], ""


def distance(values, others):
    """The norm of the difference, by that of `others`."""
    both = [
        np.concatenate([x.ravel().astype(np.float64) for x in tensors])
        for tensors in (values, others)
    ]
    return np.linalg.norm(both[0] - both[1]) / np.linalg.norm(both[1])


def check(tally, title, path, feed, floats, wanted):
    """`floats`: the results before quantization; `wanted`: operators that must be there."""
    known = list(cases.reference(path, feed).values())
    with tempfile.TemporaryDirectory() as work:
        found, problem = run(work, path, feed)
    nodes = onnx.load(path, load_external_data=False).graph.node
    ops = {n.op_type for n in nodes}
    tally.check(f"{title} has {sorted(wanted)}", wanted <= ops, f"only {sorted(ops)}")
    if not tally.check(f"{title} runs", found is not None, problem):
        return
    off, peer, between = (
        distance(found, floats), distance(known, floats), distance(found, known),
    )  # fmt: skip
    figures = f"{off:.2e} from floats, onnxruntime {peer:.2e}, between them {between:.2e}"
    print(f"{title}: {figures}")
    tally.check(f"{title} is near floats", off <= SLACK * peer, figures)
    tally.check(f"{title} is near onnxruntime", between <= SLACK * peer, figures)


def check_forms(tally, work, name, path, feed, forms):
    """What the quantizers make of a model, and the optimiser of that."""
    floats = list(cases.reference(path, feed).values())
    for form in forms:
        out = os.path.join(work, f"{name} {form}.onnx")
        QUANTIZERS[form](path, feed, out)
        wanted = OPS.get(f"{name} {form}", (set(), set()))
        check(tally, f"{name} {form}", out, feed, floats, wanted[0])
        extended = optimised.optimise(out, optimised.LEVELS["extended"])
        check(tally, f"{name} {form} optimised", extended, feed, floats, wanted[1])


def check_small(tally, work):
    path = os.path.join(work, "m.onnx")
    both = ("dynamic", "dynamic by channel")
    feed = optimised.write_bert(path)
    check_forms(tally, work, "bert", optimised.fuse(path), feed, ("dynamic by channel",))
    feed = optimised.write_transformer("decoder", path)
    check_forms(tally, work, "decoder", path, feed, (*both, "static", "4 bits"))
    feed = optimised.write_resnet(path)
    check_forms(tally, work, "resnet", path, feed, ("dynamic", "static"))
    check_forms(tally, work, "lstm", path, write_lstm(path), both)


def check_real(tally, work):
    for name in optimised.REAL:
        path = os.path.join(work, "real.onnx")
        feed = optimised.write_real(name, path)
        if optimised.REAL[name]:
            path = optimised.fuse_real(name, path)
        check_forms(tally, work, name, path, feed, ("dynamic", "dynamic by channel"))


if __name__ == "__main__":
    optimised.main(check_small, check_real)
