"""Whole episodes in Gymnasium's CarRacing without its picture: every action, and everything that came of it."""

import drivers
import numpy as np
import wire

# Per world: name, what it is (old Gym's stream and rules, discrete actions, time limit or none, lap rule), and its
# episodes: a seed or None to go on in the stream, the most steps to take, the driver.
NONE = 10_000


def worlds():
    r = np.random.default_rng
    yield "random", {}, [(seed, 1000, drivers.random(r(seed))) for seed in (0, 1, 2**40 + 17)]
    yield "held", {}, [(seed, 1000, drivers.held(r(seed))) for seed in (2, 3, 4, 5)]
    yield "full gas until off the field", {}, [(seed, 1000, drivers.always(0, 1, 0)) for seed in (6, 7)]
    yield "nothing", {}, [(8, 200, drivers.always(0, 0, 0))]
    yield "locked brakes", {}, [(8, 100, drivers.always(0.5, 0.5, 1))]
    yield "donuts", {}, [(9, 1000, drivers.always(1, 1, 0)), (10, 600, drivers.always(-0.7, 0.6, 0))]
    yield "stop and go", {}, [(11, 1000, drivers.stop_and_go(r(11))), (12, 1000, drivers.stop_and_go(r(12)))]
    yield "swing", {}, [(13, 1000, drivers.swing(r(13))), (14, 700, drivers.swing(r(14)))]
    yield "wild", {}, [(15, 1000, drivers.wild(r(15)))]
    yield "laps", {"limit": NONE}, [(s, 2600, drivers.follow(r(s), 0.7)) for s in (0, 1, 2, 3, 4, 7)]
    yield "fast laps", {"limit": NONE}, [(s, 2000, drivers.follow(r(s))) for s in (2, 3, 4)]
    yield "the limit of 1000 steps", {}, [(16, 1000, drivers.follow(r(16), 1.5))]
    yield "a limit on the last step", {"limit": 57}, [(17, 57, drivers.held(r(17)))]
    consecutive = [drivers.held(r(s)) if s % 3 else drivers.follow(r(s), 0.8) for s in range(12)]
    yield "one stream", {}, [(18 if i == 0 else None, 1000, driver) for i, driver in enumerate(consecutive)]
    yield "no seed at all", {}, [(None, 150, drivers.held(r(20)))]
    yield "choices", {"discrete": True}, [(s, 1000, drivers.choices(r(s))) for s in (21, 22, 23)]
    yield "lap rule at once", {"lap": 0.0}, [(24, 5, drivers.always(0, 0, 0))]
    old = [(1, 1000, drivers.follow(r(1), 0.7)), (None, 1000, drivers.held(r(2))), (None, 300, drivers.random(r(3)))]
    yield "gym 0.15.3", {"old": True}, old


def state(world):
    car = world.car
    bodies = [car.hull, *car.wheels]
    wire.numbers([[*b.position, b.angle, *b.linearVelocity, b.angularVelocity] for b in bodies])
    wire.numbers([w.omega for w in car.wheels], [w.phase for w in car.wheels], [w.joint.angle for w in car.wheels])
    wire.numbers(world.tile_visited_count, world.reward, world.t)
    # How many tiles have lost their stripe, whoever touched them.
    wire.numbers(sum(int(tile.color[0]) == int(world.road_color[0]) for tile in world.road))


for name, kind, episodes in worlds():
    old, discrete, limit, lap = (kind.get(k, d) for k, d in [("old", 0), ("discrete", 0), ("limit", 1000), ("lap", 0.95)])
    # Old Gym's rules: no lap rule.
    world = wire.World(continuous=not discrete, lap_complete_percent=9.0 if old else lap)
    wire.text(name)
    wire.numbers(old, discrete, limit, lap, len(episodes))
    for seed, most, driver in episodes:
        wire.numbers(-1 if seed is None else seed)
        if old:
            world.reset_old(seed)
        else:
            world.reset(seed=seed)
        state(world)
        for step in range(most):
            action = driver(world, step)
            if discrete:
                wire.numbers(1, action)
            else:
                if not old:
                    action = action.astype(np.float32)
                wire.numbers(1, action)
            _, reward, terminated, truncated, _ = world.step(action)
            truncated = truncated or step + 1 >= limit  # as gymnasium.wrappers.TimeLimit
            state(world)
            wire.numbers(reward, terminated, truncated)
            if terminated or truncated:
                break
        wire.numbers(0)
wire.text("end")
wire.done()
