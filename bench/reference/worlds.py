"""What the bridge adds to a step of worlds from elsewhere, in CPU time of all processes, and whether its workers ever wait.

Run it with the Python that has them:

    .venv-worlds/bin/python bench/reference/worlds.py target/release/foveate

Each world is played with random actions by a plain loop and through `foveate eval random-actions`, for a few steps and
for many; the difference is what a step costs. Loops and bridge take turns; the least of all turns counts, for whatever
else the machine does can only add to it.
"""

import ctypes
import importlib
import json
import os
import resource
import subprocess
import sys
import time

TURNS = 3
# Name, id, whether the picture is drawn, arguments of foveate, steps.
WORLDS = [
    ("Pong", "ALE/Pong-v5", False, [], 4000),
    ("Breakout", "ALE/Breakout-v5", False, [], 4000),
    ("DoorKey, symbols", "MiniGrid-DoorKey-5x5-v0", False, [], 8000),
    ("DoorKey, render", "MiniGrid-DoorKey-5x5-v0", True, ["--picture", "render"], 4000),
    ("cheetah, numbers", "dm_control/cheetah-run-v0", False, [], 16000),
    ("cheetah, render", "dm_control/cheetah-run-v0", True, ["--picture", "render"], 120),
    ("CarRacing", "CarRacing-v3", False, [], 400),
    ("TakeCover", "VizdoomTakeCover-v1", False, [], 3000),
]
LENGTH = 200  # steps of an episode at most
# One thread each, as Foveate's workers have.
ONE = {name: "1" for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "LP_NUM_THREADS")}
SURROUNDINGS = dict(os.environ, FOVEATE_PYTHON=sys.executable, MUJOCO_GL="egl", SDL_VIDEODRIVER="dummy", PYTHONWARNINGS="ignore", **ONE)


def alone(id, drawn, episodes, length):
    """A plain loop over an environment."""
    import gymnasium

    homes = {"ALE": "ale_py", "MiniGrid": "minigrid", "dm_control": "shimmy", "Vizdoom": "vizdoom.gymnasium_wrapper"}
    for beginning, module in homes.items():
        if id.startswith(beginning):
            importlib.import_module(module)
    env = gymnasium.make(id, render_mode="rgb_array", disable_env_checker=True)
    env.action_space.seed(0)
    actions = [env.action_space.sample() for _ in range(997)]
    taken = 0
    for episode in range(episodes):
        env.reset(seed=episode)
        if drawn:
            env.render()
        for _ in range(length):
            _, _, terminated, truncated, _ = env.step(actions[taken % 997])
            taken += 1
            if drawn:
                env.render()
            if terminated or truncated:
                break
    print(taken)
    sys.stdout.flush()
    os._exit(0)  # not all of these environments close without noise


def cpu(command, folder="/tmp"):
    """CPU seconds of a command and of all that it started, and what it printed."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command, env=SURROUNDINGS, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True)
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        # Orphans come to us, since we are their reaper.
        try:
            pid, _ = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            break
        if pid == 0:
            time.sleep(0.01)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return spent, done.stdout.decode()


def loop(id, drawn, episodes):
    spent, said = cpu([sys.executable, __file__, "alone", id, str(int(drawn)), str(episodes), str(LENGTH)])
    return spent, int(said.split()[-1])


def bridge(foveate, id, flags, episodes):
    wrap = ["--wrap", "limit:%d" % LENGTH, "--seeds", "0..%d" % episodes, "--workers", "1", "--json"]
    spent, said = cpu([foveate, "eval", "random-actions", "--env", "gym:" + id] + flags + wrap)
    return spent, sum(json.loads(said)["lengths"])


def cost(run, steps):
    """CPU microseconds of a step."""
    few, many = max(1, steps // LENGTH // 4), max(2, steps // LENGTH)
    (a, short), (b, long) = run(few), run(many)
    return (b - a) / (long - short) * 1e6


def table(foveate, names):
    print("| world | alone, µs a step | through the bridge | steps per CPU second alone | through the bridge |")
    print("|---|---:|---:|---:|---:|")
    for name, id, drawn, flags, steps in WORLDS:
        if names and name not in names:
            continue
        turns = [
            (cost(lambda n: loop(id, drawn, n), steps), cost(lambda n: bridge(foveate, id, flags, n), steps))
            for _ in range(TURNS)
        ]
        one, two = (min(turn[i] for turn in turns) for i in (0, 1))
        print("| %s | %.0f | %.0f | %.0f | %.0f |" % (name, one, two, 1e6 / one, 1e6 / two))
        print("  all turns: %s" % ", ".join("%.0f/%.0f" % turn for turn in turns), file=sys.stderr)
        sys.stdout.flush()


def tasks(root):
    """Every thread below a process: time on a core and time spent waiting for one, in seconds."""
    family, found = {root}, True
    parents = {}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open("/proc/%s/stat" % pid) as file:
                parents[int(pid)] = int(file.read().rsplit(")", 1)[1].split()[1])
        except OSError:
            pass
    while found:
        found = {pid for pid, parent in parents.items() if parent in family} - family
        family |= found
    times = {}
    for pid in family:
        try:
            for thread in os.listdir("/proc/%d/task" % pid):
                with open("/proc/%d/task/%s/schedstat" % (pid, thread)) as file:
                    ran, waited, _ = map(int, file.read().split())
                times[thread] = (ran / 1e9, waited / 1e9)
        except OSError:
            pass
    return times


def busy(foveate):
    """Of workers driving Pong: on a core, or ready and waiting for one, as a share of the time that passes."""
    print("\n| workers | on a core | waiting for a core | together, per worker |\n|---|---:|---:|---:|")
    for workers in (1, 2):
        command = [foveate, "eval", "random-actions", "--env", "gym:ALE/Pong-v5", "--episodes", "400", "--workers", str(workers)]
        run = subprocess.Popen(command, env=SURROUNDINGS, stdout=subprocess.DEVNULL)
        time.sleep(4)
        start, before = time.monotonic(), tasks(run.pid)
        time.sleep(8)
        after, passed = tasks(run.pid), time.monotonic() - start
        run.kill()
        run.wait()
        ran, waited = (sum(after[t][i] - before[t][i] for t in after if t in before) / passed for i in (0, 1))
        print("| %d | %.2f | %.2f | %.2f |" % (workers, ran, waited, (ran + waited) / workers))
    print("load average %s on %d cores" % (os.getloadavg(), os.cpu_count()))


if __name__ == "__main__":
    if sys.argv[1] == "alone":
        alone(sys.argv[2], sys.argv[3] == "1", int(sys.argv[4]), int(sys.argv[5]))
    ctypes.CDLL(None).prctl(36, 1)  # the reaper of all that is started from here
    binary = os.path.abspath(sys.argv[1])
    table(binary, sys.argv[2:])
    busy(binary)
