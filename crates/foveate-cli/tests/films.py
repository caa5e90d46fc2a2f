"""Decodes films with Pillow and OpenCV; prints for each its size, its frames, and what happens in its two pictures.

A picture's `least` is the smallest standard deviation of a frame, 0 for a blank one; `changed` is how many pixels at
most differ clearly from the first frame.
"""

import json
import sys

import cv2
import numpy as np
from PIL import Image, ImageSequence

# Where the pictures lie in a frame, as shares of its size: columns, rows.
PICTURES = {"world": ((0.02, 0.59), (0.09, 0.88)), "agent": ((0.64, 0.98), (0.09, 0.78))}


def frames(path):
    if path.endswith(".gif"):
        return [np.asarray(frame.convert("RGB")) for frame in ImageSequence.Iterator(Image.open(path))]
    film, found = cv2.VideoCapture(path), []
    while True:
        more, frame = film.read()
        if not more:
            return found
        found.append(frame[..., ::-1])


def told(path):
    found = frames(path)
    height, width = found[0].shape[:2]
    film = {"width": width, "height": height, "frames": len(found)}
    for name, (columns, rows) in PICTURES.items():
        cut = [
            frame[int(rows[0] * height) : int(rows[1] * height), int(columns[0] * width) : int(columns[1] * width)]
            for frame in found
        ]
        clear = [np.abs(frame.astype(int) - cut[0]).max(axis=2) > 40 for frame in cut]
        film[name] = {"least": min(float(frame.std()) for frame in cut), "changed": max(int(c.sum()) for c in clear)}
    return film


print(json.dumps([told(path) for path in sys.argv[1:]]))
