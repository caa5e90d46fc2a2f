"""CarRacing in batches and one by one from Python: Foveate's package beside Gymnasium and EnvPool.

usage: package.py FOLDER        PYTHONPATH has the package `foveate`

Batches: WORLDS worlds on two threads (Gymnasium: one process for each world), the same actions for all, in turn and not at the
same time; Gymnasium and `exact`, whose steps are equal, also play the same number of them. Time is that of the wall and of the
processors, children included, of the `step` calls alone; the faster of PASSES passes.

One world: FOLDER/actions_SEED.jsonl, as world.py writes them, are played through `gymnasium.make("foveate/CarRacing-v3")`, through the
class and through the native module, and CartPoleSwingUpHarder, whose own step takes a fraction of a microsecond, for the overhead of a call.

Prints one JSON object.
"""

import json
import os
import resource
import sys
import time
from pathlib import Path

os.environ["SDL_VIDEODRIVER"] = "dummy"
for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"

import foveate  # noqa: E402
import gymnasium  # noqa: E402
import numpy as np  # noqa: E402
from foveate import envs  # noqa: E402

WORLDS = 8
STEPS = {"gymnasium": 400, "envpool": 400, "exact": 400, "fast": 1500, "classic": 1500}
PASSES = 3
SINGLE = 20000


def processors():
    """CPU seconds of this process and of its children, also those that still run."""
    own = resource.getrusage(resource.RUSAGE_SELF)
    total = own.ru_utime + own.ru_stime
    ticks = os.sysconf("SC_CLK_TCK")
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[1]) == os.getpid():
            total += (int(fields[11]) + int(fields[12])) / ticks
    return total


def made(name):
    """A batch, and how its actions are given."""
    if name == "gymnasium":
        return gymnasium.make_vec("CarRacing-v3", num_envs=WORLDS, vectorization_mode="async")
    if name == "envpool":
        import envpool

        return envpool.make("CarRacing-v3", env_type="gymnasium", num_envs=WORLDS, num_threads=2, seed=1)
    return gymnasium.make_vec("foveate/CarRacing-v3", num_envs=WORLDS, threads=2, picture=name)


def batch(name):
    """Steps a second by the wall and by the processors."""
    env = made(name)
    if name == "envpool":
        env.reset()
    else:
        env.reset(seed=1)
    draw = np.random.default_rng(1)
    best = {"wall": 0.0, "cpu": 0.0}
    for _ in range(PASSES):
        # Held for eight steps each: the cars move.
        actions = draw.uniform([-0.6, 0.2, 0.0], [0.6, 0.8, 0.1], (STEPS[name] // 8 + 1, WORLDS, 3)).astype(np.float32)
        wall, cpu = time.perf_counter(), processors()
        for step in range(STEPS[name]):
            env.step(actions[step // 8])
        wall, cpu = time.perf_counter() - wall, processors() - cpu
        best = {"wall": max(best["wall"], WORLDS * STEPS[name] / wall), "cpu": max(best["cpu"], WORLDS * STEPS[name] / cpu)}
    env.close()
    return best


def fastest(play):
    """CPU microseconds per step."""
    return 1e6 * min(play() for _ in range(PASSES))


def racing(make, folder):
    """One CarRacing over recorded drives."""
    drives = [(int(file.stem.split("_")[1]), [json.loads(line) for line in file.read_text().splitlines()]) for file in sorted(folder.glob("actions_*.jsonl"))]
    env = make()

    def play():
        seconds = steps = 0
        for seed, actions in drives:
            actions = [np.array(action, np.float32) for action in actions]
            env.reset(seed=seed)
            start = time.thread_time()
            for action in actions:
                env.step(action)
            seconds += time.thread_time() - start
            steps += len(actions)
        return seconds / steps

    return fastest(play)


def pole(make):
    """One CartPoleSwingUpHarder, begun anew when its episode ends."""
    env = make()
    action = np.array([0.3], np.float32)

    def play():
        seconds, steps = 0.0, 0
        env.reset(seed=1)
        while steps < SINGLE:
            env.reset()
            over = False
            start = time.thread_time()
            while not over:
                _, _, over, cut, _ = env.step(action)
                over = over or cut
                steps += 1
            seconds += time.thread_time() - start
        return seconds / steps

    return fastest(play)


def main():
    folder = Path(sys.argv[1])
    result = {name: None for name in STEPS}
    for name in STEPS:
        try:
            result[name] = batch(name)
        except ImportError:
            print(f"{name} is not installed", file=sys.stderr)
    result["worlds"] = WORLDS
    made_by = {
        "make": lambda: gymnasium.make("foveate/CarRacing-v3", picture="fast"),
        "class": lambda: envs.CarRacing(picture="fast"),
    }
    result["single_fast"] = {how: racing(make, folder) for how, make in made_by.items()}
    result["pole"] = {"class": pole(lambda: envs.CartPoleSwingUpHarder())}
    print(json.dumps(result))


main()
