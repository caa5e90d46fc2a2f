"""Measures what the score's digits leave in the corner of CarRacing-v3's picture.

Usage: score_cells.py src/car_racing/picture/exact/score_cells.bin

No letter form is stored. A string is laid out on the 1000 x 800 canvas by its digits' advances and pair kerning
(1/64 pixel, printed for `text.rs`); after the shrink a cell of 10.4 x 8.3 canvas pixels depends on the one or two
digits that touch it and on where they stand. The file holds, for each such case that the scores LOW..HIGH bring
forth, the five grey levels measured in rows 87 to 91: a little-endian u32 key, then five bytes; sorted by key.
"""

import struct
import sys

import numpy as np
import pygame

LOW, HIGH = -2000, 1100
CHARS = "0123456789-"
ADVANCE = {c: 13 if c == "-" else 23 for c in CHARS}
# First ink column after the pen, and the one after the last.
INK = {c: {"1": (3, 16), "2": (1, 21), "-": (1, 12)}.get(c, (1, 22)) for c in CHARS}
SPACE, ONE = 16384 * 1000 // 96, 16384


def kerning(font):
    """Pair kerning in 1/64 pixel, from the width of many repetitions."""
    n = 64
    table = {}
    for a in CHARS:
        for b in CHARS[:-1]:
            plain = n * (ADVANCE[a] + ADVANCE[b] + ADVANCE["-"])
            table[a + b] = font.size((a + b + "-") * n)[0] - plain
    return table


def layout(text, kern):
    """The digits and where their pens stand on the canvas."""
    pen, out = 0, []
    for i, c in enumerate(text):
        out.append((c, pen >> 6))
        pen += ADVANCE[c] * 64 + kern.get(text[i : i + 2], 0)
    left = 60 - (pen >> 6) // 2
    return [(c, x + left) for c, x in out]


def key(cell, placed):
    """The cell and the digits whose ink touches it."""
    lo, hi = cell * SPACE, (cell + 1) * SPACE
    touching = [(c, x) for c, x in placed if (x + INK[c][0]) * ONE < hi and (x + INK[c][1]) * ONE > lo]
    assert len(touching) <= 2
    out = cell
    for i in range(2):
        digit, x = (CHARS.index(touching[i][0]), touching[i][1] + 32) if i < len(touching) else (15, 0)
        out |= (digit | x << 4) << (4 + 14 * i)
        assert x < 1 << 10
    return out, bool(touching)


def main(path):
    pygame.font.init()
    font = pygame.font.Font(pygame.font.get_default_font(), 42)
    kern = kerning(font)
    for a in CHARS[:-1]:
        print([kern[a + b] for b in CHARS[:-1]])
    assert not any(kern["-" + b] for b in CHARS[:-1])
    cells = {}
    for text in sorted({f"{score:04.0f}" for score in range(LOW, HIGH + 1)} | {"-000"}):
        canvas = pygame.Surface((125, 800))
        image = font.render(text, True, (255, 255, 255), (0, 0, 0))
        box = image.get_rect()
        box.center = (60, 750.0)
        canvas.blit(image, box)
        small = pygame.transform.smoothscale(canvas, (12, 96))
        grey = pygame.surfarray.array3d(small)[:, :, 0].T
        assert not grey[:87].any() and not grey[92:].any()
        placed = layout(text, kern)
        for cell in range(12):
            k, touched = key(cell, placed)
            value = bytes(grey[87:92, cell])
            assert touched or not any(value)
            if touched:
                assert cells.setdefault(k, value) == value, (text, cell)
    with open(path, "wb") as out:
        for k in sorted(cells):
            out.write(struct.pack("<I", k) + cells[k])
    print(len(cells), "cells")


if __name__ == "__main__":
    main(sys.argv[1])
