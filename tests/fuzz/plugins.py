"""tcc --check-plugin on the plugins of the tests, good and hostile ones.

  plugins.py            with $TCC_BIN, whose build has them

Each ends with a documented exit code and says something in plain lines; under a sanitizer it
finds nothing.
"""

import glob
import os

from harness import BIN, Tally, run_tool

FOLDER = os.path.join(os.path.dirname(BIN), "tests/plugins")
CODES = {0, 1, 3, 4, 5}
GOOD = {"formulas", "kernels", "row_swish", "finished"}
ONLY_CPU = {"kernels"}


def main():
    tally = Tally()
    plugins = sorted(glob.glob(f"{FOLDER}/lib*.so"))
    tally.check("there are plugins", len(plugins) > len(GOOD), FOLDER)
    for path in plugins:
        name = os.path.basename(path)[len("lib") : -len(".so")]
        for target in ("cpu", "cuda"):
            run = run_tool("tcc", "--check-plugin", path, "--target", target)
            text = run.out + run.err
            is_plain = "Sanitizer" not in text and "runtime error" not in text
            is_good = name in GOOD and (target == "cpu" or name not in ONLY_CPU)
            expected = {0} if is_good else CODES
            tally.check(f"{name} on {target}", run.code in expected and is_plain and bool(text),
                        f"{run.code}: {text[:2000]}")  # fmt: skip
    tally.close()


if __name__ == "__main__":
    main()
