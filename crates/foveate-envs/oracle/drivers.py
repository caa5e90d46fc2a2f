"""Ways to drive a CarRacing: each driver is called with the world and the step and gives an action."""

import math

import numpy as np


def random(rng):
    return lambda world, step: rng.uniform([-1, 0, 0], [1, 1, 1])


def held(rng, low=5, high=40):
    """Random actions, each held for a while; brakes are rare, or the car would hardly move."""
    state = {"left": 0, "action": None}

    def act(world, step):
        if state["left"] == 0:
            state["left"] = int(rng.integers(low, high))
            brake = rng.uniform(0, 1) if rng.uniform() < 0.2 else 0.0
            state["action"] = np.array([rng.uniform(-1, 1), rng.uniform(0, 1), brake])
        state["left"] -= 1
        return state["action"]

    return act


def always(*action):
    return lambda world, step: np.array(action, dtype=float)


def stop_and_go(rng):
    """Full gas, then locked brakes, then nothing, with the wheel turned now and then."""

    def act(world, step):
        phase = step % 110
        steer = math.sin(step / 37) if step > 200 else 0.0
        return np.array([steer, float(phase < 60), 1.0 if 60 <= phase < 85 else 0.3 * (phase >= 100)])

    return act


def wild(rng):
    """Far outside the bounds of the action space."""
    return lambda world, step: rng.uniform([-5, -3, -1], [5, 4, 2]) if step % 7 else np.array([-0.0, -0.0, -0.0])


def swing(rng):
    """Full lock to full lock, which drives the joints into their limits."""
    period = int(rng.integers(10, 40))
    return lambda world, step: np.array([1.0 if step // period % 2 else -1.0, 0.4, 0.0])


def follow(rng, pace=1.0):
    """Follows the track, slower where it bends."""
    state = {"at": 0}

    def act(world, step):
        track, hull = world.track, world.car.hull
        x, y = hull.position
        n = len(track)
        at = min(
            (k % n for k in range(state["at"] - 5, state["at"] + 25)),
            key=lambda k: (track[k][2] - x) ** 2 + (track[k][3] - y) ** 2,
        )
        state["at"] = at
        speed = math.hypot(*hull.linearVelocity)
        ahead = track[(at + 3 + int(speed * 0.08)) % n]
        # The hull points along +y at angle 0.
        wanted = math.atan2(-(ahead[2] - x), ahead[3] - y)
        off = (wanted - hull.angle + math.pi) % (2 * math.pi) - math.pi
        far = track[(at + 6 + int(speed * 0.35)) % n][1]
        bend = abs((far - track[at][1] + math.pi) % (2 * math.pi) - math.pi)
        limit = pace * max(22.0, 62.0 - 45.0 * bend)
        gas = 0.0 if speed > limit else min(1.0, (limit - speed) * 0.08)
        brake = min(0.8, (speed - limit) * 0.05) if speed > limit + 4 else 0.0
        return np.array([max(-1.0, min(1.0, -2.5 * off)), gas, brake])

    return act


def choices(rng, low=3, high=25):
    """Discrete actions, each held for a while."""
    state = {"left": 0, "action": 0}

    def act(world, step):
        if state["left"] == 0:
            state["left"] = int(rng.integers(low, high))
            state["action"] = int(rng.choice(5, p=[0.1, 0.15, 0.15, 0.5, 0.1]))
        state["left"] -= 1
        return state["action"]

    return act
