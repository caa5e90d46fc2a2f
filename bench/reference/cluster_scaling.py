"""How a generation on a Ray cluster scales with its workers: a discrete-event model, its measured inputs, and measured points beside it.

usage: cluster_scaling.py [PICTURE.svg]        PYTHONPATH has the package `foveate`, Ray and msgpack are installed

Inputs, measured here: CPU seconds of single rollouts, of first generations and around the champion; the run's own CPU time per batch
with 1 to 1,000 workers; a worker's CPU time per batch and the time to store the weights, by their size; the learner's part.

Measured points: whole generations of the preset `paper` through Foveate's own executor and `RayCluster`, with workers that sleep as long
as their rollouts took when they were run, and give their recorded answers. Sleeping needs no cores, so one machine has any number of
such workers; up to PROCESSES of them are processes of their own, more share those. The last line of its output is one JSON object; times
in seconds.
"""

import asyncio
import collections
import heapq
import json
import math
import os
import random
import statistics
import struct
import sys
import tempfile
import time
from pathlib import Path

import foveate
import foveate.ray
import msgpack
import ray
from foveate._native import RolloutWorker

CHAMPION = str(Path(__file__).resolve().parents[2] / "champions/car-racing.safetensors")
POPULATION, TRACKS = 256, 16
#: Genomes whose rollouts are run; those of the others are drawn from them, with all of a genome's tracks.
GENOMES = 32
#: Workers of the measured points, and those of which each is a process of its own.
WORKERS, PROCESSES = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1000), 32
#: Fewer repeats where a generation takes long and varies little.
REPEATS, LONG = 3, 60.0
SIZES = {"15 KB": 15_000, "1 MB": 1_000_000, "10 MB": 10_000_000}
#: The runs whose first generations are recorded: a preset with settings. The champion's is one of another strategy, which needs less
#: memory with its 8,195 parameters; genomes and tracks are as many.
WORK = {
    "first": ("paper", {}),
    "trained": (
        "evolution",
        {"agent.config.hidden": 32, "recipe.init.weights": CHAMPION, "recipe.stage.0.starts": 1, "recipe.stage.0.sigma": 0.02}
        | {"recipe.stage.0.population": POPULATION, "recipe.stage.0.tracks": TRACKS, "recipe.stage.0.track_seeds": "separate"},
    ),
}

# Assumed, for there was no network to measure.
NODE_WORKERS = 16
BANDWIDTH = 10e9 / 8
LATENCY = 1e-4

# As in crates/foveate-run/src/cluster.rs and foveate/ray.py.
BATCHES_PER_WORKER, MAX_BATCHES = 4, 1024
DEPTH = 2


class Recorder:
    """An engine that keeps the first generation of a run, one job per batch, and ends the run."""

    def open(self, setup):
        self.setup = setup

    def workers(self):
        return POPULATION * TRACKS

    def begin(self, weights, batches):
        self.weights, self.batches = weights, batches
        raise RuntimeError("recorded")


def train(kind, cluster):
    """A run, until its engine ends it."""
    preset, settings = WORK[kind]
    try:
        foveate.train("car-racing", preset=preset, set={"videos": False} | settings, runs=tempfile.mkdtemp(), name="run", cluster=cluster)
    except foveate.FoveateError as error:
        assert "recorded" in str(error), error


def job_key(job):
    return job["genome"], job["episode"]


def rollouts(kind):
    """Seconds and the episode of every job of a generation."""
    run = Recorder()
    train(kind, run)
    worker = RolloutWorker(run.setup)
    measured, jobs = {}, []
    for batch in run.batches:
        (job,) = msgpack.unpackb(batch)["jobs"]
        jobs.append(job_key(job))
        if job["genome"] < GENOMES:
            start = time.thread_time()
            answer = worker.run(run.weights, batch)
            seconds = time.thread_time() - start
            measured[job_key(job)] = seconds, msgpack.unpackb(answer)["Ok"]["episodes"][0]
    draw = random.Random(1)
    stands_for = {genome: genome if genome < GENOMES else draw.randrange(GENOMES) for genome in range(POPULATION)}
    by_genome = collections.defaultdict(list)
    for genome, episode in measured:
        by_genome[genome].append((genome, episode))
    places = collections.Counter()
    table = {}
    for genome, episode in jobs:
        table[genome, episode] = measured[by_genome[stands_for[genome]][places[genome]]]
        places[genome] += 1
    return run, [table[job][0] for job in jobs], table


