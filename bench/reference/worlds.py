"""What the bridge adds to a step of worlds from elsewhere, in CPU time of all processes, and whether its workers ever wait.

Run it with the Python that has them:

    .venv-worlds/bin/python bench/reference/worlds.py target/release/foveate

Each world is played by `foveate eval random-actions` with one worker; a wrapper around the world tells how much of the
CPU time is the world's own. Both parts of a row are of the same run, so that what else the machine does slows down both.
"""

import json
import os
import subprocess
import sys
import tempfile
import time

# Name, id, flags, steps.
WORLDS = [
    ("Pong", "ALE/Pong-v5", [], 4000),
    ("Breakout", "ALE/Breakout-v5", [], 4000),
    ("DoorKey, symbols", "MiniGrid-DoorKey-5x5-v0", [], 8000),
    ("DoorKey, render", "MiniGrid-DoorKey-5x5-v0", ["--picture", "render"], 4000),
    ("cheetah, numbers", "dm_control/cheetah-run-v0", [], 16000),
    ("cheetah, render", "dm_control/cheetah-run-v0", ["--picture", "render"], 120),
    ("CarRacing", "CarRacing-v3", [], 400),
    ("TakeCover", "VizdoomTakeCover-v1", [], 3000),
]
LENGTH = 200  # steps of an episode at most
# One thread each, as Foveate's workers have.
ONE = {name: "1" for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "LP_NUM_THREADS")}
SURROUNDINGS = dict(os.environ, FOVEATE_PYTHON=sys.executable, MUJOCO_GL="egl", SDL_VIDEODRIVER="dummy", PYTHONWARNINGS="ignore", **ONE)


def row(foveate, id, flags, steps):
    """Steps; CPU microseconds of a step: the world's own, and those of the worker and of Foveate around it."""
    with tempfile.NamedTemporaryFile("r") as file:
        here = os.path.dirname(os.path.abspath(__file__))
        options = ["path=" + here, "gym_wrapper=clocked.Clocked(file=%r)" % file.name]
        command = [foveate, "eval", "random-actions", "--env", "gym:" + id, "--wrap", "limit:%d" % LENGTH, "--workers", "1"]
        command += ["--seeds", "0..%d" % (steps // LENGTH + 3)] + flags + [word for o in options for word in ("--option", o)]
        subprocess.run(command, env=SURROUNDINGS, stdout=subprocess.DEVNULL, check=True)
        lines = [json.loads(line) for line in file]
    # The first episodes warm up; the picture of `render` is tried out in one of its own.
    first, last = lines[2], lines[-1]
    count, own, worker, parent, engines = (b - a for a, b in zip(first, last))
    return count, (own + engines) / count * 1e6, (worker - own) / count * 1e6, parent / count * 1e6


def table(foveate, names):
    print("| world | its own step, CPU µs | the worker around it | Foveate | steps per CPU second alone | through the bridge | share of the world |")
    print("|---|---:|---:|---:|---:|---:|---:|")
    for name, id, flags, steps in WORLDS:
        if names and name not in names:
            continue
        _, own, worker, parent = row(foveate, id, flags, steps)
        whole = own + worker + parent
        print("| %s | %.0f | %.0f | %.0f | %.0f | %.0f | %.1f %% |" % (name, own, worker, parent, 1e6 / own, 1e6 / whole, 100 * own / whole))
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
    binary = os.path.abspath(sys.argv[1])
    table(binary, sys.argv[2:])
    busy(binary)
