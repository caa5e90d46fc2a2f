"""Plays Gymnasium's CarRacing-v3 in several ways and dumps scenes beside the frames it drew.

Usage: fast_frames.py OUT KIND:SEED:STEPS[:EVERY] ...

KIND is one of random, held, gas, zero, driver, donut, stopgo, away, colors. All frames of the first second
are written, then every EVERY-th (default 9); steps in between are played without drawing.

Layout, little endian: per run a name (u16 length, UTF-8), u32 quads, quads x 8 f64 corners, 9 f64 colours
(road, field, grass), then per frame the byte 1, quads bytes of paint (0-2 road stripe, 3 white, 4 red),
f64 t, hull, 4 wheels, f32 joint angle, f64 score, 96*96*3 bytes; the byte 0 ends a run. A body is 8 f32
(position, angle, sin, cos, velocity, spin); a wheel a body, then f64 phase and f64 omega.
"""

import math
import struct
import sys

import numpy as np
from gymnasium.envs.box2d.car_racing import CarRacing


def body_bytes(body):
    (x, y), (vx, vy), q = body.position, body.linearVelocity, body.transform.q
    return struct.pack("<8f", x, y, body.angle, q.s, q.c, vx, vy, body.angularVelocity)


def paints(env):
    tiles = iter(env.road)
    out = bytearray()
    for _, color in env.road_poly:
        if isinstance(color, tuple):
            out.append(3 if color == (255, 255, 255) else 4)
        else:
            tile = next(tiles)
            touched = np.array_equal(np.asarray(color), np.asarray(env.road_color))
            out.append(0 if touched else tile.idx % 3)
    return bytes(out)


def driver(env, gas_speed):
    x, y = env.car.hull.position
    points = np.array([(p[2], p[3]) for p in env.track])
    nearest = int(np.argmin(((points - (x, y)) ** 2).sum(axis=1)))
    tx, ty = points[(nearest + 5) % len(points)]
    want = math.atan2(-(tx - x), ty - y)
    error = (want - env.car.hull.angle + math.pi) % (2 * math.pi) - math.pi
    speed = math.hypot(*env.car.hull.linearVelocity)
    return [-2.0 * error, 1.0 if speed < gas_speed else 0.0, 0.0 if speed < gas_speed + 12 else 0.3]


def action(kind, env, step, rng, held):
    if kind in ("driver", "colors"):
        return driver(env, 35.0 if step < 400 else 55.0)
    if kind == "random":
        return [rng.uniform(-1, 1), rng.uniform(0, 1), rng.uniform(0, 1)]
    if kind == "held":
        if step % 20 == 0:
            held[:] = [rng.uniform(-1, 1), rng.uniform(0, 1), rng.uniform(0, 0.3)]
        return held
    if kind == "gas":
        return [0.0, 1.0, 0.0]
    if kind == "zero":
        return [0.0, 0.0, 0.0]
    if kind == "donut":
        return [1.0, 1.0, 0.0]
    if kind == "stopgo":
        return [0.3 * math.sin(step / 20), 1.0, 0.0] if step // 40 % 2 == 0 else [0.2, 0.0, 1.0]
    if kind == "away":
        # Out of the field: turn to the nearest border, then on and on.
        x, y = env.car.hull.position
        want = math.atan2(-x, y * 0.01)
        error = (want - env.car.hull.angle + math.pi) % (2 * math.pi) - math.pi
        return [-1.0 * error, 1.0 if abs(error) < 0.4 else 0.2, 0.0]
    raise SystemExit(f"no kind {kind!r}")


def run(out, kind, seed, steps, every):
    env = CarRacing(domain_randomize=kind == "colors")
    draw = env._render
    wanted, shown = True, 0.0

    def render(mode):
        nonlocal shown
        shown = env.reward  # the text shows the total before the 0.1 of the step
        return draw(mode) if wanted else None

    env._render = render
    rng = np.random.default_rng(seed + 77)
    held = [0.0, 0.0, 0.0]
    frame, _ = env.reset(seed=seed)
    name = f"{kind}:{seed}".encode()
    out.write(struct.pack("<H", len(name)) + name)
    out.write(struct.pack("<I", len(env.road_poly)))
    for corners, _ in env.road_poly:
        out.write(struct.pack("<8d", *[v for c in corners for v in c]))
    for color in (env.road_color, env.bg_color, env.grass_color):
        out.write(struct.pack("<3d", *[float(v) for v in color]))
    for step in range(steps + 1):
        if wanted:
            car = env.car
            out.write(b"\x01" + paints(env) + struct.pack("<d", env.t) + body_bytes(car.hull))
            for w in car.wheels:
                out.write(body_bytes(w) + struct.pack("<2d", w.phase, w.omega))
            out.write(struct.pack("<fd", car.wheels[0].joint.angle, shown))
            out.write(np.ascontiguousarray(frame, dtype=np.uint8).tobytes())
        if step == steps:
            break
        wanted = step < 52 or (step + 1) % every == 0
        act = np.array(action(kind, env, step, rng, held), dtype=np.float32)
        frame, _, terminated, _, _ = env.step(act)
        if terminated and kind != "away":
            break
    out.write(b"\x00")


def main():
    with open(sys.argv[1], "wb") as out:
        for spec in sys.argv[2:]:
            kind, seed, steps, *every = spec.split(":")
            run(out, kind, int(seed), int(steps), int(every[0]) if every else 9)


main()
