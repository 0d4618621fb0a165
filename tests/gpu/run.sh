#!/bin/bash
# Checks a packed folder on this machine's GPU: run.sh FOLDER [DEVICE [RESULTS]]
# (README.md). Needs python3 (or PYTHON) with numpy; no compiler, no network.
set -euo pipefail
here=$(dirname "$(readlink -f "$0")")
folder=${1:?FOLDER that pack.py made}
device=${2:-cuda}
results=${3:-$folder/results}
mkdir -p "$results"
exec "${PYTHON:-python3}" "$here/check.py" "$folder" "$device" "$results"
