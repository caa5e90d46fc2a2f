"""Attention over 19,200 patches in NumPy, one thread: exp(q·k) pair by pair, ReLU, the hybrid (8, 7) estimate as it is
written, with all its features, and with its sums factored as ours are.

Reads what `cargo run -p foveate-agents --example attention -- --write FOLDER` left: a picture of 320x240, layers, random
directions. Prints JSON: CPU milliseconds of a whole decision up to the choice of 10 patches, and which were chosen.
"""

import os

for threads in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[threads] = "1"

import argparse
import json
import time
from pathlib import Path

import numpy as np

WIDTH, HEIGHT, PATCH, D, TOP = 320, 240, 2, 4, 10
ROWS = 64  # rows of the attention matrix at a time, 5 MB: all of it would be 1.5 GB


class Attention:
    def __init__(self, folder):
        floats = lambda name: np.fromfile(folder / name, "<f4")
        self.picture = np.fromfile(folder / "picture.u8", np.uint8).reshape(HEIGHT, WIDTH, 3)
        inputs = PATCH * PATCH * 3
        layers = floats("layers.f32").reshape(2, D * (inputs + 1))
        scale = np.float32(D**-0.25)
        # Query and key in one product, the scale of both folded in.
        self.w = np.concatenate([layer[: D * inputs].reshape(D, inputs) for layer in layers]).T * scale
        self.b = np.concatenate([layer[D * inputs :] for layer in layers]) * scale
        self.scores = np.empty((ROWS, (WIDTH // PATCH) * (HEIGHT // PATCH)), np.float32)
        self.omega, self.planes = floats("omega.f32").reshape(-1, D), floats("planes.f32").reshape(-1, D)

    def project(self):
        pixels = self.picture.astype(np.float32) * np.float32(1 / 255)
        patches = pixels.reshape(HEIGHT // PATCH, PATCH, WIDTH // PATCH, PATCH, 3).swapaxes(1, 2)
        both = patches.reshape(-1, PATCH * PATCH * 3) @ self.w + self.b
        return both[:, :D], both[:, D:]

    def choose(self, importance):
        best = np.argpartition(-importance, TOP)[:TOP]
        return best[np.argsort(-importance[best], kind="stable")]

    def pairs(self):
        q, k = self.project()
        importance = np.empty(len(q), np.float32)
        for start in range(0, len(q), ROWS):
            scores = np.matmul(q[start : start + ROWS], k.T, out=self.scores)
            np.exp(scores, out=scores)
            importance[start : start + ROWS] = scores.sum(1)
        return self.choose(importance)

    def softmax(self):
        q, k = self.project()
        importance = np.zeros(len(q), np.float32)
        for start in range(0, len(q), ROWS):
            scores = np.matmul(q[start : start + ROWS], k.T, out=self.scores)
            scores -= scores.max(1, keepdims=True)
            np.exp(scores, out=scores)
            importance += (1 / scores.sum(1)) @ scores
        return self.choose(importance)

    def relu(self):
        q, k = (np.maximum(z, 0) + np.float32(0.001) for z in self.project())
        return self.choose(q @ k.sum(0))

    def hybrid(self, explicit=True):
        q, k = self.project()
        m, n = len(self.omega), len(self.planes)

        def features(z):
            u, half = z @ self.omega.T, (z * z).sum(1, keepdims=True) / 2
            waves = np.concatenate([np.cos(u), np.sin(u)], 1) * np.exp(half)
            powers = np.exp(u - half)
            sides = np.where(z @ self.planes.T < 0, np.float32(-1), np.float32(1))
            return waves / np.float32(m**0.5), powers / np.float32(m**0.5), sides

        if explicit:
            # Equations 8 and 9 to the letter: [L, 192] for queries and for keys.
            def product(z, sign):
                waves, powers, sides = features(z)
                sides = sides / np.float32((2 * n) ** 0.5)
                outer = lambda f: (f[:, :, None] * sides[:, None, :]).reshape(len(z), -1)
                root = np.float32(0.5**0.5)
                return np.concatenate([waves * root, powers * root, outer(waves), sign * outer(powers)], 1)

            return self.choose(product(q, np.float32(1)) @ product(k, np.float32(-1)).sum(0))

        waves, powers, sides = features(k)
        alone, apart = waves.sum(0) / 2, powers.sum(0) / 2
        waves_sides, powers_sides = waves.T @ sides / (2 * n), powers.T @ sides / (2 * n)
        waves, powers, sides = features(q)
        importance = waves @ alone + powers @ apart
        importance += (waves * (sides @ waves_sides.T)).sum(1) - (powers * (sides @ powers_sides.T)).sum(1)
        return self.choose(importance)

    def hybrid_factored(self):
        return self.hybrid(explicit=False)


def measure(act, seconds):
    best, chosen = float("inf"), act().tolist()
    start = time.process_time_ns()
    while True:
        before = time.process_time_ns()
        act()
        now = time.process_time_ns()
        best = min(best, now - before)
        if now - start > seconds * 1e9:
            return {"ms": best / 1e6, "best": chosen}


def main():
    arguments = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    arguments.add_argument("folder", type=Path)
    arguments.add_argument("--seconds", type=float, default=1.0, help="CPU time to spend on each")
    given = arguments.parse_args()
    attention = Attention(given.folder)
    result = {name: measure(getattr(attention, name), given.seconds) for name in ("softmax", "pairs", "relu", "hybrid", "hybrid_factored")}
    print(json.dumps(result | {"numpy": np.__version__}))


if __name__ == "__main__":
    main()
