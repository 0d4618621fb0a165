#!/bin/bash
# Trains, tests and exports: train.sh FOLDER, with the commands of tcc in PATH.
set -euo pipefail
here=$(dirname "$(realpath "$0")")
mkdir -p "$1" && cd "$1"

"${PYTHON:-python3}" "$here/prepare.py"
cp "$here/data.toml" "$here/test.toml" .
tcc model.onnx --dim batch=32 --train="$here/recipe.toml" -o images.tcc
tcc-run train images.tcc --data data.toml --checkpoint-dir checkpoints \
  --log-dir . --export trained.safetensors
tcc-run eval images.tcc --data test.toml --checkpoint-dir checkpoints
