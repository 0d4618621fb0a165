#!/bin/bash
# On each of two hosts: torchrun.sh FOLDER HOST0, of digits.tcc and train.npz.
set -euo pipefail
cd "$1"
exec torchrun --nnodes 2 --nproc-per-node 1 --max-restarts 3 --rdzv-backend c10d \
  --rdzv-endpoint "$2:29500" --no-python \
  tcc-run train digits.tcc --data npz:train.npz --checkpoint-dir ranks --checkpoint-every 100 \
  --log-dir ranks --resume-if-any