# Workers that sleep.


@ray.remote(num_cpus=0, max_concurrency=1000)
class Sleepers:
    """Some workers that sleep instead of running rollouts."""

    def __init__(self, table):
        self._table = table
        self._turns = collections.defaultdict(asyncio.Lock)

    async def run(self, weights, batch, worker):
        async with self._turns[worker]:
            start = time.perf_counter()
            rows = [self._table[job_key(job)] for job in msgpack.unpackb(batch)["jobs"]]
            answer = msgpack.packb({"Ok": {"version": 1, "episodes": [episode for _, episode in rows], "recordings": []}})
            await asyncio.sleep(max(0.0, sum(seconds for seconds, _ in rows) - (time.perf_counter() - start)))
            return answer


class Seat:
    """One worker of a `Sleepers`, called as `foveate.ray.Rollouts` is."""

    def __init__(self, actor, number):
        self._actor, self._number = actor, number
        self.run = self

    def remote(self, weights, batch):
        return self._actor.run.remote(weights, batch, self._number)


class Timed(foveate.ray.RayCluster):
    """Times a generation, from its begin to the next one's, and then ends the run."""

    def begin(self, weights, batches):
        now = time.perf_counter(), time.process_time()
        if self._batches:
            (begun, cpu), (answered, cpu_answered) = self.begun, self.answered
            self.result = {"seconds": now[0] - begun, "learner": now[0] - answered, "driver_cpu": (cpu_answered - cpu) / len(self._batches)}
            raise RuntimeError("recorded")
        self.begun = now
        super().begin(weights, batches)

    def wait(self):
        answer = super().wait()
        self.answered = time.perf_counter(), time.process_time()
        return answer


class Sleeping(Timed):
    """A cluster of workers that sleep, with weights of any size."""

    def __init__(self, actors, workers, size):
        super().__init__()
        self._size = size
        self._staff = [foveate.ray._Worker(Seat(actors[number % len(actors)], number)) for number in range(workers)]

    def open(self, setup):
        pass

    def _look(self):
        pass

    def begin(self, weights, batches):
        super().begin(bytes(self._size), batches)


def generation(cluster):
    """What `Timed` measures of the preset `paper`."""
    train("first", cluster)
    return cluster.result


def points(kind, table):
    """Generations with sleeping workers; of several repeats the fastest, for other programs only add time."""
    table = ray.put(table)
    actors = [Sleepers.remote(table) for _ in range(PROCESSES)]
    ray.get([actor.__ray_ready__.remote() for actor in actors])
    work = sum(seconds for seconds, _ in ray.get(table).values())
    measured = []
    for workers in sorted(WORKERS, reverse=True):
        for name, size in SIZES.items():
            if name != "15 KB" and not 16 <= workers <= PROCESSES:
                continue
            runs = [generation(Sleeping(actors[:workers], workers, size)) for _ in range(REPEATS if work / workers < LONG else 1)]
            measured.append({"workers": workers, "weights": name} | min(runs, key=lambda run: run["seconds"]))
            print(kind, measured[-1], file=sys.stderr, flush=True)
    sleeper = costs(actors[0], Seat(actors[0], 0).remote, 1)
    for actor in actors:
        ray.kill(actor)
    return measured, sleeper


def real(workers):
    """The same with rollouts that are run."""
    with foveate.ray.RayCluster(workers=workers):
        runs = [generation(Timed(workers=workers)) for _ in range(REPEATS)]
        return {"workers": workers} | min(runs, key=lambda run: run["seconds"])


