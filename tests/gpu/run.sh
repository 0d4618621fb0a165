#!/bin/bash
# Checks a packed folder on this machine's GPU: run.sh FOLDER [DEVICE [RESULTS]]
# (README.md). Needs python3 (or PYTHON) with numpy; no compiler, no network.
set -euo pipefail
here=$(dirname "$(readlink -f "$0")")
folder=${1:?FOLDER that pack.py made}
device=${2:-cuda}
results=${3:-$folder/results}
python=${PYTHON:-python3}
"$python" -c 'import numpy' 2>/dev/null || { echo "run.sh: $python has no numpy; set PYTHON" >&2; exit 8; }
mkdir -p "$results"
exec "$python" "$here/check.py" "$folder" "$device" "$results"
