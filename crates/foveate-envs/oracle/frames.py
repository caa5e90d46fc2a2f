"""Drives the real CarRacing-v3 and writes to stdout what a picture needs and the picture it made.

Usage: frames.py sparse|quick|full|bench

The stream is little endian, a record after another, each opened by one byte:

  E  episode: u32 quads; per quad 8 f64 (corners); 9 f64 (road, field, grass colour)
  F  frame: f64 t, score; hull and 4 wheels, each 8 f32 (x, y, angle, sin, cos, vx, vy, spin), wheels then also
     2 f64 (phase, omega); f32 steering angle; per quad one byte of paint (0..2 stripe, 3 white, 4 red);
     96*96*3 bytes of picture
  T  text: f64 score; 12*12 bytes, the grey levels of the picture's lower left corner over a black bar
  C  CPU seconds of the bench: u32 steps, f64 seconds; opened by a run of F records of the same steps
  Z  the end

Frames at all times come from the environment itself; steps whose picture nobody wants skip the drawing.
"""

import math
import struct
import sys
import time

import gymnasium as gym
import numpy as np
import pygame

OUT = sys.stdout.buffer


def body(b):
    q = b.transform.q
    p, v = b.position, b.linearVelocity
    return struct.pack("<8f", p[0], p[1], b.angle, q.s, q.c, v[0], v[1], b.angularVelocity)


def paint(color, road):
    """The byte that stands for a quad's colour."""
    if isinstance(color, tuple):
        return {(255, 255, 255): 3, (255, 0, 0): 4}[color]
    stripe = round((color[0] - road[0]) / 2.55)
    assert stripe in (0, 1, 2)
    return stripe


class Recorder:
    """An environment that writes its scene whenever a picture is wanted."""

    def __init__(self, dense=1, **kwargs):
        self.env = gym.make("CarRacing-v3", **kwargs).unwrapped
        self.render = self.env._render
        self.env._render = self.draw
        self.wanted = True
        self.dense = dense
        self.frames = 0

    def reset(self, seed=None, options=None):
        self.fresh = True
        self.env.reset(seed=seed, options=options)
        self.a = np.zeros(3, np.float32)

    def header(self):
        e = self.env
        OUT.write(struct.pack("<cI", b"E", len(e.road_poly)))
        for quad, _ in e.road_poly:
            OUT.write(struct.pack("<8d", *(c for p in quad for c in p)))
        for color in (e.road_color, e.bg_color, e.grass_color):
            OUT.write(struct.pack("<3d", *(float(c) for c in color)))
        self.fresh = False

    def draw(self, mode):
        e = self.env
        if not self.wanted or "t" not in e.__dict__:
            return None
        if self.fresh:
            self.header()
        OUT.write(struct.pack("<cdd", b"F", e.t, e.reward))
        OUT.write(body(e.car.hull))
        for w in e.car.wheels:
            OUT.write(body(w) + struct.pack("<2d", w.phase, w.omega))
        OUT.write(struct.pack("<f", e.car.wheels[0].joint.angle))
        OUT.write(bytes(paint(c, e.road_color) for _, c in e.road_poly))
        frame = self.render("state_pixels")
        assert frame.shape == (96, 96, 3)
        OUT.write(frame.tobytes())
        self.frames += 1
        return frame

    def run(self, drive, steps, every, beyond=0):
        """Up to `steps` steps, each `every`-th with its picture; the first second more densely; `beyond` after the end."""
        ended = 0
        for i in range(steps):
            dense = i < 52 or ended > 0
            self.wanted = i % (self.dense if dense else every) == 0
            _, _, over, _, _ = self.env.step(np.asarray(drive(self, i), np.float32))
            ended += bool(over)
            if ended > beyond:
                break
        self.wanted = True


def hold(seed, every=20):
    rng = np.random.default_rng(seed)
    last = [np.zeros(3)]

    def drive(r, i):
        if i % every == 0:
            last[0] = rng.uniform([-1, 0, 0], [1, 1, 0.6])
        return last[0]

    return drive


