"""The page of --report in Debian's chromium: nothing on its console, and all pictures
are drawn. Without chromium this is not available."""

import html
import json
import os
import re
import shutil
import subprocess
import tempfile
import xml.etree.ElementTree as ElementTree

from harness import ROOT, Tally, call

MODEL = os.path.join(ROOT, "tests/training/fixtures/gpt2_tiny.onnx")
RECIPE = """
[loss]
kind = "causal_lm"
[optimizer]
kind = "adamw"
[batch]
clip_norm = 1.0
"""
AREA, DOT = "153,204,255", "204,51,0"
# Draws each picture and says how many pixels it has of each colour.
COUNT = """<pre id="counts"></pre><script>
const counts = [];
const pictures = [...document.querySelectorAll("svg")];
pictures.forEach((picture, i) => {
  const image = new Image();
  image.onload = () => {
    const canvas = document.createElement("canvas");
    [canvas.width, canvas.height] = [image.width, image.height];
    const context = canvas.getContext("2d");
    context.drawImage(image, 0, 0);
    const data = context.getImageData(0, 0, image.width, image.height).data;
    counts[i] = {};
    for (let at = 0; at < data.length; at += 4) {
      const colour = data.slice(at, at + 3).join();
      counts[i][colour] = (counts[i][colour] || 0) + 1;
    }
    document.getElementById("counts").textContent = JSON.stringify(counts);
  };
  image.src = "data:image/svg+xml;base64," + btoa(picture.outerHTML);
});
</script>"""


def load(browser, work, text):
    """The page as chromium has it in the end, and what is on the console."""
    page = os.path.join(work, "loaded.html")
    with open(page, "w") as stream:
        stream.write(text)
    profile = tempfile.mkdtemp(dir=work)
    command = [browser, "--headless", "--no-sandbox", "--disable-gpu", "--dump-dom"]
    command += ["--enable-logging=stderr", "--virtual-time-budget=20000"]
    command += [f"--user-data-dir={profile}", f"file://{page}"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    return done.stdout, [line for line in done.stderr.splitlines() if "CONSOLE" in line]


def count_colours(browser, work, text):
    """Of each picture of the page."""
    dom, console = load(browser, work, text.replace("</body>", COUNT + "</body>"))
    found = re.search(r'<pre id="counts">(.*?)</pre>', dom, re.S)
    return json.loads(html.unescape(found[1]) or "[]"), console


def check_page(tally, browser, work):
    recipe, page = os.path.join(work, "r.toml"), os.path.join(work, "page.html")
    with open(recipe, "w") as stream:
        stream.write(RECIPE)
    flags = [f"--train={recipe}", "--threads=1", "--memory-budget=370KiB", "--check"]
    call("tcc", MODEL, *flags, "-q", f"--report={page}", target="cpu")
    with open(page) as stream:
        text = stream.read()
    pictures = re.findall(r"<svg.*?</svg>", text, re.S)
    for i, picture in enumerate(pictures):
        tally.check(f"picture {i} is XML", ElementTree.fromstring(picture) is not None)
    outside = re.findall(r"(?:src|href|url)\s*[=(]", text)
    tally.check("the page stands alone", not outside, str(outside))
    dom, console = load(browser, work, text)
    tally.check("nothing on the console", not console, str(console[:3]))
    tally.check("pictures are there", len(pictures) > 8 and dom.count("<svg") == len(pictures))
    colours, console = count_colours(browser, work, text)
    tally.check("all are drawn", len(colours) == len(pictures) and not console, str(console))
    for picture, counts in zip(pictures, colours, strict=False):
        # An area takes a good part of its picture, a dot some pixels.
        is_area = "<polygon" in picture
        drawn = counts.get(AREA if is_area else DOT, 0)
        tally.check("it is drawn", drawn > (5000 if is_area else 40), f"{drawn}: {picture[:300]}")
    check_control(tally, browser, work, text)


def check_control(tally, browser, work, text):
    """Both are noticed: a script that fails, and a picture without its area."""
    broken = text.replace("</body>", "<script>missing()</script></body>")
    tally.check("an error is noticed", bool(load(browser, work, broken)[1]))
    empty = re.sub(r"<polygon.*?/>", "", text, flags=re.S)
    counts = count_colours(browser, work, empty)[0]
    tally.check("a missing area is noticed", not any(AREA in each for each in counts))


def main():
    tally = Tally()
    browser = shutil.which("chromium")
    if not browser:
        print("not available: chromium (Debian's package of that name)")
        tally.skipped += 1
        tally.close()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as work:
        check_page(tally, browser, work)
    tally.close()


if __name__ == "__main__":
    main()
