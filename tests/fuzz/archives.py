"""Malformed archives of PyTorch: archives.py [--count N] [--import]

N truncations and N flips of each of a few small archives and N changes of their JSON,
seeded, and attacks made by hand. Whatever the bytes are, tcc ends with 3 or 4 and a
plain line; a flip or a change may also hit what means nothing. --import runs the
readers alone (tcc-import), of which a sanitized build takes less time.
"""

import argparse
import functools
import glob
import json
import os
import tempfile
import warnings

import numpy as np
from frontends.archives.run import FIXTURES
from fuzz import attacks, malformed, mutants
from harness import Tally

REFUSED = {3, 4}
MUTATED = ("digits", "branches", "in_place", "flow", "counter")


def check_attacks(tally, name, made, check_model):
    """Each of them is refused."""
    check = functools.partial(check_model, codes=REFUSED)
    for i, (label, data) in enumerate(made):
        with tempfile.TemporaryDirectory() as folder:
            message = check(data, folder)
        tally.check(f"{name} {i}: {label}", message is None, message)


def changed_json(path, generator):
    """A program of which one JSON entry is changed."""
    entries = attacks.read(path)
    name = generator.choice([name for name in entries if name.endswith(".json")])
    changed = mutants.mutate(json.loads(entries[name]), generator)
    return attacks.pack(attacks.within(entries | {name: json.dumps(changed).encode()}))


def check_changes(tally, path, count, check):
    """What is still a program may have inputs that the flags no longer fit."""
    check = functools.partial(check, codes=REFUSED | {0, 2})
    damaged = malformed.mutations(path, changed_json, count)
    malformed.check_all(tally, f"{os.path.basename(path)} JSON", check, damaged)


def check_mutations(tally, name, data, count, check):
    kept = functools.partial(check, codes=REFUSED | {0})
    cut = functools.partial(check, codes=REFUSED)
    for mutate, check in ((malformed.truncated, cut), (malformed.flipped, kept)):
        damaged = malformed.mutations(data, mutate, count)
        # What is left of very short files is no archive, and so no ONNX model.
        malformed.check_all(tally, f"{name} {mutate.__name__}", check, damaged)


def main(count, compiles):
    warnings.filterwarnings("ignore", "Duplicate name")
    tally = Tally()
    check = functools.partial(malformed.check_model, name="model.pt2", compiles=compiles)
    program = attacks.read(f"{FIXTURES}/digits.pt2")
    script = attacks.read(f"{FIXTURES}/activations.traced.pt")
    for name, made in (
        ("zip", attacks.zip_attacks(program)), ("program", attacks.program_attacks(program)),
        ("made program", attacks.made_attacks()), ("zip of a script", attacks.zip_attacks(script)),
        ("script", attacks.script_attacks(script)), ("old formats", attacks.old_formats()),
    ):  # fmt: skip
        check_attacks(tally, name, made, check)
    for path in sorted(glob.glob(f"{FIXTURES}/*.pt*")):
        name = os.path.basename(path)
        if name.split(".")[0] not in MUTATED:
            continue
        flags = np.load(f"{FIXTURES}/{name.split('.')[0]}.npz")["flags"]
        shaped = functools.partial(check, flags=flags)
        with open(path, "rb") as stream:
            check_mutations(tally, name, stream.read(), count, shaped)
        if path.endswith(".pt2"):
            check_changes(tally, path, count, shaped)
    tally.close()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--import", action="store_true", dest="imports")
    given = parser.parse_args()
    main(given.count, compiles=not given.imports)
