"""Episodes in Gymnasium's CarRacing with its picture: every action and the frame it led to."""

import drivers
import numpy as np
import wire


def worlds():
    """Per world: name, options, and episodes: seed or None, whether to draw colours anew, most steps, driver."""
    r = np.random.default_rng
    yield "laps", {}, [(0, 1, 700, drivers.follow(r(0), 0.8)), (None, 1, 250, drivers.follow(r(1)))]
    yield "held", {}, [(2, 1, 400, drivers.held(r(2)))]
    yield "full gas until off the field", {}, [(s, 1, 1000, drivers.always(0, 1, 0)) for s in (6,)]
    yield "nothing", {}, [(8, 1, 130, drivers.always(0, 0, 0))]
    yield "donuts", {}, [(9, 1, 250, drivers.always(1, 1, 0))]
    yield "stop and go", {}, [(11, 1, 250, drivers.stop_and_go(r(11)))]
    yield "wild", {}, [(15, 1, 150, drivers.wild(r(15)))]
    colors = [(0, 1), (None, 0), (None, 1), (3, 1)]
    episodes = [(seed, fresh, 120, drivers.follow(r(4))) for seed, fresh in colors]
    yield "random colours", {"domain_randomize": True}, episodes
    yield "choices", {"continuous": False}, [(21, 1, 250, drivers.choices(r(21)))]


for name, options, episodes in worlds():
    world = wire.World(picture=True, **options)
    wire.text(name)
    wire.numbers(options.get("domain_randomize", False), options.get("continuous", True), len(episodes))
    for seed, fresh, most, driver in episodes:
        wire.numbers(-1 if seed is None else seed, fresh)
        frame, _ = world.reset(seed=seed, options={"randomize": bool(fresh)})
        wire.raw(frame.tobytes())
        for step in range(most):
            action = driver(world, step)
            if world.continuous:
                action = action.astype(np.float32)
            wire.numbers(1, action)
            frame, reward, terminated, _, _ = world.step(action)
            wire.numbers(reward, terminated)
            wire.raw(frame.tobytes())
            if terminated:
                break
        wire.numbers(0)
wire.text("end")
wire.done()
