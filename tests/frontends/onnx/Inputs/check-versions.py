"""Checks the first versions of operators that the importer's tables have.

Before operator set 7 many operators broadcast by attributes, or had other ones. A
row may begin at a version below 7 only where there is a schema of it with the
inputs, outputs and attributes of the one that is in force at 7. The hint
`consumed_inputs`, which inputs may be overwritten, does not count.
"""

import collections

import onnx

from operators import read_versions

FULL = 7
# ONNX Runtime has them in ONNX's domain, of any version.
LENT = {"LayerNormalization", "SimplifiedLayerNormalization"}


def signature(schema):
    def describe(values):
        return [(value.name, value.option) for value in values]

    attributes = [
        (a.name, a.type, a.required, str(a.default_value))
        for a in schema.attributes.values()
        if a.name != "consumed_inputs"
    ]
    return describe(schema.inputs), describe(schema.outputs), sorted(attributes, key=str)


def main():
    schemas = collections.defaultdict(dict)
    for schema in onnx.defs.get_all_schemas_with_history():
        if schema.domain == "" and schema.since_version <= FULL:
            schemas[schema.name][schema.since_version] = schema
    for op, since in read_versions():
        if since >= FULL or op in LENT:
            continue
        known = schemas[op]
        later = [v for v in known if v >= since]
        if since not in known:
            print(f"{op}: no schema of version {since}")
        elif any(signature(known[v]) != signature(known[since]) for v in later):
            print(f"{op}: the schema of version {since} is not that of {FULL}")
    print("checked")


main()
