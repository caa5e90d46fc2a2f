"""What Ray adds to rollouts: Foveate's workers on a local Ray cluster beside the same batches in threads of one process.

usage: cluster.py        PYTHONPATH has the package `foveate`, Ray and msgpack are installed

The batches are those of the first generation of a short evolution in CarRacing, recorded by an engine that runs none of them. Empty
batches are the same without their jobs: their time is all overhead. Every figure is the median of REPEATS, and all answers must be
equal. Prints one JSON object, seconds of the wall unless it says otherwise.
"""

import json
import statistics
import struct
import tempfile
import threading
import time

import foveate
import msgpack
from foveate._native import RolloutWorker
from foveate.ray import RayCluster

REPEATS = 3
WORKERS = 2
BATCHES = 16
EMPTY = 500
SETTINGS = {
    "videos": False, "env.picture": "fast", "recipe.stage.0.population": 64, "recipe.stage.0.tracks": 4, "recipe.stage.0.patience": "off",
    "recipe.selection.evaluation_tracks": 0,
}


class Recorder:
    """An engine that keeps what it is given and ends the run."""

    def open(self, setup):
        self.setup = setup

    def workers(self):
        return BATCHES // 2

    def begin(self, weights, batches):
        self.weights, self.batches = weights, batches
        raise RuntimeError("recorded")


def recorded():
    recorder = Recorder()
    try:
        foveate.train("car-racing", preset="evolution", set=SETTINGS, runs=tempfile.mkdtemp(), name="recorded", cluster=recorder)
    except foveate.FoveateError as error:
        assert "recorded" in str(error), error
    return recorder


def on_cluster(cluster, weights, batches):
    """Seconds of the wall and of this process's processor, and the answers."""
    wall, cpu = time.perf_counter(), time.process_time()
    cluster.begin(weights, batches)
    answers = {}
    while len(answers) < len(batches):
        answer = cluster.wait()
        if answer is not None:
            answers[answer[0]] = answer[1]
    return time.perf_counter() - wall, time.process_time() - cpu, answers


def in_threads(setup, weights, batches):
    """The same in threads of this process."""
    workers = [RolloutWorker(setup) for _ in range(WORKERS)]
    todo, lock, answers = iter(range(len(batches))), threading.Lock(), {}

    def work(worker):
        while True:
            with lock:
                index = next(todo, None)
            if index is None:
                return
            answers[index] = worker.run(weights, batches[index])

    wall = time.perf_counter()
    threads = [threading.Thread(target=work, args=(worker,)) for worker in workers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return time.perf_counter() - wall, answers


def median(figures):
    return statistics.median(figures)


def main():
    run = recorded()
    batches = run.batches[:BATCHES]
    without_jobs = msgpack.unpackb(batches[0])
    without_jobs["jobs"] = []
    empty = msgpack.packb(without_jobs)
    rows, columns = struct.unpack("<QQ", run.weights[:16])
    row = run.weights[16 : 16 + 4 * columns]
    result = {"workers": WORKERS, "batches": len(batches)}
    start = time.perf_counter()
    with RayCluster(workers=WORKERS) as cluster:
        cluster.open(run.setup)
        result["start"] = time.perf_counter() - start
        on_cluster(cluster, run.weights, [empty] * 50)
        overheads = [on_cluster(cluster, run.weights, [empty] * EMPTY) for _ in range(REPEATS)]
        result["empty_ms"] = 1e3 * median([wall for wall, _, _ in overheads]) / EMPTY
        result["empty_driver_cpu_ms"] = 1e3 * median([cpu for _, cpu, _ in overheads]) / EMPTY
        for size in (15_000, 1_000_000, 10_000_000):
            count = max(1, size // len(row))
            weights = struct.pack("<QQ", count, columns) + row * count
            result[f"weights_{size}_ms"] = 1e3 * median([on_cluster(cluster, weights, [empty] * 8)[0] for _ in range(REPEATS)])
        walls = {"ray": [], "threads": []}
        for _ in range(REPEATS):
            wall, _, answers = on_cluster(cluster, run.weights, batches)
            walls["ray"].append(wall)
            wall, others = in_threads(run.setup, run.weights, batches)
            walls["threads"].append(wall)
            assert answers == others, "answers differ"
        result |= {name: median(seconds) for name, seconds in walls.items()}
    print(json.dumps(result))


main()
