"""check-memory.py PLAN PACKAGE: what tcc says of its plan and what tcc-run finds in the
package's commands agree with each other and with themselves."""

import json
import sys

plan, package = (json.load(open(path)) for path in sys.argv[1:])
memory = plan["memory"]
bounds = {entry["name"]: entry["arena_bound_bytes"] for entry in package["entries"]}
assert memory["curve"] == package["memory"]["curve"] and len(memory["curve"]) > 2
assert memory["recomputed"] == package["memory"]["recomputed"] != []
assert memory["fitted"] == package["memory"]["fitted"]
assert {point["entry"] for point in memory["fitted"]} >= {"train_step", "eval"}

arenas = {arena["entry"]: arena for arena in memory["arenas"]}
found = {arena["entry"]: arena for arena in package["memory"]["arenas"]}
assert "train_step" in arenas and set(arenas) <= set(found)
for name, arena in arenas.items():
    assert arena["peak_bytes"] == max(arena["live_bytes"]) == bounds[name], name
    sizes = [tensor["bytes"] for tensor in arena["tensors"]]
    assert sizes == sorted(sizes, reverse=True) and sum(sizes) <= bounds[name], name
    for tensor in arena["tensors"]:
        assert tensor["node"], name
        assert tensor["begin"] <= arena["peak_position"] <= tensor["end"], tensor
    for key in ("bytes", "peak_bytes"):
        assert arena[key] == found[name][key], (name, key)
    # The plan counts what is nested in commands, of which this model has none; the package
    # counts the events of lanes, too.
    if name.startswith("reduce_"):
        continue
    assert sorted(map(str, arena["tensors"])) == sorted(map(str, found[name]["tensors"])), name
step = arenas["train_step"]
assert 100 < step["positions"] and len(step["live_bytes"]) > 100
