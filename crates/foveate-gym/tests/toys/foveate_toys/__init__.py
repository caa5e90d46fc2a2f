"""Small environments for tests, good ones and ones with faults."""

import json
import os
import sys
import time

import gymnasium
import numpy as np
from gymnasium import spaces


class Toy(gymnasium.Env):
    """A ball on a line that drifts; the closer to the middle, the better. Ends when it is farther out than 2."""

    metadata = {"render_modes": ["rgb_array"], "render_fps": 20}
    observation_space = spaces.Box(-np.inf, np.inf, (2,), np.float32)
    action_space = spaces.Box(-1.0, 1.0, (1,), np.float32)

    def __init__(self, render_mode=None, **more):
        self.render_mode = render_mode
        self.more = more

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.x = float(self.np_random.uniform(-1, 1))
        self.t = 0
        return self.look(), self.facts()

    def step(self, action):
        self.t += 1
        self.move(action)
        self.x += 0.05 * float(self.np_random.normal())
        return self.look(), self.reward(), abs(self.x) > 2, False, self.facts()

    def move(self, action):
        self.x += 0.1 * float(np.asarray(action).reshape(-1)[0])

    def reward(self):
        return 1.0 - abs(self.x)

    def look(self):
        return np.array([self.x, self.t], np.float32)

    def facts(self):
        return {"x": self.x, "t": self.t, "words": "toy", "large": np.zeros(1000)}

    def render(self):
        frame = np.zeros((40, 60, 3), np.uint8)
        frame[:, int(np.clip(30 + 10 * self.x, 0, 59))] = (255, 128, self.t % 256)
        return frame


class Picture(Toy):
    """Shows the line as a picture of 96 x 96."""

    observation_space = spaces.Box(0, 255, (96, 96, 3), np.uint8)
    # Seconds that a step takes longer without computing.
    pause = float(os.environ.get("TOYS_PAUSE", "0"))

    def step(self, action):
        if self.pause:
            time.sleep(self.pause)
        return super().step(action)

    def look(self):
        frame = np.zeros((96, 96, 3), np.uint8)
        frame[:, int(np.clip(48 + 20 * self.x, 0, 95))] = (255, 128, self.t % 256)
        frame[0, 0] = self.t % 256
        return frame


class Trivial(gymnasium.Env):
    """As little as an environment can do: one of two prepared pictures, for measuring what a bridge costs."""

    def __init__(self, height=96, width=96, channels=3, render_mode=None):
        self.observation_space = spaces.Box(0, 255, (height, width, channels), np.uint8)
        self.action_space = spaces.Discrete(4)
        generator = np.random.default_rng(0)
        self.frames = [generator.integers(0, 256, (height, width, channels), np.uint8) for _ in range(2)]
        self.t = 0

    def reset(self, *, seed=None, options=None):
        self.t = 0
        return self.frames[0], {}

    def step(self, action):
        self.t += 1
        return self.frames[self.t & 1], 1.0, False, False, {}


class Mixed(Toy):
    """A Dict of a picture, its depth, numbers, choices, bits and a text; choices for an action."""

    observation_space = spaces.Dict(
        {
            "screen": spaces.Box(0, 255, (20, 24, 3), np.uint8),
            "depth": spaces.Box(0, 255, (20, 24, 1), np.uint8),
            "angles": spaces.Box(-100.0, 100.0, (2, 2), np.float64),
            "mode": spaces.Discrete(3, start=5),
            "bits": spaces.MultiBinary(2),
            "dice": spaces.MultiDiscrete([2, 3]),
            "mission": spaces.Text(20),
            "pair": spaces.Tuple([spaces.Box(0, 1, (1,), np.float32), spaces.Discrete(2)]),
        }
    )
    action_space = spaces.MultiDiscrete([3, 2])

    def move(self, action):
        assert self.action_space.contains(action), action
        self.x += 0.1 * (int(action[0]) - 1)
        self.fire = int(action[1])

    def look(self):
        t = self.t
        return {
            "screen": np.full((20, 24, 3), t % 256, np.uint8),
            "depth": np.full((20, 24, 1), 255 - t % 256, np.uint8),
            "angles": np.array([[self.x, 0.25], [0.5, t]]),
            "mode": 5 + t % 3,
            "bits": np.array([t % 2, 1], np.int8),
            "dice": np.array([t % 2, t % 3]),
            "mission": "go",
            "pair": (np.array([0.75], np.float32), t % 2),
        }


class Grey(Toy):
    """A grey picture, its channel first, for a choice."""

    observation_space = spaces.Box(0.0, 1.0, (1, 18, 16), np.float32)
    action_space = spaces.Discrete(3, start=-1)

    def move(self, action):
        assert self.action_space.contains(action), action
        self.x += 0.1 * int(action)

    def look(self):
        return np.full((1, 18, 16), (self.t % 5) / 4.0, np.float32)


