"""The pages of `tcc --report` and of `tcc-run report` in Debian's chromium, at 400 and 1400 pixels:
nothing on the console, from no network; all pictures drawn and no label cut off, text with the
contrast that WCAG's AA asks for in both themes, sorting, filtering and the keyboard, names of models
that are markup. Without chromium this is not available."""

import html
import json
import os
import re
import shutil
import subprocess
import tempfile

import numpy as np
import onnx

from harness import ROOT, Tally, call

FIXTURES = os.path.join(ROOT, "tests/training/fixtures")
PROBE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "probe.js")
RECIPE = """
[loss]
kind = "{loss}"
[optimizer]
kind = "adamw"
[batch]
clip_norm = 1.0
"""
HOSTILE = "</script><script>document.title = 'owned'</script><img src=x onerror=\"document.title = 'owned'\"><!--"
WIDTHS = 400, 1400
MOST_BYTES = 1 << 20


def load(browser, work, text, width):
    """What the probe found on the page, and what is on the console."""
    page = os.path.join(work, "loaded.html")
    with open(PROBE, encoding="utf-8") as probe:
        script = f"<script>{probe.read()}</script></body>"
    with open(page, "w", encoding="utf-8") as stream:
        stream.write(text.replace("</body>", script))
    profile = tempfile.mkdtemp(dir=work)
    command = [browser, "--headless", "--no-sandbox", "--disable-gpu", "--dump-dom"]
    command += ["--enable-logging=stderr", "--virtual-time-budget=20000", f"--window-size={width},1200"]
    command += [f"--user-data-dir={profile}", f"file://{page}"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    found = re.search(r'<pre id="probe">(.*?)</pre>', done.stdout, re.S)
    console = [line for line in done.stderr.splitlines() if "CONSOLE" in line]
    return json.loads(html.unescape(found[1])) if found else None, console


class Pages:
    def __init__(self, tally, browser, work):
        self.tally, self.browser, self.work = tally, browser, work

    def path(self, name):
        return os.path.join(self.work, name)

    def write(self, name, text):
        with open(self.path(name), "w", encoding="utf-8") as stream:
            stream.write(text)
        return self.path(name)

    def read(self, name):
        with open(self.path(name), encoding="utf-8") as stream:
            return stream.read()

    def save_hostile(self):
        """gpt2_tiny, whose nodes and modules have markup in their names."""
        model = onnx.load(os.path.join(FIXTURES, "gpt2_tiny.onnx"))
        for i, node in enumerate(model.graph.node):
            node.name = f"{HOSTILE}{i}"
        onnx.save(model, self.path("hostile.onnx"))
        return self.path("hostile.onnx")

    def compile(self, name, model, loss, *flags):
        recipe = self.write(f"{name}.toml", RECIPE.format(loss=loss))
        call("tcc", model, f"--train={recipe}", "-q", f"--report={self.path(name)}.html", "-o",
             self.path(f"{name}.tcc"), *flags, target="cpu")  # fmt: skip
        return self.read(f"{name}.html")

    def train(self, name, *flags):
        digits = dict(np.load(os.path.join(FIXTURES, "digits.npz")))
        np.savez(self.path("digits.npz"), **digits)
        call("tcc-run", "train", self.path(f"{name}.tcc"), "--data", f"npz:{self.path('digits.npz')}",
             "--steps", 40, "--run", self.path("run"), "-q", *flags)  # fmt: skip
        call("tcc-run", "report", self.path("run"), "-o", self.path("run.html"))
        return self.read("run.html")

    def check(self, name, text, charts):
        outside = re.findall(r"(?:\bsrc|url|@import)\s*[=(]|https?://(?!www\.w3\.org/2000/svg)", text.split('id="data">')[0])
        self.tally.check(f"{name}: stands alone", not outside, str(outside))
        self.tally.check(f"{name}: size", len(text) < MOST_BYTES, str(len(text)))
        for width in WIDTHS:
            found, console = load(self.browser, self.work, text, width)
            where = f"{name} at {width}"
            self.tally.check(f"{where}: console", not console, str(console[:3]))
            if self.tally.check(f"{where}: probe", found is not None):
                self.check_found(where, found, charts)

    def check_found(self, where, found, charts):
        def check(what, ok, message=""):
            self.tally.check(f"{where}: {what}", bool(ok), str(message)[:400])

        check("contrast", found["texts"] > 100 and not found["contrast"], found["contrast"])
        check("pictures", len(found["charts"]) >= charts and all(each["drawn"] for each in found["charts"]), found["charts"])
        check("labels", not any(each["labels"] for each in found["charts"]), found["charts"])
        check("nothing is beside the page", found["overflow"] <= 0, found["overflow"])
        check("keyboard", found["mute"] == 0 and found["unreachable"] == 0, found)
        check("values", found["values"] > 0)
        order = found["sorted"]
        check("sorting", order["directions"] == ["descending", "ascending"] and order["largest"] != order["smallest"], order)
        rows, word = found["filtered"]["rows"], found["filtered"]["word"]
        check("filter", rows and all(word in row for row in rows) and found["none"] == 0, found["filtered"])
        check("theme", sorted(found["theme"][:2]) == ["Dark page", "Light page"] and found["theme"][2], found["theme"])
        check("no markup of names", found["markup"] == 0 and "owned" not in found["title"], found["title"])
        check("no network", not found["network"], found["network"])


def check_controls(pages, text):
    """What the probe is to notice is noticed."""

    def probe(changed):
        return load(pages.browser, pages.work, changed, WIDTHS[0])

    found, console = probe(text.replace("</body>", "<script>missing()</script></body>"))
    pages.tally.check("an error is noticed", bool(console))
    found, _ = probe(re.sub(r"--muted: [^;]*;", "--muted: light-dark(#a0a0a0, #555555);", text))
    pages.tally.check("low contrast is noticed", bool(found["contrast"]))
    found, _ = probe(text.replace(".sheet {", ".sheet { min-width: 900px;", 1))
    pages.tally.check("a wide page is noticed", found["overflow"] > 0)
    found, _ = probe(text.replace('class: "line"', 'class: "none"').replace('class: "area"', 'class: "none"'))
    pages.tally.check("an empty picture is noticed", not all(each["drawn"] for each in found["charts"]))
    found, _ = probe(text.replace("FRAME.height - 6", "FRAME.height + 9"))
    pages.tally.check("a label that is cut off is noticed", any(each["labels"] for each in found["charts"]))


def main():
    tally = Tally()
    browser = shutil.which("chromium")
    if not browser:
        print("not available: chromium (Debian's package of that name)")
        tally.skipped += 1
        tally.close()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as work:
        pages = Pages(tally, browser, work)
        compiled = pages.compile("hostile", pages.save_hostile(), "causal_lm", "--threads=1",
                                 "--memory-budget=370KiB")  # fmt: skip
        tally.check("hostile names are there", "owned" in compiled)
        pages.check("compiled", compiled, charts=2)
        pages.compile("digits", os.path.join(FIXTURES, "mlp_digits.onnx"), "cross_entropy")
        pages.check("run", pages.train("digits", "--diagnose"), charts=6)
        check_controls(pages, compiled)
    tally.close()


if __name__ == "__main__":
    main()