def costs(actor, run, columns):
    """CPU seconds of an actor per empty batch, and wall seconds to store the weights, by the weights' size."""
    batch = msgpack.packb({"purpose": "training", "jobs": [], "rules": {"max_steps": 1000, "patience": 20}, "record": "returns", "epsilon": 0.0})
    cpu = lambda: ray.get(actor.__ray_call__.remote(lambda self: time.process_time()))  # noqa: E731
    result = {}
    for name, size in SIZES.items():
        rows = max(1, size // (4 * columns))
        weights = struct.pack("<QQ", rows, columns) + bytes(4 * columns * rows)
        stores, batches = [], []
        for _ in range(REPEATS):
            start = time.perf_counter()
            stored = ray.put(weights)
            stores.append(time.perf_counter() - start)
            ray.get(run(stored, batch))
            start = cpu()
            ray.get([run(stored, batch) for _ in range(100)])
            batches.append((cpu() - start) / 100)
        result[name] = {"store": min(stores), "batch": min(batches)}
    return result


# The model.


def simulate(seconds, workers, size, inputs, threads=None):
    """Seconds of a generation whose jobs take `seconds`. With `threads`, all workers sleep and share these threads of one machine for what
    they do besides; otherwise each has a core of its own, and there is a network.
    """
    per_worker = min(max(MAX_BATCHES // workers, 1), BATCHES_PER_WORKER)
    chunk = -(-len(seconds) // (workers * per_worker))
    batches = [sum(seconds[at : at + chunk]) for at in range(0, len(seconds), chunk)]
    # A batch costs the run's process half of its time when it is sent, half when it is answered.
    half, extra = inputs["driver"] / 2, inputs["sleeper" if threads else "worker"][size]["batch"]
    latency = 0.0 if threads else LATENCY
    # Weights go to one node after the other. Where the run is, they are already.
    copy = 0.0 if threads else SIZES[size] / BANDWIDTH
    shared = [0.0] * (threads or 0)
    now = inputs["worker"][size]["store"]
    ready = [now + copy * (worker // NODE_WORKERS) for worker in range(workers)]
    queue = collections.deque(range(len(batches)))
    held = [set() for _ in range(workers)]
    free = [0.0] * workers
    out, took, answers = {}, collections.deque(maxlen=64), set()
    ends = []

    def send(worker, batch):
        nonlocal now
        now += half
        start = max(free[worker], ready[worker], now + latency)
        if shared:
            start = max(start, shared[0])
            heapq.heapreplace(shared, start + extra)
        free[worker] = start + extra + batches[batch]
        held[worker].add(batch)
        out.setdefault(batch, []).append(now)
        heapq.heappush(ends, (free[worker] + latency, worker, batch))

    while True:
        for depth in range(1, DEPTH + 1):
            for worker in range(workers):
                if queue and len(held[worker]) < depth:
                    send(worker, queue.popleft())
        if not queue and took:
            idle = [worker for worker in range(workers) if not held[worker]]
            until = now - max(1.0, 2.0 * statistics.median(took))
            late = [batch for batch, sent in out.items() if len(sent) == 1 and batch not in answers and sent[0] < until]
            for worker, batch in zip(idle, late, strict=False):
                send(worker, batch)
        now = max(now, ends[0][0])
        for _, worker, batch in [heapq.heappop(ends) for _ in range(sum(end <= now for end, *_ in ends))]:
            held[worker].discard(batch)
            now += half
            if batch not in answers:
                took.append(now - out[batch][0])
                answers.add(batch)
        if len(answers) == len(batches):
            return now + inputs["learner"]


# The picture.

COLORS = {"15 KB": "#3566b0", "1 MB": "#2f8f5b", "10 MB": "#d0671f"}
STROKES = {"15 KB": 'stroke-width="3"', "1 MB": 'stroke-width="3" stroke-dasharray="4 8"', "10 MB": 'stroke-width="2"'}
TITLES = {"trained": "rollouts around the champion", "first": "rollouts of the first generation"}


def picture(result):
    """Seconds of a generation by workers, one panel for each kind of work."""
    parts = [
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 980 500" font-family="sans-serif" font-size="12" fill="#333">',
        '<rect width="980" height="500" fill="#fff"/>',
        f'<text x="64" y="24" font-size="15">A generation of {POPULATION * TRACKS:,} rollouts on a Ray cluster: model, and points measured without a network</text>',
    ]
    for panel, (kind, title) in enumerate(TITLES.items()):
        left, top, width, height = 64 + 470 * panel, 66, 420, 340
        points, work = result[kind]["points"], result[kind]["work"]
        lowest, highest = -2 if work < 100 else -1, 2 if work < 100 else 3
        x = lambda workers: left + width * math.log10(workers) / 3  # noqa: E731
        y = lambda seconds: top + height * (highest - math.log10(seconds)) / (highest - lowest)  # noqa: E731
        parts.append(f'<text x="{left}" y="54">{title}, {1e3 * work / POPULATION / TRACKS:.0f} ms each on average</text>')
        for power in range(lowest, highest + 1):
            at = y(10**power)
            parts.append(f'<path d="M{left} {at:.1f}H{left + width}" stroke="#ddd"/><text x="{left - 8}" y="{at + 4:.1f}" text-anchor="end">{10.0**power:g} s</text>')
        for workers in (1, 10, 100, 1000):
            parts.append(f'<path d="M{x(workers):.1f} {top}V{top + height}" stroke="#ddd"/><text x="{x(workers):.1f}" y="{top + height + 18}" text-anchor="middle">{workers:,}</text>')
        parts.append(f'<text x="{left + width / 2}" y="{top + height + 36}" text-anchor="middle">workers</text>')
        line = lambda places: "M" + "L".join(f"{x(workers):.1f} {y(seconds):.1f}" for workers, seconds in places)  # noqa: E731
        parts.append(f'<path d="{line([(1, work), (1000, work / 1000)])}" stroke="#888" stroke-dasharray="5 4" fill="none"/>')
        for name in ("10 MB", "15 KB", "1 MB"):
            parts.append(f'<path d="{line(result[kind]["model"][name])}" stroke="{COLORS[name]}" {STROKES[name]} fill="none"/>')
        for point in points:
            color = COLORS[point["weights"]]
            parts.append(f'<circle cx="{x(point["workers"]):.1f}" cy="{y(point["seconds"]):.1f}" r="4" fill="#fff" stroke="{color}" stroke-width="2"/>')
        for point in result[kind]["real"]:
            parts.append(f'<rect x="{x(point["workers"]) - 4:.1f}" y="{y(point["seconds"]) - 4:.1f}" width="8" height="8" fill="none" stroke="#333" stroke-width="2"/>')
    at, row = 64, 484
    for name, color in COLORS.items():
        parts.append(f'<path d="M{at} {row - 4}h26" stroke="{color}" {STROKES[name]}/><text x="{at + 32}" y="{row}">model, weights of {name}</text>')
        at += 190
    parts.append(f'<path d="M{at} {row - 4}h26" stroke="#888" stroke-dasharray="5 4"/><text x="{at + 32}" y="{row}">ideal</text>')
    at += 80
    parts.append(f'<circle cx="{at + 8}" cy="{row - 4}" r="4" fill="#fff" stroke="#333" stroke-width="2"/><text x="{at + 20}" y="{row}">measured, sleeping</text>')
    at += 150
    parts.append(f'<rect x="{at}" y="{row - 8}" width="8" height="8" fill="none" stroke="#333" stroke-width="2"/><text x="{at + 16}" y="{row}">real rollouts</text>')
    return "\n".join([*parts, "</svg>", ""])


def main():
    result = {}
    for kind in WORK:
        run, seconds, table = rollouts(kind)
        result[kind] = {"work": sum(seconds), "seconds": seconds}
        if kind == "first":
            result[kind]["real"] = [real(workers) for workers in (1, 2, 4)]
        with foveate.ray.RayCluster(workers=2):
            result[kind]["points"], sleeper = points(kind, table)
            if kind == "first":
                worker = foveate.ray.Rollouts.remote(run.setup)
                columns = struct.unpack("<QQ", run.weights[:16])[1]
                worker = costs(worker, worker.run.remote, columns)
    everything = [point for kind in WORK for point in result[kind]["points"]]
    inputs = {
        "worker": worker,
        "sleeper": sleeper,
        # Those with most batches, which weigh least on the measurement's own begin and end.
        "driver": statistics.median(point["driver_cpu"] for point in everything if point["workers"] >= 64),
        "learner": min(point["learner"] for point in everything),
    }
    result["inputs"] = inputs
    # One is the run's own.
    threads = max(1, len(os.sched_getaffinity(0)) - 1)
    for kind in WORK:
        seconds = result[kind].pop("seconds")
        result[kind] |= {"longest": max(seconds), "shortest": min(seconds), "real": result[kind].get("real", [])}
        counts = sorted({1, 10, 100, 1000, *WORKERS, 3, 20, 40, 80, 160, 320, 640})
        result[kind]["model"] = {name: [(workers, simulate(seconds, workers, name, inputs)) for workers in counts] for name in SIZES}
        for point in result[kind]["points"]:
            point["model"] = simulate(seconds, point["workers"], point["weights"], inputs, threads)
    if len(sys.argv) > 1:
        Path(sys.argv[1]).write_text(picture(result))
    print(json.dumps(result))


if __name__ == "__main__":
    main()
