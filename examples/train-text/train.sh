#!/bin/bash
# Trains, tests and exports: train.sh FOLDER, with the commands of tcc in PATH.
set -euo pipefail
here=$(dirname "$(realpath "$0")")
mkdir -p "$1" && cd "$1"

"${PYTHON:-python3}" "$here/prepare.py"
tcc model.onnx --train="$here/recipe.toml" -o text.tcc
tcc-run train text.tcc --data npz:train.npz --checkpoint-dir checkpoints \
  --log-dir . --export trained.safetensors
tcc-run eval text.tcc --data npz:test.npz --checkpoint-dir checkpoints