class Stack(Toy):
    """The last four pictures in grey, the oldest first, of which each shows its step number."""

    observation_space = spaces.Box(0, 255, (4, 18, 16), np.uint8)
    action_space = spaces.Discrete(2)

    def move(self, action):
        pass

    def look(self):
        shape = self.observation_space.shape
        steps = np.array([max(self.t - age, 0) for age in (3, 2, 1, 0)], np.uint8)
        return np.broadcast_to(steps.reshape((4,) + (1,) * (len(shape) - 1)), shape)


class ColourStack(Stack):
    """The same in colours."""

    observation_space = spaces.Box(0, 255, (4, 18, 16, 3), np.uint8)


class Acts(Toy):
    """Takes a Dict of actions and reports what it took."""

    action_space = spaces.Dict(
        {
            "push": spaces.Box(np.array([-1.0, 0.0], np.float32), np.array([1.0, 2.0], np.float32)),
            "gear": spaces.Discrete(3, start=1),
            "lamps": spaces.MultiBinary(2),
            "count": spaces.Box(0, 9, (1,), np.int32),
        }
    )

    def move(self, action):
        assert self.action_space.contains(action), action
        self.took = action

    def facts(self):
        took = getattr(self, "took", None)
        return {} if took is None else {k: np.asarray(v).tolist() for k, v in took.items()}


class Breaks(Toy):
    """Fails in one of many ways in step `at` of the episode with seed `seed`; `once` names a file that remembers."""

    def step(self, action):
        how, at = self.more.get("how"), self.more.get("at", 5)
        once = self.more.get("once")
        if self.t + 1 == at and not (once and os.path.exists(once)):
            if once:
                open(once, "w").close()
            self.fail(how)
        return super().step(action)

    def fail(self, how):
        if how == "raise":
            raise ValueError("the toy broke")
        if how == "exit":
            os._exit(3)
        if how == "sys_exit":
            sys.exit("leaving")
        if how == "segfault":
            import ctypes

            ctypes.string_at(0)
        if how == "hang":
            time.sleep(1000)
        if how == "hang_in_c":
            import ctypes

            ctypes.PyDLL(None).sleep(1000)  # keeps the interpreter locked
        if how == "print":
            for _ in range(3000):
                print("noise " * 200)
            sys.stdout.write("half a line")
            sys.stdout.flush()
            os.write(1, b"S" * 4096)
        if how == "close":
            os.close(1)
            os.close(0)
        if how == "read":
            assert sys.stdin.read() == ""


class Leaks(Toy):
    """Keeps two megabytes a step."""

    kept = []

    def step(self, action):
        self.kept.append(np.ones(2_000_000, np.uint8))
        return super().step(action)


class Children(Toy):
    """Starts a program of its own, as ViZDoom does."""

    def reset(self, *, seed=None, options=None):
        import subprocess

        if not hasattr(self, "child"):
            self.child = subprocess.Popen(["sleep", "1000"])
        return super().reset(seed=seed, options=options)

    def facts(self):
        return {"child": self.child.pid, "worker": os.getpid()}


class Words(Toy):
    """Shows neither a picture nor numbers."""

    observation_space = spaces.Text(10)

    def look(self):
        return "left" if self.x < 0 else "right"


class Polite(Toy):
    """Uses all that outlives a process: a server in a session of its own, a process of multiprocessing, temporary files, and
    shared memory and a semaphore with names, one that Python's resource tracker knows and one that it does not. Cleans up
    in close(). Writes what it uses to the file `report`.

    `end`: what close() does; `clean` by itself, `nothing`, `hang`, or `raise`. `fail`: in which step it raises."""

    def __init__(self, report=None, end="clean", fail=0, render_mode=None):
        super().__init__(render_mode)
        import multiprocessing
        import subprocess
        import tempfile
        from multiprocessing import shared_memory

        self.end, self.fail = end, fail
        self.server = subprocess.Popen(["sleep", "1000"], start_new_session=True)
        self.helper = multiprocessing.get_context("fork").Process(target=_sleep_in_own_session, daemon=True)
        self.helper.start()
        self.folder = tempfile.mkdtemp()
        open(os.path.join(self.folder, "file"), "w").close()
        self.memory = shared_memory.SharedMemory(create=True, size=1000)
        self.plain = "/dev/shm/polite-%d" % os.getpid()
        self.file = open(self.plain, "wb")
        self.lock = multiprocessing.get_context("spawn").Semaphore()
        if report:
            pids = [os.getpid(), self.server.pid, self.helper.pid]
            paths = [self.folder, "/dev/shm/" + self.memory.name, self.plain]
            paths.append("/dev/shm/sem." + self.lock._semlock.name[1:])
            with open(report, "a") as file:
                file.write(json.dumps({"pids": pids, "paths": paths, "keeper": os.getppid()}) + "\n")

    def step(self, action):
        if self.t + 1 == self.fail:
            raise ValueError("the polite one broke")
        return super().step(action)

    def close(self):
        if self.end == "nothing":
            return
        if self.end == "hang":
            time.sleep(1000)
        if self.end == "raise":
            raise ValueError("it cannot be closed")
        import shutil

        self.server.kill()
        self.server.wait()
        self.helper.kill()
        self.helper.join()
        shutil.rmtree(self.folder)
        self.memory.close()
        self.memory.unlink()
        self.file.close()
        os.unlink(self.plain)
        self.lock = None


