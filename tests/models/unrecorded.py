"""A package whose decisions were not recorded is the same but for their log."""

import os
import struct

from harness import first_line, run_tool

HEADER, ENTRY, COUNT_AT = 64, "<IIQQ16s", 12
DECISIONS = 5
EMPTY_LOG = 2  # bytes of "[]"


def sections(path):
    """Kind, size and digest of each section, in order."""
    size = struct.calcsize(ENTRY)
    with open(path, "rb") as stream:
        header = stream.read(HEADER)
        (count,) = struct.unpack_from("<I", header, COUNT_AT)
        entries = [struct.unpack(ENTRY, stream.read(size)) for _ in range(count)]
    return [(kind, bytes, digest) for kind, _, _, bytes, digest in entries]


def check(tally, name, model, package, flags, work):
    """Compiles again what `package` was compiled from."""
    other = os.path.join(work, name + ".unrecorded.tcc")
    run = run_tool("tcc-unrecorded", model, "-o", other, "-q", *flags)
    if not tally.check(f"{name} unrecorded", run.code == 0, first_line(run)):
        return
    recorded, unrecorded = sections(package), sections(other)
    os.remove(other)
    log = [bytes for kind, bytes, _ in unrecorded if kind == DECISIONS]
    tally.check(f"{name}: no log", log == [EMPTY_LOG], str(log))
    same = [[row for row in rows if row[0] != DECISIONS] for rows in (recorded, unrecorded)]
    tally.check(f"{name}: the same but for the log", same[0] == same[1], f"{same}")
