"""The document of a page: page.py PAGE prints it, a section, a block or a row a line."""

import json
import re
import sys


def read_page(path):
    with open(path, encoding="utf-8") as file:
        [text] = re.findall(r'<script type="application/json" id="data">(.*?)</script>',
                            file.read(), re.S)  # fmt: skip
    return json.loads(text)


def print_page(document):
    for section in document["sections"]:
        print(f"section: {section['title']}")
        for block in section["blocks"]:
            rows = block.get("rows", [])
            points = sum(len(series["x"]) for series in block.get("series", []))
            print(f"{block['type']}: {block.get('title') or block.get('text')}:"
                  f" {len(rows) or len(block.get('parts', [])) or points}")  # fmt: skip
            for row in rows:
                print("  " + " | ".join(map(str, row)))


if __name__ == "__main__":
    print_page(read_page(sys.argv[1]))