def _sleep_in_own_session():
    os.setsid()
    time.sleep(1000)


class Closes(Toy):
    """Writes to the file `report` when it is closed, and when Python ends."""

    def __init__(self, report, render_mode=None):
        super().__init__(render_mode)
        import atexit

        self.report = report
        atexit.register(self.note, "exit")

    def note(self, what):
        with open(self.report, "a") as file:
            file.write(what + "\n")

    def close(self):
        self.note("close")


class Prints(Toy):
    """Prints `size` bytes in every step, then its number."""

    def __init__(self, size=8_000_000, render_mode=None):
        super().__init__(render_mode)
        self.text = "x" * size

    def step(self, action):
        print(self.text)
        got = super().step(action)
        print("step", self.t)
        if self.t == 12:
            os._exit(3)
        return got


class Odd(Toy):
    """Gives `value` for the part `what` of step 5: `reward`, `terminated`, `truncated`, `x` (a number that it shows) or
    `reset`, which raises. `value` is an expression."""

    def __init__(self, what, value="None", render_mode=None):
        super().__init__(render_mode)
        self.what, self.value = what, eval(value, {"np": np})

    def reset(self, *, seed=None, options=None):
        if self.what == "reset":
            raise ValueError("it cannot begin")
        return super().reset(seed=seed, options=options)

    def step(self, action):
        seen, reward, terminated, truncated, facts = super().step(action)
        given = {"reward": reward, "terminated": terminated, "truncated": truncated}
        if self.t == 5 and self.what in given:
            given[self.what] = self.value
        return seen, *given.values(), facts

    def look(self):
        x = self.value if self.what == "x" and self.t == 5 or self.what == "x0" else self.x
        return np.array([0.0, x], np.float32)


class OddPicture(Toy):
    """A picture of numbers from 0 to 1, one of which is none in step 5."""

    observation_space = spaces.Box(0.0, 1.0, (18, 16, 3), np.float32)

    def look(self):
        frame = np.full((18, 16, 3), 0.5, np.float32)
        if self.t == 5:
            frame[3, 4, 1] = np.nan
        return frame


class Still(gymnasium.Env):
    """Shows the same whatever happens; the reward is the action."""

    observation_space = spaces.Box(0, 255, (24, 24, 3), np.uint8)
    action_space = spaces.Box(-1.0, 1.0, (1,), np.float32)

    def __init__(self, render_mode=None):
        pass

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return np.zeros((24, 24, 3), np.uint8), {}

    def step(self, action):
        return np.zeros((24, 24, 3), np.uint8), float(action[0]), False, False, {}


class Times(gymnasium.RewardWrapper):
    """Multiplies rewards."""

    def __init__(self, env, factor):
        super().__init__(env)
        self.factor = factor

    def reward(self, reward):
        return reward * self.factor


def _register(name, kind, steps=60, **args):
    gymnasium.register(id="Toys/%s-v0" % name, entry_point=kind, max_episode_steps=steps, kwargs=args)


for _kind in (
    Toy,
    Picture,
    Trivial,
    Mixed,
    Grey,
    Stack,
    ColourStack,
    Acts,
    Breaks,
    Leaks,
    Children,
    Words,
    Polite,
    Closes,
    Prints,
    Odd,
    OddPicture,
    Still,
):
    _register(_kind.__name__, _kind, steps=None if _kind is Trivial else 60)


