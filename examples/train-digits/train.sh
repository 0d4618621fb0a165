#!/bin/bash
# Trains, tests and exports: train.sh FOLDER, with the commands of tcc in PATH.
set -euo pipefail
here=$(dirname "$(realpath "$0")")
mkdir -p "$1" && cd "$1"

"${PYTHON:-python3}" "$here/prepare.py"
tcc model.onnx --dim batch=32 --train="$here/recipe.toml" -o digits.tcc
tcc-run train digits.tcc --data npz:train.npz --checkpoint-dir checkpoints \
  --log-dir . --export trained.safetensors
tcc-run eval digits.tcc --data npz:test.npz --checkpoint-dir checkpoints
