"""CPU time of the reference worlds on the actions of a scripted driver.

usage: world.py FOLDER CHAMPION.safetensors

Drives three episodes in Gymnasium: two laps of a driver that follows the track, and a worse drive that is off the road at
times. Writes FOLDER/actions_SEED.jsonl (one action a line, as 32-bit floats) for each, and plays the same actions again
for the clock: as Gymnasium is, which draws a picture in every step; and with nothing drawn in `step`. The returns of all
must be equal to the bit. EnvPool's own CarRacing has other tracks for its seeds, so it is driven by the champion, which
sees its pictures; then the same actions are played again in the same worlds for the clock.

Prints one JSON object: steps, and per reference the CPU seconds of its `step` calls alone, one thread, the fastest of
PASSES. Returns are printed too, so that whoever replays the same actions can check that it drove the same episodes.
"""

import json
import math
import os
import sys
import time

os.environ["SDL_VIDEODRIVER"] = "dummy"
for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"

import gymnasium  # noqa: E402  (after the thread counts)
import numpy as np  # noqa: E402
from attention_agent_forward import NumpyAgent, read_safetensors, to_action  # noqa: E402

EPISODES = [("lap", 0), ("lap", 1), ("worse", 2)]
STEPS_AT_MOST = 1000
PASSES = 2
# Worlds of EnvPool that are stepped together, on one thread: fewer calls from Python.
POOL = 8


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


def world(drawing):
    env = gymnasium.make("CarRacing-v3", disable_env_checker=True)
    if not drawing:
        nothing = np.zeros(env.observation_space.shape, env.observation_space.dtype)
        env.unwrapped._render = lambda mode: nothing
    return env


def drive(kind, seed):
    """Drives one episode; gives its actions and its return. The driver sees no picture, so none is drawn."""
    env = world(drawing=False)
    env.reset(seed=seed)
    rng = np.random.default_rng(seed)
    actions, total, sway = [], 0.0, 0.0
    for t in range(STEPS_AT_MOST):
        action = follow_track(env)
        if kind == "worse":
            if t % 10 == 0:
                sway = rng.uniform(-0.6, 0.6)
            action[0] = np.clip(action[0] + sway, -1, 1)
        actions.append(action)
        _, reward, terminated, truncated, _ = env.step(action)
        total += reward
        if terminated or truncated:
            break
    env.close()
    return actions, float(total)


def replay(seed, actions, drawing):
    """Plays recorded actions; gives the return and the CPU seconds of all steps."""
    env = world(drawing)
    env.reset(seed=seed)
    total = 0.0
    start = time.process_time()
    for action in actions:
        total += env.step(action)[1]
    cpu = time.process_time() - start
    env.close()
    return float(total), cpu


def gymnasium_cpu(episodes, drawing):
    """CPU seconds of all episodes, in the fastest pass."""
    best = math.inf
    for _ in range(PASSES):
        cpu = 0.0
        for seed, actions, expected in episodes:
            total, seconds = replay(seed, actions, drawing)
            assert total == expected, f"seed {seed}, drawing {drawing}: a return of {total}, {expected} before"
            cpu += seconds
        best = min(best, cpu)
    return best


def envpool_world():
    import envpool

    return envpool.make("CarRacing-v3", env_type="gymnasium", num_envs=POOL, num_threads=1, seed=1)


def envpool(weights):
    """CPU seconds of EnvPool's own CarRacing, steps and the mean return of its worlds; None where it is missing."""
    try:
        env = envpool_world()
    except ImportError:
        return None
    agents = [NumpyAgent(weights) for _ in range(POOL)]
    frames, _ = env.reset()
    actions, rewards = [], []
    for _ in range(STEPS_AT_MOST):
        action = to_action(np.stack([agent.act(frame) for agent, frame in zip(agents, frames)]))
        frames, reward, terminated, truncated, _ = env.step(action)
        actions.append(action)
        rewards.append(reward)
        # Until the first of them is over, so that none begins anew.
        if (terminated | truncated).any():
            break
    env.close()
    best = math.inf
    for _ in range(PASSES):
        env = envpool_world()
        env.reset()
        start = time.process_time()
        again = [env.step(action)[1] for action in actions]
        best = min(best, time.process_time() - start)
        env.close()
        assert np.array_equal(again, rewards), "EnvPool does not repeat itself"
    return {"steps": POOL * len(actions), "cpu_s": best, "return": float(np.sum(rewards) / POOL)}


def main():
    folder, champion = sys.argv[1:]
    recorded, episodes = [], []
    for kind, seed in EPISODES:
        actions, total = drive(kind, seed)
        with open(os.path.join(folder, f"actions_{seed}.jsonl"), "w") as out:
            for action in actions:
                out.write(json.dumps([float(a) for a in action]) + "\n")
        recorded.append((seed, actions, total))
        episodes.append({"seed": seed, "kind": kind, "steps": len(actions), "return": total})
    print(
        json.dumps(
            {
                "steps": sum(len(actions) for _, actions, _ in recorded),
                "gymnasium_cpu_s": gymnasium_cpu(recorded, drawing=True),
                "gymnasium_not_drawing_cpu_s": gymnasium_cpu(recorded, drawing=False),
                "envpool": envpool(read_safetensors(champion)),
                "episodes": episodes,
                "versions": {"gymnasium": gymnasium.__version__, "numpy": np.__version__},
            }
        )
    )


main()
