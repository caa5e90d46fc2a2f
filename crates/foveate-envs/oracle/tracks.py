"""Tracks and colours of Gymnasium's CarRacing for many seeds, as they are right after a reset."""

import wire

SEEDS = list(range(100)) + [2**31 - 1, 2**32, 2**32 + 5, 2**40 + 17]
OLD_SEEDS = list(range(100))


def send(world):
    wire.numbers(len(world.track), [list(point) for point in world.track])
    wire.numbers(len(world.road_poly))
    for corners, color in world.road_poly:
        wire.numbers([list(corner) for corner in corners], list(color))
    wire.numbers(world.bg_color, world.grass_color)


def run(kind, seeds, resets):
    """Every kind is one text, then per reset: seed or -1, whether to draw colours anew, and what came out."""
    wire.text(kind)
    wire.numbers(len(seeds) * len(resets))
    world = wire.World(domain_randomize=kind == "randomize")
    for seed in seeds:
        for first, randomize in resets:
            given = seed if first else None
            wire.numbers(-1 if given is None else given, randomize)
            if kind == "gym0153":
                world.reset_old(given)
            else:
                world.reset(seed=given, options={"randomize": bool(randomize)})
            send(world)


run("gymnasium", SEEDS, [(True, 1), (False, 1)])
run("gym0153", OLD_SEEDS, [(True, 1), (False, 1)])
# The second of four keeps its colours, and with seed None the very first shows those of the construction.
run("randomize", [None], [(False, 0)])
run("randomize", range(40), [(True, 1), (False, 0), (False, 1), (False, 1)])
wire.text("end")
wire.done()
