"""Runs the rows of pointwise.py, families.py, fused.py, quantized.py, narrow.py and mixed.py.

  run.py [TITLE...]
"""

import sys

from harness import Tally
from numerics import families, fused, mixed, narrow, pointwise, quantized
from numerics.rows import check


def main(titles):
    tally = Tally()
    for module in (pointwise, families):
        for title, rows in module.models():
            if not titles or title in titles:
                check(tally, title, rows)
    for module in (fused, quantized, narrow):
        for title, rows, kind in module.models():
            if not titles or title in titles:
                check(tally, title, rows, kind)
    for title, rows in mixed.models():
        if not titles or title in titles:
            mixed.check(tally, title, rows)
    tally.close()


if __name__ == "__main__":
    main(sys.argv[1:])
