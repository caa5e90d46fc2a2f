"""Pictures, and what Pillow and OpenCV make of them."""

import cv2
import numpy as np
from PIL import Image

from wire import done, numbers, raw

generator = np.random.default_rng(20)
sizes = [
    (640, 480, 96, 96),
    (320, 240, 96, 96),
    (160, 210, 84, 84),
    (160, 210, 96, 96),
    (96, 96, 64, 64),
    (96, 96, 48, 48),
    (90, 60, 30, 20),
    (96, 96, 96, 96),
    (20, 16, 96, 96),
    (33, 17, 33, 5),
    (33, 17, 7, 17),
    (1, 1, 3, 4),
    (5, 3, 1, 1),
]
listed = len(sizes)
for _ in range(60):
    sizes.append(tuple(int(n) for n in generator.integers(1, 130, 4)))
numbers(len(sizes))
for i, (width, height, to_width, to_height) in enumerate(sizes):
    # Noise, edges of full contrast, and flat areas with a little noise.
    rgb = generator.integers(0, 256, (height, width, 3), np.uint8)
    if i % 3 == 1:
        rgb = np.where(rgb < 128, 0, 255).astype(np.uint8)
    if i % 3 == 2:
        rgb = (200 + rgb % 4).astype(np.uint8)
    picture = Image.fromarray(rgb)
    resized = picture
    if i >= listed:
        # Pillow 13 goes along the columns first where the height shrinks much more; each pass by itself is the same.
        resized = resized.resize((to_width, height), Image.Resampling.BILINEAR)
    resized = np.asarray(resized.resize((to_width, to_height), Image.Resampling.BILINEAR))
    numbers(width, height, to_width, to_height)
    raw(rgb.tobytes())
    raw(resized.tobytes())
    raw(np.asarray(picture.convert("L")).tobytes())
    raw(cv2.cvtColor(rgb, cv2.COLOR_RGB2GRAY).tobytes())
    shrinks = to_width <= width and to_height <= height
    numbers(1 if shrinks else 0)
    if shrinks:
        raw(cv2.resize(rgb, (to_width, to_height), interpolation=cv2.INTER_AREA).tobytes())
done()
