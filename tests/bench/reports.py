"""Options of the benchmarks, and what they write."""

import argparse
import importlib.util
import json


def make_parser():
    parser = argparse.ArgumentParser()
    parser.add_argument("--models", default="")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json")
    parser.add_argument("--table")
    return parser


def read_options(titles, packages, seconds, **others):
    """With the peers that are installed, of those that have titles; a peer is in
    the package of its own name unless `packages` has another one. `others` are more
    options with their defaults."""
    parser = make_parser()
    for name, default in others.items():
        parser.add_argument(f"--{name}", default=default)
    every = [peer for peer in titles if not peer.startswith("tcc")]
    parser.add_argument("--peers", default=",".join(every))
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=seconds)
    options = parser.parse_args()
    named = [peer for peer in options.peers.split(",") if peer]
    if unknown := set(named) - set(every):
        parser.error(f"no peer is called '{unknown.pop()}'")
    options.peers = [p for p in named if is_installed(packages.get(p, p), titles[p])]
    return options


def is_installed(package, title):
    try:
        found = importlib.util.find_spec(package) is not None
    except ModuleNotFoundError:  # of a package that it is in
        found = False
    if not found:
        print(f"{title}: not available: the package {package} is not installed")
    return found


def markdown(header, lines):
    lines = [header, ["---"] * len(header), *lines]
    return "".join("| " + " | ".join(line) + " |\n" for line in lines)


def times(rows, titles, peers):
    """Markdown; a ratio above 1 says that tcc is faster."""
    header, lines = ["model", "threads", "tcc ms", "of peak"], []
    for peer in peers:
        header += [f"{titles[peer]} ms", "/ tcc"]
    for row in rows:
        share = row["gflop"] / row["tcc"] * 1e3 / row["peak_gflops"]
        mark = " (disturbed)" if row["disturbed"] else ""
        fields = [row["model"] + mark, str(row["threads"]), f"{row['tcc']:.2f}"]
        fields.append(f"{share:.0%}")
        for peer in peers:
            runs = peer in row
            fields += [f"{row[peer]:.2f}", f"{row[peer + '_ratio']:.2f}"] if runs else ["-", "-"]
        lines.append(fields)
    return markdown(header, lines)


def write(options, rows, table, **document):
    """The files that the options name."""
    if options.json:
        with open(options.json, "w") as stream:
            json.dump({"schema_version": 1, **document, "rows": rows}, stream, indent=1)
    if options.table:
        with open(options.table, "w") as stream:
            stream.write(table)
