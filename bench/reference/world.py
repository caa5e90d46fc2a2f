"""CPU time of the reference worlds on the actions of a scripted driver.

usage: world.py FOLDER

Writes FOLDER/actions_SEED.jsonl (one action a line, as 32-bit floats) for each episode and prints one JSON object:
steps, and per reference the CPU seconds of its `step` calls alone, one thread. Returns are printed too, so that
whoever replays the same actions can check that it drove the same episode.
"""

import json
import math
import os
import sys
import time

os.environ["SDL_VIDEODRIVER"] = "dummy"
os.environ["OMP_NUM_THREADS"] = "1"

import gymnasium
import numpy as np

EPISODES = [("lap", 0), ("lap", 1), ("hold", 2)]
STEPS_AT_MOST = 1000


def follow_track(env, target_speed=55.0):
    """Steers for the point a few tiles ahead; brakes when too fast for the bend."""
    car, track = env.unwrapped.car, env.unwrapped.track
    x, y = car.hull.position
    nearest = min(range(len(track)), key=lambda i: (track[i][2] - x) ** 2 + (track[i][3] - y) ** 2)
    _, _, ahead_x, ahead_y = track[(nearest + 5) % len(track)]
    # The car's nose points along (-sin, cos) of its angle.
    wanted = math.atan2(-(ahead_x - x), ahead_y - y)
    off = (wanted - car.hull.angle + math.pi) % (2 * math.pi) - math.pi
    speed = math.hypot(*car.hull.linearVelocity)
    limit = target_speed * max(0.4, 1.0 - 1.2 * abs(off))
    gas = 0.5 if speed < limit else 0.0
    brake = 0.3 if speed > limit + 10 else 0.0
    return np.array([np.clip(-2.0 * off, -1, 1), gas, brake], dtype=np.float32)


def drive(kind, seed):
    """Drives one episode in Gymnasium; gives its actions, its return and the CPU seconds of `step`."""
    env = gymnasium.make("CarRacing-v3")
    env.reset(seed=seed)
    rng = np.random.default_rng(seed)
    actions, total, cpu = [], 0.0, 0.0
    held = np.zeros(3, np.float32)
    for t in range(STEPS_AT_MOST):
        if kind == "lap":
            action = follow_track(env)
        else:
            if t % 10 == 0:
                held = rng.uniform([-1, 0, 0], [1, 1, 0.2]).astype(np.float32)
            action = held
        actions.append(action)
        start = time.process_time()
        _, reward, terminated, truncated, _ = env.step(action)
        cpu += time.process_time() - start
        total += reward
        if terminated or truncated:
            break
    env.close()
    return actions, float(total), cpu


def envpool_cpu(batches):
    """CPU seconds of EnvPool's own CarRacing over the same number of steps with the same actions, one thread."""
    try:
        import envpool
    except ImportError:
        return None
    cpu = 0.0
    for seed, actions in batches:
        env = envpool.make("CarRacing-v3", env_type="gymnasium", num_envs=1, num_threads=1, seed=seed)
        env.reset()
        for action in actions:
            start = time.process_time()
            env.step(action[None])
            cpu += time.process_time() - start
        env.close()
    return cpu


def main():
    folder = sys.argv[1]
    steps, cpu, episodes, batches = 0, 0.0, [], []
    for kind, seed in EPISODES:
        actions, total, seconds = drive(kind, seed)
        with open(os.path.join(folder, f"actions_{seed}.jsonl"), "w") as out:
            for action in actions:
                out.write(json.dumps([float(a) for a in action]) + "\n")
        steps += len(actions)
        cpu += seconds
        episodes.append({"seed": seed, "kind": kind, "steps": len(actions), "return": total})
        batches.append((seed, actions))
    print(
        json.dumps(
            {
                "steps": steps,
                "gymnasium_cpu_s": cpu,
                "envpool_cpu_s": envpool_cpu(batches),
                "episodes": episodes,
                "versions": {"gymnasium": gymnasium.__version__, "numpy": np.__version__},
            }
        )
    )


main()