class Flawed(Toy):
    """Breaks one promise, `flaw`."""

    observation_space = spaces.Box(-10.0, 1000.0, (2,), np.float32)
    met = 0

    def __init__(self, flaw=None, render_mode=None):
        super().__init__(render_mode)
        self.flaw = flaw
        self.shown = np.zeros(2, np.float32)
        self.kept = []

    def reset(self, *, seed=None, options=None):
        Flawed.met += 1
        if self.flaw == "ignores seed" and seed is not None:
            seed = 5
        seen, facts = super().reset(seed=seed, options=options)
        if self.flaw == "clock":
            self.x += 1e-3 * (time.perf_counter_ns() % 97)
        if self.flaw == "hidden":
            self.x += 0.01 * min(Flawed.met - 1, 1)
        if self.flaw == "carried":
            self.x += 0.01 * getattr(self, "carry", 0.0)
        if self.flaw == "sets":
            self.x += 0.01 * list({"a", "b", "c", "d", "e", "f", "g", "h"}).index("a")
        if self.flaw == "info":
            return self.look(), None
        return self.look(), facts

    def step(self, action):
        flaw = self.flaw
        if flaw == "autoreset anew":
            return self.quiet(action)
        if flaw == "keeps action":
            if getattr(self, "last", None) is not None and self.t:
                self.x += 0.01 * float(self.last[0])
            self.last = action
        if flaw == "changes action":
            action *= 0.5
        seen, reward, terminated, truncated, facts = super().step(action)
        self.carry = self.x
        if flaw == "nan" and self.t == 7:
            seen[0] = np.nan
        if flaw == "bounds" and self.t == 7:
            seen[0] = -11.0
        if flaw == "shape":
            seen = seen.reshape(2, 1)
        if flaw == "dtype":
            seen = seen.astype(np.float64)
        if flaw == "text reward":
            reward = "1.5"
        if flaw == "no flag":
            truncated = None
        if flaw == "hangs" and self.t == 7 and Flawed.met == 2:
            time.sleep(1000)
        if flaw == "dies" and self.t == 7 and Flawed.met == 2:
            os._exit(3)
        if flaw == "reward":
            reward = float("nan") if self.t == 5 else reward
        if flaw == "reward array":
            reward = np.array([reward])
        if flaw == "flags":
            terminated = int(terminated)
        if flaw == "time limit":
            terminated = self.t == 30
        if flaw == "autoreset" and self.t == 30:
            self.x, self.t = self.start, 0
            return self.look(), reward, False, True, facts
        if flaw == "leak":
            self.kept.append(np.ones(100_000, np.uint8))
        if flaw == "common":
            self.x += 0.01 * np.random.normal()
        if flaw == "info":
            facts = None
        return seen, reward, terminated, truncated, facts

    def close(self):
        if self.flaw == "closes badly":
            raise ValueError("it cannot be closed")

    def quiet(self, action):
        """A step that draws nothing, but begins a new episode by itself."""
        self.t += 1
        self.move(action)
        over = self.t == 30
        if over:
            self.x, self.t = float(self.np_random.uniform(-1, 1)), 0
        return self.look(), self.reward(), False, over, self.facts()

    def look(self):
        if self.t == 0:
            self.start = self.x
        if self.flaw == "alias":
            self.shown[:] = (self.x, self.t)
            return self.shown
        if self.flaw == "reads back":
            if self.t:
                self.x += 0.01 * float(self.shown[0])
            self.shown = np.array([self.x, self.t], np.float32)
            return self.shown
        return super().look()

    def render(self):
        if self.flaw == "render":
            self.x += 0.01
        return super().render()


_register("Flawed", Flawed)


class Unseen(gymnasium.Env):
    """Spaces that no agent sees or acts in: `all` are texts, or `one of` several."""

    def __init__(self, how, render_mode=None):
        if how == "all":
            self.observation_space = self.action_space = spaces.Text(5)
        else:
            self.observation_space = spaces.OneOf([spaces.Discrete(3), spaces.Box(0, 1, (2,), np.float32)])
            self.action_space = spaces.OneOf([spaces.Discrete(2), spaces.Discrete(3)])

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.t = 0
        return self.look(), {}

    def look(self):
        self.observation_space.seed(int(self.np_random.integers(1000)))
        return self.observation_space.sample()

    def step(self, action):
        self.t += 1
        return self.look(), 1.0, False, self.t == 20, {}


class Bare(Toy):
    """`fixed`: without chance, over after seven steps; `common`: draws from numpy's common generator alone; `draws`: needs a
    package for drawing; `needs`: needs one for all."""

    metadata = {"render_modes": ["rgb_array"], "render_fps": 20}

    def __init__(self, how, render_mode=None):
        super().__init__(render_mode)
        self.how = how

    def reset(self, *, seed=None, options=None):
        gymnasium.Env.reset(self, seed=seed)
        if self.how == "needs":
            raise gymnasium.error.DependencyNotInstalled("no_such is not installed, run `pip install no_such`")
        self.x, self.t = 0.0, 0
        return self.look(), {}

    def step(self, action):
        self.t += 1
        self.move(action)
        if self.how == "common":
            self.x += 0.05 * np.random.normal()
        return self.look(), self.reward(), self.t == 7, False, {}

    def render(self):
        if self.how == "draws":
            raise ModuleNotFoundError("No module named 'pygame'")
        return super().render()


_register("Unseen", Unseen)
_register("Bare", Bare)
