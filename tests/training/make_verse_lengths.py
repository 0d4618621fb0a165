"""Writes fixtures/verse_lengths.json: how many verses of the King James Bible have each length in bytes.

The text is that of Debian's package bible-kjv-text, as examples/train-text fetches it.
"""

import collections
import json
import os
import subprocess
import tempfile

PATH = os.path.join(os.path.dirname(os.path.abspath(__file__)), "fixtures/verse_lengths.json")


def main():
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["apt-get", "download", "-qq", "bible-kjv", "bible-kjv-text"], cwd=folder, check=True)
        for package in os.listdir(folder):
            subprocess.run(["dpkg", "-x", package, "."], cwd=folder, check=True)
        bible = [folder + "/usr/bin/bible", "-p", folder + "/usr/lib/", "-f"]
        lines = subprocess.check_output([*bible, "gen1:1-rev22:21"]).splitlines()
    # Without "Ge1:1 ".
    lengths = collections.Counter(len(line.split(b" ", 1)[1]) for line in lines)
    with open(PATH, "w", encoding="utf-8") as file:
        json.dump(dict(sorted(lengths.items())), file, separators=(",", ":"))
        file.write("\n")


if __name__ == "__main__":
    main()
