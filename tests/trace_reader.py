"""A strict reader of traces that tcc-run writes: what a trace may not have is an error."""

import collections
import json

NANOSECONDS = 1000  # of a microsecond, which times are decimals of
UPDATES, UPLOADS = 1001, 1000  # tracks; lanes have their numbers
Slice = collections.namedtuple("Slice", "name begin end args depth parent")
POINTS = {"s": 0, "t": 1, "f": 2}


class Malformed(Exception):
    pass


def need(ok, what):
    if not ok:
        raise Malformed(what)


def nanoseconds(microseconds):
    need(isinstance(microseconds, (int, float)), f"a time is {microseconds!r}")
    whole = round(microseconds * NANOSECONDS)
    need(whole >= 0, f"a time is {microseconds}")
    need(abs(microseconds * NANOSECONDS - whole) < 1e-2, f"{microseconds} has too many places")
    return whole


class Track:
    """What a thread did: slices in the order of their begins, those within others after them."""

    def __init__(self, name):
        self.name, self.slices = name, []

    def add(self, event):
        begin = nanoseconds(event["ts"])
        row = begin, begin + nanoseconds(event["dur"]), event["name"], event.get("args", {})
        self.slices.append(row)

    def nest(self):
        """Slices lie within one another or beside one another; no command in another."""
        order = sorted(range(len(self.slices)),
                       key=lambda i: (self.slices[i][0], -self.slices[i][1], i))  # fmt: skip
        open_slices, nested = [], []
        for i in order:
            begin, end, name, args = self.slices[i]
            while open_slices and open_slices[-1].end <= begin:
                open_slices.pop()
            parent = open_slices[-1] if open_slices else None
            need(not parent or end <= parent.end,
                 f"{self.name}: '{name}' at {begin} ends after '{parent and parent.name}'")  # fmt: skip
            need(not (parent and "command" in args and "command" in parent.args),
                 f"{self.name}: '{name}' at {begin} is within '{parent and parent.name}'")  # fmt: skip
            row = Slice(name, begin, end, args, len(open_slices), parent)
            nested.append(row)
            if end > begin:
                open_slices.append(row)
        self.slices = nested

    def commands(self):
        return [row for row in self.slices if "command" in row.args]

    def find(self, name):
        return [row for row in self.slices if row.name.startswith(name)]


class Trace:
    def __init__(self, path):
        with open(path, encoding="utf-8") as file:
            self.document = json.load(file)
        need(set(self.document) == {"traceEvents", "displayTimeUnit", "baseTimeNanoseconds",
                                    "distributedInfo", "everyKthUpdate", "lost"},
             f"the keys are {set(self.document)}")  # fmt: skip
        self.tracks, self.processes = {}, {}
        self.counters = collections.defaultdict(list)  # by process and name
        flows = collections.defaultdict(list)
        orders = {}
        for event in self.document["traceEvents"]:
            kind, place = event["ph"], (event["pid"], event.get("tid"))
            if kind == "M" and event["name"] == "process_name":
                need(event["pid"] not in self.processes, f"two names of process {event['pid']}")
                self.processes[event["pid"]] = event["args"]["name"]
            elif kind == "M" and event["name"] == "thread_name":
                need(place not in self.tracks, f"two names of track {place}")
                self.tracks[place] = Track(event["args"]["name"])
            elif kind == "M" and event["name"] == "thread_sort_index":
                orders[place] = event["args"]["sort_index"]
            elif kind == "X":
                need(place in self.tracks, f"track {place} has no name yet")
                need(event["cat"], f"'{event['name']}' has no category")
                self.tracks[place].add(event)
            elif kind == "C":
                value = event["args"]["value"]
                self.counters[event["pid"], event["name"]].append((event["ts"], value))
            elif kind in POINTS:
                flows[event["id"]].append((nanoseconds(event["ts"]), POINTS[kind], place, event))
            else:
                raise Malformed(f"an event of kind {kind}")
        need({pid for pid, _ in self.tracks} == set(self.processes), "a process has no name")
        need(len(set(orders.items())) == len(self.tracks), "a track has no place")
        for track in self.tracks.values():
            track.nest()
        self.flows = {number: self.check_flow(number, points) for number, points in flows.items()}
        for name, values in self.counters.items():
            need(values == sorted(values, key=lambda row: row[0]), f"counter {name} goes back")

    def check_flow(self, number, points):
        """From one slice to others, never back in time; each point is in a slice."""
        kinds = [kind for _, kind, _, _ in points]
        need(kinds in ([0, 2], [0, 1, 2]), f"flow {number} is {kinds}")
        times = [time for time, _, _, _ in points]
        need(times == sorted(times), f"flow {number} goes back in time: {times}")
        for time, _, place, _ in points:
            ok = any(row.begin <= time <= row.end for row in self.tracks[place].slices)
            need(ok, f"flow {number} begins or ends nowhere: {place} {time}")
        return [place for _, _, place, _ in points]

    def lanes(self, process=0):
        return [track for (pid, tid), track in sorted(self.tracks.items())
                if pid == process and tid < UPLOADS]  # fmt: skip

    def track(self, number, process=0):
        return self.tracks.get((process, number))

    def workers(self, process=0):
        return [track for (pid, tid), track in sorted(self.tracks.items())
                if pid == process and tid > UPDATES + 1]  # fmt: skip

    def updates(self, process=0):
        return self.track(UPDATES, process).find("update ")
