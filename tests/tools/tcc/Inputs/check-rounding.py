"""Looks for what rounding each matrix of a model to bf16 costs in a report's table:
check-rounding.py MODEL PAGE"""

import sys

import numpy as np
import onnx
from onnx import numpy_helper
from page import read_page

blocks = [block for section in read_page(sys.argv[2])["sections"] for block in section["blocks"]]
[table] = [block["rows"] for block in blocks if block.get("title") == "Off f32"]
found = [after for _, op, before, after in table if op == "cast to bf16" and before == 0]
for tensor in onnx.load(sys.argv[1]).graph.initializer:
    x = numpy_helper.to_array(tensor)
    if x.ndim != 2 or x.dtype != np.float32:
        continue
    bits = x.view("u4")
    rounded = ((bits + 0x7FFF + ((bits >> 16) & 1)) & 0xFFFF0000).view("f4")
    off = np.linalg.norm(x.astype("f8") - rounded) / np.linalg.norm(x.astype("f8"))
    assert any(abs(f - off) < 0.006 * off for f in found), (tensor.name, off, found)
