"""Replays the exec program that `tcc --emit=exec` prints, and knows nothing of how
it was planned.

Memory is modelled byte range by byte range: a command that writes a buffer takes its
range of the arena from whoever had it, a command that reads one must find it still
there. Values are terms, of ops and what they were computed from, so two programs
that end with equal terms compute the same bits, whatever they keep or compute again.
What is started is done at once, and nothing may touch its buffers until lane 0 waited for
it. The parts of a bucket of variables are buffers of their own, and all of them the bucket.
"""

import collections
import hashlib
import math
import re

ALIGNMENT = 64

Buffer = collections.namedtuple("Buffer", "storage index bytes offset key")
View = collections.namedtuple("View", "base place")
Kernel = collections.namedtuple("Kernel", "lines in_place")
Replay = collections.namedtuple("Replay", "arena bound live launches results problems")


def term(*parts):
    return hashlib.blake2b("\0".join(map(str, parts)).encode(), digest_size=12).hexdigest()


class Program:
    """The text, taken apart: kernels and the lines of entries, by name."""

    def __init__(self, text):
        self.kernels, self.entries = {}, {}
        self.maps = dict(re.findall(r"^(#\w+) = (.+)$", text, re.M))
        for match in re.finditer(r"^  exec\.(kernel|entry) @(\w+)(.*?)\n  }$", text, re.M | re.S):
            kind, name, body = match.groups()
            if kind == "entry":
                self.entries[name] = body.split("\n")
                continue
            # Two programs number equal maps differently.
            text = re.sub(r"#map\d*", lambda found: self.maps[found[0]], body)
            lines = [line.strip() for line in text.split("\n")]
            pairs = re.findall(r"array<i64: (\d+), (\d+)>", re.search(r"graph\.fused.*", body)[0])
            self.kernels[name] = Kernel(lines, {(int(a), int(b)) for a, b in pairs})


# Ops that make an element of the element at the same place, and those that make the
# rows of a row kernel of its rows, which are read before they are written.
POINTWISE = set(
    "abs acos acosh add and asin asinh atan atanh bitcast cast ceil clip compare cos cosh div "
    "elu erf exp floor gelu gelu_tanh gelu_tanh_gradient hard_sigmoid hard_swish is_inf is_nan "
    "leaky_relu log log1p max min mish mod mul neg normal_cdf not or pow reciprocal relu rem "
    "reshape round rsqrt select shift_left shift_right sigmoid sign silu sin sinh "
    "softplus sqrt sub tan tanh xor".split()
)
ROWS = {"arg_reduce", "broadcast", "layer_norm", "log_softmax", "reduce", "rms_norm", "softmax"}


def find_misplaced(kernel):
    """The op that reads an input which is written over at another place, or None."""
    operands, arguments, kind = [], [], None
    for line in kernel.lines:
        if found := re.search(r"graph\.fused <(\w+)>", line):
            kind = found[1]
        elif kind and line.startswith("^bb0("):
            arguments = re.findall(r"%\w+", line)
        elif kind and (found := re.match(r"(%\w+)\S* = graph\.(\w+)(.*?) : ", line)):
            operands.append((found[1], found[2], re.findall(r"%\w+", found[3])))
    for _, position in kernel.in_place:
        derived = {arguments[position]}
        for result, op, read in operands:
            places = [i for i, name in enumerate(read) if name in derived]
            if not places:
                continue
            isolated = op.startswith("scatter") or kind == "scan"
            if not (op in POINTWISE or kind == "row" and op in ROWS or isolated and places == [0]):
                return op
            derived.add(result)
    return None


def fold(results, values):
    """The numbers that a map's results are where its symbols have the values."""
    symbols = {f"s{i}": value for i, value in enumerate(values)}
    return [
        eval(result.replace("floordiv", "//").replace("mod", "%"), {}, symbols)
        for result in results.split(", ")
    ]


def bind(text, values):
    """An op's text in a kernel of several sizes as one of these sizes has it."""

    def bind_type(found):
        extents = "".join(f"{extent}x" for extent in fold(found[2], values))
        return f"tensor<{extents}{found[1]}>"

    def bind_map(found):
        return f"-> ({', '.join(map(str, fold(found[1], values)))})"

    any_map = r"affine_map<\(\)\[[^]]*\] -> \((.*?)\)>"
    text = re.sub(rf"tensor<(?:[0-9?]+x)*(\w+), {any_map}>", bind_type, text)
    return re.sub(any_map, bind_map, text)


