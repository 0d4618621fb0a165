"""A browser that a test drives: Chromium's protocol of its developer tools, over pipes."""

import contextlib
import json
import os
import select
import subprocess
import time


class Gone(Exception):
    """Why the browser does not answer."""


class Browser:
    """One page. What it says on its console is kept."""

    def __init__(self, program, profile, flags=()):
        read_end, self.to = os.pipe()
        self.back, write_end = os.pipe()
        command = [program, "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run",
                   "--remote-debugging-pipe", f"--user-data-dir={profile}", *flags,
                   "about:blank"]  # fmt: skip

        def place():
            # The protocol's descriptors are 3 and 4.
            ends = os.dup(read_end), os.dup(write_end)
            os.dup2(ends[0], 3)
            os.dup2(ends[1], 4)

        self.process = subprocess.Popen(command, preexec_fn=place, close_fds=False,
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)  # fmt: skip
        os.close(read_end)
        os.close(write_end)
        self.number, self.rest, self.console, self.session = 0, b"", [], None
        targets = self.call("Target.getTargets")["targetInfos"]
        page = next(target for target in targets if target["type"] == "page")
        self.session = self.call("Target.attachToTarget", targetId=page["targetId"],
                                 flatten=True)["sessionId"]  # fmt: skip
        for domain in ("Page", "Runtime", "Log"):
            self.call(domain + ".enable")

    def receive(self, end):
        while b"\0" not in self.rest:
            ready, _, _ = select.select([self.back], [], [], max(end - time.monotonic(), 0))
            data = os.read(self.back, 1 << 16) if ready else b""
            if not data:
                raise Gone("no answer of the browser")
            self.rest += data
        message, self.rest = self.rest.split(b"\0", 1)
        return json.loads(message)

    def note(self, message):
        method, found = message.get("method"), message.get("params", {})
        if method == "Runtime.consoleAPICalled":
            values = [str(each.get("value", each.get("description"))) for each in found["args"]]
            self.console.append((found["type"], " ".join(values)))
        elif method == "Runtime.exceptionThrown":
            self.console.append(("exception", json.dumps(found["exceptionDetails"])))
        elif method == "Log.entryAdded":
            self.console.append((found["entry"]["level"], found["entry"]["text"]))

    def call(self, method, seconds=120, **params):
        self.number += 1
        message = {"id": self.number, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.to, json.dumps(message).encode() + b"\0")
        end = time.monotonic() + seconds
        while True:
            answer = self.receive(end)
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise Gone(f"{method}: {answer['error']}")
                return answer["result"]
            self.note(answer)

    def evaluate(self, script):
        """The value of a script, once its promise is kept."""
        done = self.call("Runtime.evaluate", expression=script, awaitPromise=True,
                         returnByValue=True)  # fmt: skip
        if "exceptionDetails" in done:
            raise Gone(json.dumps(done["exceptionDetails"])[:500])
        return done["result"].get("value")

    def wait_until(self, script, seconds=120):
        end = time.monotonic() + seconds
        while not self.evaluate(script):
            if time.monotonic() > end:
                raise Gone(f"no end of waiting for: {script}")
            time.sleep(0.2)

    def close(self):
        with contextlib.suppress(Gone, OSError):
            self.call("Browser.close", seconds=10)
        self.process.kill()
        self.process.wait()
        os.close(self.to)
        os.close(self.back)
