"""Draws examples/read_text/picture.png; needs Pillow and the DejaVu fonts."""

import os

from PIL import Image, ImageDraw, ImageFont

LINES = ["ahead of time", "one small runtime", "2026 words in a picture"]
FONT = "/usr/share/fonts/truetype/dejavu/DejaVuSans.ttf"
SIZE, LEFT, PITCH = 30, 24, 56

if __name__ == "__main__":
    image = Image.new("L", (440, PITCH * len(LINES) + 24), 255)
    draw, font = ImageDraw.Draw(image), ImageFont.truetype(FONT, SIZE)
    for i, line in enumerate(LINES):
        draw.text((LEFT, 24 + PITCH * i), line, font=font, fill=20)
    here = os.path.dirname(os.path.abspath(__file__))
    image.save(os.path.join(here, "picture.png"), optimize=True)