def count_elements(text):
    """An op's text with numbers of elements for shapes, if its tensors have one shape or one
    element: in a kernel for any number of elements it has no other."""
    shapes = {found for found in re.findall(r"tensor<([0-9?x]*)[a-z]", text) if found.strip("1x")}
    if len(shapes) > 1:
        return text

    def count(found):
        extents = [int(extent) for extent in found[1].split("x") if extent]
        return f"{math.prod(extents)} {found[2]}"

    return re.sub(r"tensor<((?:\d+x)*)([a-z]\w*)>", count, text)


def compute(kernel, inputs, sizes):
    """The terms of a kernel's results. `sizes` are those of a kernel that is for several.
    Reshapes move nothing."""
    values, arguments, is_inside = {}, [], False
    for line in kernel.lines:
        names = re.findall(r"%[\w#]+", line)
        if line.startswith("^bb0(") and not is_inside:
            arguments = names
        elif "graph.fused" in line:
            # The block's own arguments follow on a line of their own, if any.
            inside = re.search(r"graph\.fused <\w+> \((.*?)\)", line)[1].split(", ")
            outer = dict(zip(arguments, inputs))
            read = [outer[name] for name in inside if name]
            is_inside = True
        elif line.startswith("^bb0("):
            values.update(zip(names, read))
        elif line.startswith("graph.yield"):
            return [values[name] for name in names]
        elif is_inside and " = " in line:
            results, text = line.split(" = ", 1)
            operands = re.findall(r"%\w+(?:#\d+)?", text)
            if text.startswith("graph.reshape"):
                value = values[operands[0]]
            else:
                text = count_elements(bind(text, sizes))
                value = term(re.sub(r"%\w+(?:#\d+)?", lambda m: values[m[0]], text))
            name, _, count = results.partition(":")
            values[name] = value
            for i in range(int(count or 0)):
                values[f"{name}#{i}"] = term(value, i)
    raise ValueError("a kernel without a yield")


