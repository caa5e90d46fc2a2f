"""CPU time of a step of MiniGrid's worlds with its observation, in the package `minigrid`.

usage: mini_grid.py FOLDER

Plays episodes with random actions, mostly forward and turns, and writes FOLDER/WORLD.txt for each world, an episode a
line: its seed, then its actions. Then plays the actions again for the clock, in two ways: through `gymnasium.make`, with
the wrappers that it adds, and the package's class without them. EnvPool, where it is installed, plays worlds of its own seeds
with actions drawn alike, POOL at a time on one thread; worlds that end begin anew within its steps.

Prints one JSON object: by world the number of steps; per way the CPU seconds of its `step` calls alone, one thread, the
fastest of PASSES; and for every episode its return and a sum over all bytes of all its observations, each times its place
and that of its step. The results of both ways must be equal. `envpool` has its own steps and CPU seconds, or is null.
"""

import json
import math
import os
import pathlib
import sys
import time

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"

import gymnasium  # noqa: E402  (after the thread counts)
import minigrid  # noqa: E402, F401  (registers the worlds)
import numpy as np  # noqa: E402

STEPS = 6000
PASSES = 3
# Worlds of EnvPool, and steps of each.
POOL, POOL_STEPS = 64, 3000
# Ours and the package's names.
WORLDS = {
    "door-key-8x8": "MiniGrid-DoorKey-8x8-v0",
    "four-rooms": "MiniGrid-FourRooms-v0",
    "lava-crossing-9x9-2": "MiniGrid-LavaCrossingS9N2-v0",
    "empty-random-5x5": "MiniGrid-Empty-Random-5x5-v0",
}
# left, right, forward, pick up, drop, toggle, done
CHANCES = [0.15, 0.15, 0.45, 0.1, 0.02, 0.12, 0.01]


def drive(env):
    """Episodes of at least STEPS steps altogether: seeds and actions."""
    draws, episodes, steps = np.random.default_rng(1), [], 0
    while steps < STEPS:
        seed, actions, over = len(episodes), [], False
        env.reset(seed=seed)
        while not over:
            actions.append(int(draws.choice(7, p=CHANCES)))
            _, _, terminated, truncated, _ = env.step(actions[-1])
            over = terminated or truncated
        episodes.append((seed, actions))
        steps += len(actions)
    return episodes


def show(env, seed, actions):
    """The return of an episode, and the sum over all that it showed."""
    env.reset(seed=seed)
    total, shown = 0.0, 0
    for t, action in enumerate(actions):
        observation, reward, _, _, _ = env.step(action)
        codes = observation["image"].ravel().astype(np.int64)
        total += reward
        shown += (t + 1) * int(codes @ np.arange(1, len(codes) + 1))
    return {"return": float(total), "shown": shown}


def replay(env, seed, actions):
    """CPU seconds of all steps of an episode."""
    env.reset(seed=seed)
    start = time.process_time_ns()
    for action in actions:
        env.step(action)
    return (time.process_time_ns() - start) / 1e9


def pool(package_name):
    """Steps and CPU seconds of EnvPool's own world; None where it is missing."""
    try:
        import envpool
    except ImportError:
        return None
    env = envpool.make(package_name, env_type="gymnasium", num_envs=POOL, num_threads=1, seed=1)
    env.reset()
    actions = np.random.default_rng(1).choice(7, p=CHANCES, size=(POOL_STEPS, POOL))
    best = math.inf
    for _ in range(PASSES):
        start = time.process_time_ns()
        for now in actions:
            env.step(now)
        best = min(best, (time.process_time_ns() - start) / 1e9)
    env.close()
    return {"steps": actions.size, "cpu_s": best}


def main():
    folder, result = pathlib.Path(sys.argv[1]), {}
    for name, package_name in WORLDS.items():
        made = gymnasium.make(package_name)
        ways = {"gymnasium": made, "class": made.unwrapped}
        episodes = drive(made)
        lines = "".join(f"{seed} {' '.join(map(str, actions))}\n" for seed, actions in episodes)
        (folder / f"{name}.txt").write_text(lines)
        found = [[show(env, *episode) for episode in episodes] for env in ways.values()]
        assert found[0] == found[1], f"{name}: the wrappers change the results"
        best = dict.fromkeys(ways, math.inf)
        # One pass of each after the other, so that a disturbance does not hit one alone.
        for _ in range(PASSES):
            for way, env in ways.items():
                best[way] = min(best[way], sum(replay(env, *episode) for episode in episodes))
        result[name] = {
            "steps": sum(len(actions) for _, actions in episodes),
            **{f"{way}_cpu_s": cpu for way, cpu in best.items()},
            "episodes": found[0],
            "envpool": pool(package_name),
        }
    print(json.dumps(result))


if __name__ == "__main__":
    main()
