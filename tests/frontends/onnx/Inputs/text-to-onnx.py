"""Writes a model in ONNX's textual syntax, of which # starts a comment.

  text-to-onnx.py TEXT MODEL
"""

import sys

import onnx

with open(sys.argv[1]) as stream:
    onnx.save(onnx.parser.parse_model(stream.read()), sys.argv[2])
