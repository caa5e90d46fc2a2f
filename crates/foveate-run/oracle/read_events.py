"""Reads a run's event files as TensorBoard does, twice: a line on stdin asks for the next time.

Each time it prints one JSON object: for every tag its [wall time, step, value] in order.
"""

import json
import sys

from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

watcher = EventAccumulator(sys.argv[1], size_guidance={"scalars": 0})
while sys.stdin.readline():
    watcher.Reload()
    tags = watcher.Tags()["scalars"]
    print(json.dumps({tag: [[e.wall_time, e.step, e.value] for e in watcher.Scalars(tag)] for tag in tags}), flush=True)
