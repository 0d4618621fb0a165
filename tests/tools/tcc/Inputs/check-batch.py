"""check-batch.py MODEL RECIPE BUDGET: what tcc finds for micro = "auto" fits, and the
next number of samples, of those that divide an update, does not."""

import json
import re
import subprocess
import sys
import tempfile

model, recipe, budget = sys.argv[1:]
OUT_OF_MEMORY = 7


def compile_with(text):
    with tempfile.NamedTemporaryFile("w", suffix=".toml") as stream:
        stream.write(text)
        stream.flush()
        command = ["tcc", model, f"--train={stream.name}", f"--memory-budget={budget}"]
        command += ["--threads=1", "--weights=none", "--check", "--json"]
        return subprocess.run(command, capture_output=True, text=True)


with open(recipe) as stream:
    auto = stream.read()
done = compile_with(auto)
assert done.returncode == 0, done.stderr
found = json.loads(done.stdout)
samples = found["micro_batch"]
total = re.search(r"global = (\d+)", auto)
larger = samples + 1
while total and int(total[1]) % larger:
    larger += 1
assert 2 < samples and (not total or larger < int(total[1])), samples
assert f"batch.micro is {samples}," in done.stderr and f": {larger} do not fit" in done.stderr
fits = compile_with(auto.replace('"auto"', str(samples)))
assert json.loads(fits.stdout)["memory_bytes"] == found["memory_bytes"]
assert compile_with(auto.replace('"auto"', str(larger))).returncode == OUT_OF_MEMORY