def follow(r, i):
    """Steers at a point of the track ahead of the car, gas below a speed that bends allow."""
    e = r.env
    x, y = e.car.hull.position
    track = np.array([p[2:4] for p in e.track])
    near = int(np.argmin(((track - (x, y)) ** 2).sum(1)))
    tx, ty = track[(near + 6) % len(track)]
    want = math.atan2(-(tx - x), ty - y)
    err = (want - e.car.hull.angle + math.pi) % (2 * math.pi) - math.pi
    v = math.hypot(*e.car.hull.linearVelocity)
    goal = 45 if abs(err) < 0.15 else 28
    return [np.clip(-2.5 * err, -1, 1), 0.6 if v < goal else 0.0, 0.25 if v > goal + 12 else 0.0]


def score_text(score):
    """The score's corner of the picture, as the environment composes it."""
    surf = pygame.Surface((125, 800))
    font = pygame.font.Font(pygame.font.get_default_font(), 42)
    text = font.render(f"{score:04.0f}", True, (255, 255, 255), (0, 0, 0))
    box = text.get_rect()
    box.center = (60, 750.0)
    surf.blit(text, box)
    small = pygame.transform.smoothscale(surf, (12, 96))
    grey = pygame.surfarray.pixels3d(small)[:, 84:, 0].T
    OUT.write(struct.pack("<cd", b"T", score) + np.ascontiguousarray(grey).tobytes())


def texts(step):
    pygame.font.init()
    for score in range(-1300, 1101, step):
        score_text(float(score))
    for score in (-0.4, -0.5, 0.5, 1.5, 2.5, -1.5, 998.5, 999.5, -1999.0):
        score_text(score)


def bench():
    r = Recorder()
    for seed, drive in ((3, follow), (4, hold(4))):
        r.reset(seed=seed)
        r.run(drive, 700, 1)
    r.env._render = r.render
    r.env.reset(seed=3)
    cpu = time.process_time()
    for i in range(300):
        r.env.step(np.asarray(follow(r, i), np.float32))
    cpu = time.process_time() - cpu
    OUT.write(struct.pack("<cId", b"C", 300, cpu))


def frames(n, dense=1):
    """`n` thins the long drives, `dense` what is otherwise drawn entirely."""
    r = Recorder(dense)
    for seed in (0, 1, 2):
        r.reset(seed=seed)
        r.run(lambda *_: (0.1, 0.3, 0.0), 60, 1)
    r.reset(seed=0)
    r.run(follow, 2000, 4 * n)
    r.reset(seed=11)
    r.run(follow, 2000, 5 * n)
    for seed in (5, 6):
        r.reset(seed=seed)
        r.run(hold(seed), 800, 4 * n)
    r.reset(seed=7)
    r.run(lambda *_: (0.0, 1.0, 0.0), 900, 3 * n, beyond=60)
    r.reset(seed=8)
    r.run(lambda *_: (1.0, 1.0, 0.0), 500, 3 * n)
    r.reset(seed=9)
    r.run(lambda _, i: (-1.0, 1.0, 0.0) if i % 160 < 120 else (0.5, 0.0, 1.0), 500, 3 * n)
    r.reset(seed=10)
    r.run(lambda *_: (0.0, 0.0, 0.0), 60, 1)
    # Leaving the field backwards in time as it were: put outside, so that black shows on every side.
    for x, y, angle in ((340, 0, 0.3), (-340, 10, 2), (30, 345, -1), (320, -330, 4), (0, -335, math.pi / 2)):
        r.reset(seed=12)
        shift = np.array((x, y)) - r.env.car.hull.position
        for b in r.env.car.drawlist:
            b.position = (b.position[0] + shift[0], b.position[1] + shift[1])
        r.env.car.hull.angle = angle
        r.run(lambda *_: (0.3, 1.0, 0.0), 90, 2 * n, beyond=90)
    r = Recorder(dense, domain_randomize=True)
    for seed in (20, 21, 22, 23):
        r.reset(seed=seed)
        r.run(hold(seed), 300, 3 * n)
    r.reset()
    r.run(follow, 300, 3 * n)
    return r.frames


if __name__ == "__main__":
    kind = sys.argv[1]
    if kind == "bench":
        bench()
    else:
        frames(*{"sparse": (9, 5), "quick": (3,), "full": (1,)}[kind])
        texts({"sparse": 100, "quick": 7, "full": 1}[kind])
    OUT.write(b"Z")
    OUT.flush()
