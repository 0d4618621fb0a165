"""Runs the rows of pointwise.py, families.py and mixed.py.

run.py [--target cpu|cuda] [TITLE...]: GPU code is run by the emulator.
"""

import argparse

from harness import Tally
from numerics import families, mixed, pointwise, rows


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--target", choices=list(rows.CODES), default="cpu")
    parser.add_argument("titles", nargs="*")
    arguments = parser.parse_args()
    tally = Tally()
    for module, check in (
        (pointwise, rows.check),
        (families, rows.check),
        (mixed, mixed.check),
    ):
        for title, model in module.models():
            if not arguments.titles or title in arguments.titles:
                check(tally, title, model, arguments.target)
    tally.close()


if __name__ == "__main__":
    main()
