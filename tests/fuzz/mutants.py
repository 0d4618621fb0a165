"""Changes of JSON that leave it JSON: values of other types, missing or repeated
members, numbers out of range, values in each other's places."""

import copy

VALUES = (
    None, True, -1, 0, 7, 1 << 31, 1 << 62, (1 << 64) - 1, 0.5, 1e300, "", "x", "\0", [],
    [[]], {}, {"as_int": -3}, {"as_none": True}, {"as_tensor": {"name": "x"}},
)  # fmt: skip


def places(value):
    """Each (list or object, key) within a value."""
    keys = value if isinstance(value, dict) else range(len(value))
    for key in keys:
        yield value, key
        if isinstance(value[key], (dict, list)):
            yield from places(value[key])


def replace(generator, parent, key, others):
    parent[key] = generator.choice(VALUES)


def remove(generator, parent, key, others):
    del parent[key]


def swap(generator, parent, key, others):
    other, place = generator.choice(others)
    parent[key], other[place] = copy.deepcopy(other[place]), copy.deepcopy(parent[key])


def shuffle(generator, parent, key, others):
    """The ranks and extents of a tensor, the arguments of a node."""
    if isinstance(parent[key], list):
        generator.shuffle(parent[key])
        parent[key] += parent[key][: generator.randrange(3)]
    else:
        replace(generator, parent, key, others)


def nudge(generator, parent, key, others):
    value = parent[key]
    if isinstance(value, int):
        parent[key] = generator.choice((-value, value + 1, value - 1, value << 32, ~value))
    else:
        replace(generator, parent, key, others)


CHANGES = (replace, remove, swap, shuffle, nudge)


def mutate(value, generator):
    """A changed copy."""
    value = copy.deepcopy(value)
    for _ in range(generator.choice((1, 1, 2))):
        found = list(places(value))
        # Leaves are most of a file: half of the changes are of what holds them.
        inner = [(p, k) for p, k in found if isinstance(p[k], (dict, list))]
        if not found:
            break
        parent, key = generator.choice(generator.choice((found, inner or found)))
        generator.choice(CHANGES)(generator, parent, key, found)
    return value
