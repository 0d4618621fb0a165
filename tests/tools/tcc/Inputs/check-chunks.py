"""check-chunks.py MODEL RECIPE: in the smallest budget, which chunks of logits alone
reach, the phases that are shown have them too."""

import re
import subprocess
import sys

model, recipe = sys.argv[1:]


def compile_within(budget, *flags):
    command = ["tcc", model, f"--train={recipe}", "--threads=1", "--weights=none", "-q"]
    command += [f"--memory-budget={budget}", *flags]
    return subprocess.run(command, capture_output=True, text=True)


refusal = compile_within("1KiB", "--check").stderr
least = re.search(r"the smallest budget is (\d+) bytes", refusal)[1]
for artifact in ("exec", "fused", "graph"):
    run = compile_within(least, f"--emit={artifact}", "-o", "-")
    assert run.returncode == 0, run.stderr
    assert '"chunk-loss"' in run.stdout, artifact
# What does not fit is shown as it would be without a search.
run = compile_within("1KiB", "--emit=fused", "-o", "-")
assert run.returncode == 0 and '"chunk-loss"' not in run.stdout, run.stderr