class Walk:
    """One entry point."""

    def __init__(self, program, name):
        self.program, self.name = program, name
        self.buffers, self.values, self.problems = {}, {}, []
        self.computed, self.spans, self.used = {}, {}, []
        self.parts, self.started = {}, {}
        self.position = self.launches = self.arena = 0
        self.lines = program.entries[name]
        header = self.lines[0]
        number = lambda key: int((re.search(key + r" = (\d+)", header) or [0, 0])[1])
        self.scratch_bytes, self.bound = number("scratch_bytes"), number("scratch_bound")

    def run(self):
        self.walk(1, len(self.lines))
        live = collections.Counter()
        for begin, end, size in self.used + list(self.spans.values()):
            live[begin] += size
            live[end + 1] -= size
        total = peak = 0
        for position in sorted(live):
            total += live[position]
            peak = max(peak, total)
        results = {
            key: value
            for key, value in self.values.items()
            if key[0] in ("output", "variable", "state")
        }
        return Replay(
            self.scratch_bytes, self.bound, peak, self.launches, results, self.problems
        )

    def fail(self, message):
        self.problems.append(f"@{self.name}, command {self.position}: {message}")

    # --- Memory ---

    def declare(self, line):
        found = re.match(
            r"(%\w+) = exec\.buffer (\w+)(?: (\d+))? bytes .*? bound (\d+)"
            r"(?: offset (\d+))?( next)?( in_place)?",
            line,
        )
        name, storage, index, size, offset, is_next, in_place = found.groups()
        size = -(-int(size) // ALIGNMENT) * ALIGNMENT
        if storage == "scratch":
            key = ("scratch", name)
            if int(offset) + size > self.scratch_bytes or int(offset) % ALIGNMENT:
                self.fail(f"{name} does not lie in the arena")
        else:
            key = (storage, int(index or 0), bool(is_next and not in_place))
        self.buffers[name] = Buffer(storage, index, size, int(offset or 0), key)
        if storage not in ("scratch", "output"):
            self.values.setdefault(key, term(*key))

    def declare_view(self, line):
        name, base, place = re.match(r"(%\w+) = exec\.view (%\w+) at (.*?) bytes", line).groups()
        place = self.program.maps.get(place, place)
        whole, offset = self.buffers[base], re.search(r"-> \((\d+)\)", place)
        if not offset or not self.has_parts(base):
            self.buffers[name] = View(base, place)
            return
        key = (*whole.key, int(offset[1]))
        if whole.storage == "scratch":
            size = int(re.search(r" bound (\d+)", line)[1])
            if key[-1] + size > whole.bytes:
                self.fail(f"{name} does not lie in {base}")
            offset = whole.offset + key[-1]
            self.buffers[name] = whole._replace(bytes=size, offset=offset, key=key)
            return
        self.buffers[name] = whole._replace(offset=key[-1], key=key)
        self.parts.setdefault(whole.key, []).append(key)
        self.values.setdefault(key, term(*key))

    def has_parts(self, base):
        """Whether its views are buffers of their own: of a variable, and of scratch that no
        command uses as a whole."""
        whole = self.buffers[base]
        if isinstance(whole, View) or whole.storage != "scratch":
            return not isinstance(whole, View) and whole.storage == "variable"
        used = re.compile(re.escape(base) + r"\b")
        declares = re.compile(r"\s*(%\w+) = exec\.(buffer|view) ")
        return not any(used.search(line) for line in self.lines if not declares.match(line))

    def extend(self, buffer):
        """Scratch is live while a part of it is."""
        whole = buffer.key[:2]
        bytes_of_all = self.buffers[whole[1]].bytes
        begin, _, size = self.spans.get(whole, (self.position, 0, bytes_of_all))
        self.spans[whole] = (begin, self.position, size)

    def check_started(self, name, *keys):
        for moved in self.started.values():
            if moved.intersection(keys):
                self.fail(f"{name} is used while it is moved")

    def start(self, line):
        """Between ranks."""
        token, what, source, target, rest = re.match(
            r"(%\w+) = exec\.start_(\w+) (%\w+) to (%\w+)(.*)", line
        ).groups()
        buffers = [self.resolve(name)[0] for name in (source, target)]
        read, written = (self.parts.get(buffer.key, [buffer.key]) for buffer in buffers)
        if len(read) == len(written) == 1:
            self.write(target, term(what, self.read(source)))
        else:
            if read != written:
                self.fail(f"{line[:60]} moves a bucket")
            self.check_started(target, *read, *written)
            for key in written:
                self.values[key] = term(what, *(self.values[part] for part in read), key)
        self.started[token] = {*read, *written}

    def wait(self, line):
        """Of lane 0; what is started on others waits for it."""
        if "lane = " not in line:
            self.started.pop(re.search(r"%\w+", line)[0], None)

    def resolve(self, name):
        """The buffer of a name, and where in it: "" if it is all of it."""
        place = ""
        while isinstance(self.buffers[name], View):
            place = self.buffers[name].place + place
            name = self.buffers[name].base
        return self.buffers[name], place

    def read(self, name):
        buffer, place = self.resolve(name)
        self.check_started(name, buffer.key)
        if buffer.key not in self.values:
            self.fail(f"{name} is read, but its bytes hold something else")
            return term("nothing")
        if buffer.storage == "scratch":
            self.extend(buffer)
        value = self.values[buffer.key]
        return term(value, place) if place else value

    def overlaps(self, a, b):
        return (
            a.key != b.key
            and a.storage == b.storage == "scratch"
            and a.offset < b.offset + b.bytes
            and b.offset < a.offset + a.bytes
        )

    def write(self, name, value):
        buffer, place = self.resolve(name)
        self.check_started(name, buffer.key)
        if place:
            value = term(self.values.get(buffer.key, "nothing"), place, value)
        if buffer.storage == "scratch":
            if buffer.key not in self.values:
                self.take(buffer)
            self.extend(buffer)
        self.values[buffer.key] = value

    def take(self, buffer):
        for other in self.buffers.values():
            if isinstance(other, Buffer) and self.overlaps(buffer, other):
                self.forget(other)

    def forget(self, buffer):
        self.check_started(f"the place of {buffer.key}", buffer.key)
        if self.values.pop(buffer.key, None) is not None:
            if span := self.spans.pop(buffer.key[:2], None):
                self.used.append(span)

    # --- Commands ---

    def launch(self, line):
        found = re.match(r"exec\.launch @(\w+) ins\((.*?)\) outs\((.*?)\)", line)
        kernel = self.program.kernels[found[1]]
        if misplaced := find_misplaced(kernel):
            self.fail(f"{found[1]} writes over what its {misplaced} reads elsewhere")
        inputs, outputs = ([n for n in part.split(", ") if n] for part in found.groups()[1:])
        self.launches += 1
        for i, result in enumerate(outputs):
            target = self.resolve(result)[0]
            for j, name in enumerate(inputs):
                source = self.resolve(name)[0]
                if self.overlaps(source, target):
                    self.fail(f"{result} is written over {name}")
                if source.key == target.key and (i, j) not in kernel.in_place:
                    self.fail(f"{found[1]} does not work in place")
            for other in outputs[:i]:
                if self.overlaps(self.resolve(other)[0], target):
                    self.fail(f"{result} is written over {other}")
        values = tuple(self.read(name) for name in inputs)
        binding = re.search(r"bindings = (#map\d*)", line)
        sizes = ()
        if binding:
            text = self.program.maps[binding[1]]
            numbers = re.fullmatch(r"affine_map<\(\) -> \(([\d, ]+)\)>", text)
            if not numbers:
                raise ValueError(f"{line}: sizes that are not numbers: {text}")
            sizes = tuple(map(int, numbers[1].split(", ")))
        key = (found[1], sizes, values)
        if key not in self.computed:
            self.computed[key] = compute(kernel, values, sizes)
        for name, value in zip(outputs, self.computed[key]):
            self.write(name, value)

    def copy(self, line):
        source, target = re.match(r"exec\.copy (%\w+) to (%\w+)", line).groups()
        if self.overlaps(self.resolve(source)[0], self.resolve(target)[0]):
            self.fail("a copy onto itself")
        self.write(target, self.read(source))

    def find_end(self, start):
        depth = 0
        for i in range(start, len(self.lines)):
            line = self.lines[i].strip()
            if i > start and line.startswith("}"):
                depth -= 1
                if depth == 0:
                    return i
            if line.endswith("{") and not line.startswith("}"):
                depth += 1
            elif line.startswith("}") and line.endswith("{"):
                depth += 1
        raise ValueError("a block without an end")

    def leave(self, start, end):
        """What a block declared holds nothing after it."""
        for i in range(start, end):
            found = re.match(r"\s*(%\w+) = exec\.(?:buffer|view) ", self.lines[i])
            buffer = self.buffers.get(found[1]) if found else None
            if isinstance(buffer, Buffer) and buffer.storage == "scratch":
                self.forget(buffer)

    def branch(self, start):
        middle = self.find_end(start)
        end = self.find_end(middle)
        condition = self.read(re.search(r"%\w+", self.lines[start])[0])
        before = dict(self.values)
        self.walk(start + 1, middle)
        self.leave(start + 1, middle)
        then, self.values = self.values, before
        self.walk(middle + 1, end)
        self.leave(middle + 1, end)
        self.values = {
            key: value if then[key] == value else term(condition, then[key], value)
            for key, value in self.values.items()
            if key in then
        }
        return end

    def loop(self, start):
        end = self.find_end(start)
        condition = re.search(r" while (%\w+)", self.lines[start])
        for _ in range(2):
            if condition:
                self.read(condition[1])
            self.walk(start + 1, end)
            self.leave(start + 1, end)
        return end

    def walk(self, start, end):
        i = start
        while i < end:
            line = self.lines[i].strip()
            self.position += 1
            if " = exec.buffer" in line:
                self.declare(line)
            elif " = exec.view" in line:
                self.declare_view(line)
            elif " = exec.start_" in line:
                self.start(line)
            elif line.startswith("exec.wait"):
                self.wait(line)
            elif line.startswith("exec.launch"):
                self.launch(line)
            elif line.startswith("exec.copy"):
                self.copy(line)
            elif line.startswith("exec.read_size"):
                self.read(re.search(r"from (%\w+)", line)[1])
            elif line.startswith("exec.if"):
                i = self.branch(i)
            elif line.startswith("exec.loop"):
                i = self.loop(i)
            elif line and "exec.set_size" not in line and "exec.record_event" not in line:
                self.fail(f"unknown command: {line[:60]}")
            i += 1


def replay(text):
    """Of each entry point what a replay finds."""
    program = Program(text)
    return {name: Walk(program, name).run() for name in program.entries}
