"""What a step costs through Gymnasium's own vector environments: CPU microseconds of all processes.

bridge.py TOYS STEPS WORKERS: the trivial environment of the toys in the folder TOYS, 96 x 96 x 3.
Prints one JSON object.
"""

import json
import os
import resource
import sys
import time

import gymnasium
import numpy as np


def cpu(who):
    usage = resource.getrusage(who)
    return usage.ru_utime + usage.ru_stime


def measure(make, steps, workers):
    vector = make()
    actions = np.zeros(workers, np.int64)
    vector.reset(seed=0)
    for _ in range(200):
        vector.step(actions)
    children = [int(pid) for pid in below(os.getpid())]
    before = cpu(resource.RUSAGE_SELF) + sum(map(ticks, children))
    wall = time.perf_counter()
    for _ in range(steps):
        vector.step(actions)
    wall = time.perf_counter() - wall
    used = cpu(resource.RUSAGE_SELF) + sum(map(ticks, children)) - before
    vector.close()
    total = steps * workers
    return {"us": used / total * 1e6, "cpu_s": used, "wall_steps_per_s": total / wall, "steps": total}


def below(parent):
    """Processes that `parent` started."""
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open("/proc/%s/stat" % name) as file:
                    if int(file.read().rsplit(") ", 1)[1].split()[1]) == parent:
                        yield name
            except OSError:
                pass


def ticks(pid):
    with open("/proc/%d/stat" % pid) as file:
        fields = file.read().rsplit(") ", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def cart_pole(workers):
    """EnvPool's own CartPole, which shows four numbers, in as many threads as there are copies."""
    import envpool

    class Seeded:
        """Takes the seed when it is made, not when it is reset."""

        def __init__(self):
            self.vector = envpool.make("CartPole-v1", env_type="gymnasium", num_envs=workers, num_threads=workers, seed=0)
            self.step, self.close = self.vector.step, self.vector.close

        def reset(self, seed):
            self.vector.reset()

    return Seeded


def main():
    toys, steps, workers = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    sys.path.insert(0, toys)
    os.environ["PYTHONPATH"] = toys
    import foveate_toys  # noqa: F401

    def environment():
        import foveate_toys  # noqa: F401

        return gymnasium.make("Toys/Trivial-v0", disable_env_checker=True)

    makers = [environment] * workers
    from gymnasium.vector import AsyncVectorEnv, SyncVectorEnv

    print(
        json.dumps(
            {
                "async_shared": measure(lambda: AsyncVectorEnv(makers, shared_memory=True), steps, workers),
                "async_pickled": measure(lambda: AsyncVectorEnv(makers, shared_memory=False), steps, workers),
                "sync": measure(lambda: SyncVectorEnv(makers), steps, workers),
                # It hosts environments in C++ alone; the cheapest one that it has is nearly all overhead.
                "envpool": measure(cart_pole(workers), steps, workers),
            }
        )
    )


if __name__ == "__main__":
    main()
