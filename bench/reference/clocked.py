"""A wrapper that tells how much CPU time is the world's own, and how much is spent around it."""

import json
import os
import time

import gymnasium


def ran(pid):
    """CPU seconds of a process."""
    total = 0
    for thread in os.listdir("/proc/%d/task" % pid):
        with open("/proc/%d/task/%s/schedstat" % (pid, thread)) as file:
            total += int(file.read().split()[0])
    return total / 1e9


def parent(pid):
    with open("/proc/%d/stat" % pid) as file:
        return int(file.read().rsplit(")", 1)[1].split()[1])


class Clocked(gymnasium.Wrapper):
    """At every reset it adds a line to `file`: steps so far; CPU seconds within the world, of the worker, of Foveate, and
    of programs that the world started."""

    def __init__(self, env, file):
        super().__init__(env)
        self.file, self.own, self.steps = file, 0.0, 0
        self.foveate = parent(os.getppid())

    def engines(self):
        total = 0.0
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                total += ran(int(pid)) if parent(int(pid)) == os.getpid() else 0.0
            except OSError:  # it has ended
                pass
        return total

    def reset(self, **more):
        with open(self.file, "a") as file:
            line = [self.steps, self.own, time.process_time(), ran(self.foveate), self.engines()]
            file.write(json.dumps(line) + "\n")
        return self.clocked(super().reset, **more)

    def step(self, action):
        self.steps += 1
        return self.clocked(super().step, action)

    def render(self):
        return self.clocked(super().render)

    def clocked(self, what, *args, **named):
        start = time.process_time()
        try:
            return what(*args, **named)
        finally:
            self.own += time.process_time() - start
