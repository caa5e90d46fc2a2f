"""Hosts one Gymnasium environment for a parent that is connected to file descriptor 0.

The parent sends this text, after that of keeper.py, so that both always are of one version. Every request gets one reply,
and none is sent before the last was answered. Observations go to a memory file (descriptor 1) that both sides have open;
all else goes through the socket. What the environment prints goes to the keeper, which writes the end of it to
descriptor 2, a log that the parent keeps. When the parent hangs up, the environment is closed.

A program that Python runs can host its own environments, too: each copy in a thread, which runs this text under another name
and calls `serve_here`.

Needs Python 3.8, gymnasium 0.29 and numpy, nothing else.
"""

import ast
import atexit
import gc
import importlib
import json
import mmap
import os
import random
import resource
import socket
import shutil
import struct
import sys
import tempfile
import traceback

PROTOCOL = 1
# True in a thread of somebody else's program, whose processes, memory and times are none of ours.
HERE = __name__ != "foveate_worker"
OLDEST_PYTHON = (3, 8)
OLDEST_GYMNASIUM = (0, 29)
# Status, flags, nothing, bytes that follow (after steps: how many were made), a number.
REPLY = struct.Struct("<BBHId")
# How often the next request is looked for before the worker sleeps; how many waits may be in vain in a row, and after how
# many it looks again.
LOOKS, PATIENCE, AGAIN = 40, 2, 256
# Longer texts of wrappers are refused.
MOST_WRAPPERS = 2000
FINE, RAISED, REFUSED = 0, 1, 2
TERMINATED, TRUNCATED, HEAVY = 1, 2, 4
# Where ids come from that Gymnasium itself does not know: module to import, package to install.
HOMES = {
    "ALE": ("ale_py", "ale-py"),
    "MiniGrid": ("minigrid", "minigrid"),
    "BabyAI": ("minigrid", "minigrid"),
    "dm_control": ("shimmy", '"shimmy[dm-control]" mujoco==3.17.0 packaging'),
    "Vizdoom": ("vizdoom.gymnasium_wrapper", "vizdoom"),
    "highway": ("highway_env", "highway-env"),
    "MiniWorld": ("miniworld", "miniworld"),
    "procgen": ("procgen_gym", "procgen-gym"),
    "PyFlyt": ("PyFlyt.gym_envs", "PyFlyt"),
    "AntBullet": ("pybullet_envs_gymnasium", "pybullet pybullet_envs_gymnasium"),
    "HopperBullet": ("pybullet_envs_gymnasium", "pybullet pybullet_envs_gymnasium"),
    "HalfCheetahBullet": ("pybullet_envs_gymnasium", "pybullet pybullet_envs_gymnasium"),
}
# Extras of Foveate's package for Python by what they install.
EXTRAS = {"ale-py": "atari", "onnxruntime": "onnx", "pybullet pybullet_envs_gymnasium": "ant", "vizdoom": "take-cover"}
# Ids, and modules, of environments that write files where they are: they get a folder of their own.
LITTERERS = ("Vizdoom", "dm_control/")
LITTERING = ("gymnasium.envs.mujoco",)


# Environments to be closed in the end.
MADE = []


class Refusal(Exception):
    """Why there is no environment, or what is wrong with what it gave; and what to do about it."""


def close_all():
    """Closes environments, runs what is registered for the end of Python, and leaves. The keeper ends what takes too long.

    Python's own end is left out: it would destroy objects in no order, which graphics libraries are known to crash in."""
    tell_opened(TOLD)
    while MADE:
        try:
            MADE.pop().close()
        except BaseException:
            traceback.print_exc()
    try:
        atexit._run_exitfuncs()
    except BaseException:
        pass
    os._exit(0)


def version(text):
    numbers = []
    for part in text.split(".")[:2]:
        digits = "".join(c for c in part if c.isdigit())
        numbers.append(int(digits or 0))
    return tuple(numbers)


def pip(packages):
    """The command that installs packages here; an extra of Foveate's package where this interpreter has it."""
    if packages in EXTRAS:
        from importlib import metadata

        if any(True for _ in metadata.distributions(name="foveate")):
            packages = '"foveate[%s]"' % EXTRAS[packages]
    return "%s -m pip install %s" % (sys.executable or "python3", packages)


def toolbox():
    """Gymnasium and numpy, if they are there and new enough."""
    if sys.version_info[:2] < OLDEST_PYTHON:
        raise Refusal("%s is Python %d.%d; 3.8 or newer is needed" % ((sys.executable,) + sys.version_info[:2]))
    try:
        import numpy
    except ImportError as error:
        raise Refusal("numpy cannot be imported (%s); install it with: %s" % (error, pip("numpy")))
    try:
        import gymnasium
    except ImportError as error:
        raise Refusal("gymnasium cannot be imported (%s); install it with: %s" % (error, pip("gymnasium")))
    if version(gymnasium.__version__) < OLDEST_GYMNASIUM:
        raise Refusal(
            "gymnasium %s is too old; install a newer one with: %s"
            % (gymnasium.__version__, pip('--upgrade "gymnasium>=1.0"'))
        )
    return gymnasium, numpy


def screenless():
    """Lets MuJoCo draw without a screen. Left alone it takes a library for windows, which then fails to open one."""
    if sys.platform != "linux" or any(os.environ.get(name) for name in ("MUJOCO_GL", "DISPLAY", "WAYLAND_DISPLAY")):
        return
    import ctypes

    for name, library in (("egl", "libEGL.so.1"), ("osmesa", "libOSMesa.so.8")):
        try:
            ctypes.CDLL(library)
        except OSError:
            continue
        os.environ["MUJOCO_GL"] = name
        return


def litters(gymnasium, name):
    if name.split(":")[-1].startswith(LITTERERS):
        return True
    known = gymnasium.envs.registration.registry.get(name)
    return str(getattr(known, "entry_point", None)).startswith(LITTERING)


def other_folder():
    """Goes to a new folder, which the keeper removes with all other temporary files."""
    os.chdir(tempfile.mkdtemp(prefix="files-"))


def home(name):
    """Imports the package that an id usually comes from; gives what to install if it is not there."""
    bare = name.split(":")[-1]
    for prefix, (module, package) in HOMES.items():
        if bare.startswith(prefix):
            try:
                importlib.import_module(module)
            except ImportError as error:
                return "%s cannot be imported (%s); install it with: %s" % (module, error, pip(package))
    return None


def make(gymnasium, name, args, render, wrapper=None):
    """The environment. It gets a render mode for pictures if it takes one and none was asked for."""
    screenless()
    if litters(gymnasium, name) and not os.path.basename(os.getcwd()).startswith("files-"):
        other_folder()
    missing = home(name)
    args = dict(args)
    attempts = [dict(args, render_mode="rgb_array"), args] if render and "render_mode" not in args else [args]
    for attempt in attempts:
        try:
            env = gymnasium.make(name, disable_env_checker=True, **attempt)
            MADE.append(env)
            env = MADE[-1] = wrapped(gymnasium, env, wrapper)
            return env
        except Refusal:
            raise
        except Exception as error:
            if attempt is not attempts[-1]:
                continue
            if missing:
                raise Refusal(missing)
            if isinstance(error, gymnasium.error.DependencyNotInstalled):
                raise Refusal("%s needs a package that is not installed: %s" % (name, one_line(error)))
            if isinstance(error, (gymnasium.error.UnregisteredEnv, ModuleNotFoundError)):
                raise Refusal(
                    "%s; if it comes from a package of its own, install that, or name the folder it is in with the setting "
                    "`option path=FOLDER` (path=. is this one), and name its module too, as in gym:my_package:MyWorld-v0"
                    % one_line(error)
                )
            raise


def wrapped(gymnasium, env, text):
    """Puts wrappers of Gymnasium's kind around an environment, as in `minigrid.wrappers.RGBImgObsWrapper(tile_size=12) +
    gymnasium.wrappers.FlattenObservation`, the first innermost."""
    if not text:
        return env

    def bad(why):
        return Refusal(
            "gym_wrapper=%s: %s; write it as in minigrid.wrappers.RGBImgObsWrapper(tile_size=12), several with + between "
            "them" % (text[:200], why)
        )

    def dotted(node):
        if isinstance(node, ast.Attribute):
            return "%s.%s" % (dotted(node.value), node.attr)
        if isinstance(node, ast.Name):
            return node.id
        raise bad("it is no name with dots")

    if len(text) > MOST_WRAPPERS:
        raise bad("%d characters; at most %d are read" % (len(text), MOST_WRAPPERS))
    try:
        node = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise bad("it cannot be read")
    calls = []
    while isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        calls.append(node.right)
        node = node.left
    for call in [node] + calls[::-1]:
        args, named = [], {}
        if isinstance(call, ast.Call):
            try:
                args = [ast.literal_eval(value) for value in call.args]
                named = {pair.arg: ast.literal_eval(pair.value) for pair in call.keywords}
            except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
                raise bad("its arguments must be plain values")
            if None in named:
                raise bad("its arguments must be plain values")
            call = call.func
        # A module, which is imported, and the class in it: nothing else is looked up, and nothing else is called.
        module, _, name = dotted(call).rpartition(".")
        try:
            wrapper = getattr(importlib.import_module(module or "gymnasium.wrappers"), name)
        except ImportError as error:
            raise bad("%s (the setting `option path=FOLDER` names the folder of a package that is not installed)" % one_line(error))
        except AttributeError as error:
            raise bad(one_line(error))
        if not (isinstance(wrapper, type) and issubclass(wrapper, gymnasium.Wrapper)):
            raise bad("%s is no class of wrappers, which all derive from gymnasium.Wrapper" % dotted(call))
        env = wrapper(env, *args, **named)
    return env


def one_line(error):
    return " ".join(str(error).split())


class Hands:
    """Turns the numbers of the parent into actions: of a Box its own numbers, of a choice one score for each."""

    def __init__(self, gymnasium, numpy, space, exact):
        self.spaces, self.np, self.exact = gymnasium.spaces, numpy, exact
        self.low, self.high, self.names = [], [], []
        self.choices = int(space.n) if isinstance(space, self.spaces.Discrete) else 0
        self.read = self.plan(space, "action")
        self.count = len(self.low)

    def plan(self, space, name):
        spaces, np = self.spaces, self.np
        at = len(self.low)
        if isinstance(space, spaces.Box):
            if space.dtype.kind not in "fiu":
                raise Refusal("its actions (%s) are numbers of the kind %s" % (name, space.dtype))
            count, shape, dtype = int(np.prod(space.shape)), space.shape, space.dtype
            self.low += [finite(x, -1.0) for x in space.low.reshape(-1).tolist()]
            self.high += [finite(x, 1.0) for x in space.high.reshape(-1).tolist()]
            self.names += ["%s[%d]" % (name, i) for i in range(count)]
            if dtype.kind == "f":
                dtype = np.float64 if self.exact else dtype
                return lambda row: row[at : at + count].astype(dtype).reshape(shape)
            low, high = space.low, space.high
            return lambda row: np.clip(np.rint(row[at : at + count]).reshape(shape), low, high).astype(dtype)
        if isinstance(space, spaces.Discrete):
            start = int(space.start)
            if name == "action":
                # The parent has already chosen.
                self.low, self.high = [0.0], [float(space.n - 1)]
                return lambda row: np.int64(start + int(row[0]))
            self.scores(name, int(space.n))
            end = len(self.low)
            return lambda row: np.int64(start + int(np.argmax(row[at:end])))
        if isinstance(space, spaces.MultiDiscrete):
            counts = [int(n) for n in space.nvec.reshape(-1)]
            for i, n in enumerate(counts):
                self.scores("%s[%d]" % (name, i), n)
            edges = [at]
            for n in counts:
                edges.append(edges[-1] + n)
            starts = np.asarray(getattr(space, "start", 0)) + np.zeros(space.nvec.shape, space.dtype)
            shape, dtype, pairs = space.nvec.shape, space.dtype, list(zip(edges, edges[1:]))
            return lambda row: (
                np.array([np.argmax(row[a:b]) for a, b in pairs], dtype).reshape(shape) + starts
            ).astype(dtype)
        if isinstance(space, spaces.MultiBinary):
            count, shape = int(np.prod(space.shape)), space.shape
            self.scores(name, count)
            return lambda row: (row[at : at + count] > 0.5).astype(np.int8).reshape(shape)
        if isinstance(space, spaces.Dict):
            readers = [(key, self.plan(part, "%s.%s" % (name, key))) for key, part in space.spaces.items()]
            return lambda row: {key: read(row) for key, read in readers}
        if isinstance(space, spaces.Tuple):
            readers = [self.plan(part, "%s.%d" % (name, i)) for i, part in enumerate(space.spaces)]
            return lambda row: tuple(read(row) for read in readers)
        raise Refusal("its actions (%s) are of the kind %s, which no agent gives" % (name, type(space).__name__))

    def scores(self, name, count):
        self.low += [0.0] * count
        self.high += [1.0] * count
        self.names += ["%s=%d" % (name, i) for i in range(count)]


def frames_a_second(name, metadata):
    fps = finite(metadata.get("render_fps") or 0.0, 0.0)
    # Shimmy tells the milliseconds of a step instead.
    return 1000.0 / fps if name.split(":")[-1].startswith("dm_control/") and fps else fps


def finite(value, otherwise):
    return float(value) if abs(value) < 1e300 and value == value else otherwise


def plain(value, depth=0):
    """What JSON can say of a value, or None: numbers, words and short lists of them."""
    if isinstance(value, (bool, int, str)) or value is None:
        return value
    if isinstance(value, float):
        return value if value == value and abs(value) != float("inf") else repr(value)
    if hasattr(value, "tolist") and getattr(value, "size", 99) <= 64:
        return plain(value.tolist(), depth)
    if depth < 3 and isinstance(value, (list, tuple)) and len(value) <= 64:
        return [plain(item, depth + 1) for item in value]
    if depth < 3 and isinstance(value, dict) and len(value) <= 64:
        return {str(key): plain(item, depth + 1) for key, item in value.items()}
    return None


def megabytes():
    """Memory of this process."""
    if HERE:
        return 0.0
    try:
        return int(os.pread(STATM, 100, 0).split()[1]) * resource.getpagesize() / 1e6
    except OSError:
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak / 1e6 if sys.platform == "darwin" else peak / 1e3


def seconds():
    """CPU time of this process and of the programs that it started and waited for."""
    if HERE:
        return 0.0
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def story(error):
    """The traceback, without our own frames; last the error itself, on one line."""
    frames = [f for f in traceback.extract_tb(error.__traceback__) if f.filename != "<foveate worker>"]
    text = "".join(traceback.format_list(frames))
    return "Traceback (most recent call last):\n%s%s" % (
        text,
        "".join(traceback.format_exception_only(type(error), error)),
    )


def as_number(reward):
    """A reward as a number: of Python, of numpy, of an array with one element, or of what counts as one."""
    np = sys.modules["numpy"]
    if not isinstance(reward, (str, bytes, bytearray, list, tuple, dict, type(None))):
        try:
            array = np.asarray(reward)
            if array.size == 1 and array.dtype.kind in "biuf":
                return float(array.reshape(-1)[0])
            if array.size == 1 and array.dtype.kind == "O":
                return float(reward)
        except (TypeError, ValueError, RuntimeError):
            pass
    raise Refusal("%s is no reward; step() must give one number" % described(reward))


def as_flag(value, name):
    """`terminated` or `truncated` as a boolean: of Python, of numpy, 0 or 1, or an array with one of these."""
    np = sys.modules["numpy"]
    if isinstance(value, (int, np.generic, np.ndarray)):
        array = np.asarray(value)
        if array.size == 1 and array.dtype.kind in "biuf" and array.reshape(-1)[0] in (0, 1):
            return bool(array.reshape(-1)[0])
    raise Refusal("%s is %s; step() must give True or False" % (name, described(value)))


def described(value):
    """A value that is no number, in a few words."""
    shape = getattr(value, "shape", None)
    if shape:
        return "an array of shape %s" % (tuple(shape),)
    text = one_line(repr(value))
    return "%s (%s)" % (text if len(text) <= 40 else text[:37] + "...", type(value).__name__)


class Host:
    """The environment and the parent's requests to it. `made` is the environment, if the caller has made it; `renew` makes it again
    for every further episode, where a reset does not begin it anew."""

    def __init__(self, control, memory, request, made=None, renew=None):
        self.control, self.memory = control, memory
        self.renew, self.played = renew, False
        if request.get("path"):
            sys.path.insert(0, os.path.abspath(request["path"]))
        gymnasium, numpy = toolbox()
        self.np = numpy
        if made is None:
            self.env = make(gymnasium, request["id"], request["args"], request["render"], request.get("wrapper"))
        else:
            self.env = wrapped(gymnasium, made, request.get("wrapper"))
        space = self.env.observation_space
        drawn = None
        if request.get("drawn"):
            if getattr(self.env, "render_mode", None) != "rgb_array":
                raise Refusal("it has no render mode rgb_array, so it draws nothing to see; leave out the setting `picture render`")
            self.env.reset(seed=0)
            drawn = self.draw().shape[1::-1]
        self.eyes = Eyes(gymnasium, numpy, space, request.get("image"), drawn, request.get("whole", False))
        if not self.eyes.copies and not drawn:
            raise Refusal("nothing in its observation is a picture or a number: %s" % (space,))
        self.hands = Hands(gymnasium, numpy, self.env.action_space, request.get("exact_actions", False))
        if self.hands.count > 4096:
            raise Refusal("its action is %d numbers; at most 4096 are possible" % self.hands.count)
        self.limit = request["megabytes"]
        # Our own environments may know a faster way than so many steps; wrappers around them have no part in it.
        self.repeat = getattr(self.env.unwrapped, "foveate_repeat", None) if request.get("more") else None
        self.info = {}
        spec, metadata = getattr(self.env, "spec", None), getattr(self.env, "metadata", None) or {}
        picture, numbers = self.eyes.bytes()
        if picture + numbers > request["most_bytes"]:
            raise Refusal("its observation is %d bytes; at most %d are possible" % (picture + numbers, request["most_bytes"]))
        self.write = self.eyes.open(memory)
        self.frame = None
        if drawn:
            self.write = self.also_drawn(self.write)
        self.hello = {
            "protocol": PROTOCOL,
            "python": "%d.%d.%d" % sys.version_info[:3],
            "executable": sys.executable,
            "gymnasium": gymnasium.__version__,
            "numpy": numpy.__version__,
            "picture": list(self.eyes.size) if self.eyes.size else None,
            "frames": self.eyes.frames,
            "channels": self.eyes.channels,
            "depth": bool(self.eyes.depth),
            "numbers": self.eyes.numbers,
            "numbers_at": picture,
            "parts": self.eyes.parts,
            "spans": self.eyes.spans,
            "left_out": self.eyes.left_out,
            "choices": self.hands.choices,
            "low": self.hands.low,
            "high": self.hands.high,
            "actions": self.hands.names,
            "max_steps": getattr(spec, "max_episode_steps", None),
            "fps": frames_a_second(request["id"], metadata),
            "renders": getattr(self.env, "render_mode", None) == "rgb_array",
            "expert": callable(getattr(self.env.unwrapped, "foveate_expert", None)),
            "costs": callable(getattr(self.env.unwrapped, "foveate_costs", None)),
            "gaze": callable(getattr(self.env.unwrapped, "foveate_gaze", None)),
            "nondeterministic": bool(getattr(spec, "nondeterministic", False)),
        }

    def reset(self, seed):
        if self.renew is not None and self.played:
            self.env = self.renew()
        self.played = True
        # For environments that draw from the common generators instead of their own.
        random.seed(seed)
        self.np.random.seed(seed % 2**32)
        observation, self.info = self.env.reset(seed=seed)
        self.write(observation)
        if not HERE:
            gc.freeze()

    def draw(self):
        """A picture for people, `[height, width, 3]`."""
        frame = self.env.render()
        if isinstance(frame, list):
            frame = frame[-1] if frame else None
        if frame is None:
            raise ValueError("render() gave no picture; it gives one with render_mode=rgb_array")
        frame = self.np.asarray(frame)
        if frame.ndim != 3 or frame.shape[2] not in (3, 4):
            raise ValueError("render() gave an array of shape %s, no picture" % (frame.shape,))
        return self.np.ascontiguousarray(frame[..., :3], dtype=self.np.uint8)

    def also_drawn(self, write):
        """Writes an observation and the picture that render() draws of it."""
        width, height = self.eyes.size
        target = self.np.frombuffer(self.eyes.map, self.np.uint8, width * height * 3).reshape(height, width, 3)

        def write_both(observation):
            write(observation)
            self.frame = self.draw()
            if self.frame.shape != target.shape:
                raise ValueError("render() gave a picture of shape %s; the first had %s" % (self.frame.shape, target.shape))
            self.np.copyto(target, self.frame)

        return write_both

    def picture(self):
        try:
            frame = self.draw() if self.frame is None else self.frame
        except sys.modules["gymnasium"].error.DependencyNotInstalled as error:
            # Nothing is wrong with the environment; only people cannot see it.
            return struct.pack("<II", 0, 0) + one_line(error).encode()[:1000]
        return struct.pack("<II", frame.shape[1], frame.shape[0]) + frame.tobytes()

    def serve(self):
        """Answers requests until the parent hangs up."""
        control, np, env = self.control, self.np, self.env
        count = self.hands.count
        step_bytes = 8 + 8 * count
        request = bytearray(max(step_bytes, 4096))
        row = np.frombuffer(request, "<f8", count, 8)
        recv_into, sendall, pack = control.recv_into, control.sendall, REPLY.pack
        act, step, write = self.hands.read, env.step, self.write
        repeat = self.repeat
        view = memoryview(request)
        steps = waits = vain = 0
        while True:
            got = -1
            if request[1] and (vain < PATIENCE or waits % AGAIN == 0):
                # Waking a sleeping core costs more than a short wait; src/process.rs says where this is allowed.
                for _ in range(LOOKS):
                    try:
                        got = recv_into(request, 0, socket.MSG_DONTWAIT)
                        break
                    except BlockingIOError:
                        pass
                vain = 0 if got >= 0 else vain + 1
            waits += 1
            if got < 0:
                got = recv_into(request)
            if got == 0:
                return
            wanted = step_bytes if request[0] == 83 else 16
            while got < wanted:
                more = recv_into(view[got:])
                if more == 0:
                    return
                got += more
            try:
                if request[0] == 83:  # S: one step or several with the same action
                    times = request[2] | request[3] << 8
                    made = 0
                    if repeat:
                        observation, reward, terminated, truncated, self.info, made = repeat(act(row), times)
                    else:
                        total = 0.0
                        while made < times:
                            observation, reward, terminated, truncated, self.info = step(act(row))
                            made += 1
                            if not isinstance(reward, float):
                                reward = as_number(reward)
                            if terminated is not False and terminated is not True:
                                terminated = as_flag(terminated, "terminated")
                            if truncated is not False and truncated is not True:
                                truncated = as_flag(truncated, "truncated")
                            total += reward
                            if terminated or truncated or total - total != 0.0:
                                break
                        reward = total
                    write(observation)
                    flags = (TERMINATED if terminated else 0) | (TRUNCATED if truncated else 0)
                    steps += 1
                    if steps & 31 == 0 and megabytes() > self.limit:
                        flags |= HEAVY
                        if megabytes() > 2 * self.limit:
                            raise MemoryError(
                                "the worker uses %d MB, twice what the option memory=%d allows" % (megabytes(), self.limit)
                            )
                    sendall(pack(FINE, flags, 0, made, reward))
                    continue
                data = b""
                flags = 0
                number = 0.0
                if request[0] == 82:  # R: reset
                    self.reset(struct.unpack_from("<Q", request, 8)[0])
                    env, step = self.env, self.env.step
                    number = seconds()
                    if megabytes() > self.limit:
                        flags = HEAVY
                elif request[0] == 73:  # I: the info of the last step
                    scalars = {str(key): plain(value) for key, value in dict(self.info).items()}
                    data = json.dumps({key: value for key, value in scalars.items() if value is not None}).encode()
                elif request[0] == 80:  # P: a picture for people
                    data = self.picture()
                elif request[0] == 69:  # E: what an expert would do
                    advice = [float(number) for number in env.unwrapped.foveate_expert()]
                    data = struct.pack("<%dd" % len(advice), *advice)
                elif request[0] == 67:  # C: what actions cost
                    costs = [float(number) for number in env.unwrapped.foveate_costs()]
                    data = struct.pack("<%dd" % len(costs), *costs)
                elif request[0] == 71:  # G: where the expert looks
                    points = [float(number) for point in env.unwrapped.foveate_gaze() for number in point]
                    data = struct.pack("<%dd" % len(points), *points)
                elif request[0] == 84:  # T: CPU time so far
                    number = seconds()
                else:
                    raise ValueError("no request has the number %d" % request[0])
                sendall(pack(FINE, flags, 0, len(data), number))
                if data:
                    sendall(data)
            except Refusal as error:
                text = str(error).encode()
                sendall(pack(REFUSED, 0, 0, len(text), 0.0) + text)
            except BaseException as error:  # also of an environment that wants to leave
                if HERE:
                    errors.append(error)
                text = story(error).encode()
                sendall(pack(RAISED, 0, 0, len(text), 0.0) + text)


def forked():
    """In a process that the environment forked: what is between us and the parent is not its business."""
    control.close()


def main():
    global PRINTED, TOLD, STATM
    memory = os.dup(1)
    os.dup2(2, 1)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    PRINTED, TOLD = keep(control, memory)
    os.register_at_fork(after_in_child=forked)
    try:
        STATM = os.open("/proc/self/statm", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        STATM = -1
    import faulthandler

    faulthandler.enable()

    def begun(request):
        if request["protocol"] != PROTOCOL:
            raise Refusal("it speaks protocol %d, Foveate %d" % (PROTOCOL, request["protocol"]))
        if request.get("more"):
            exec(compile(request["more"], "<foveate worker>", "exec"), globals())
        return JOBS[request["job"]](control, memory, request)

    serve(begun)
    close_all()


def serve(begun):
    """Reads the job, begins it and serves until the parent hangs up."""
    request = json.loads(read(struct.unpack("<I", read(4))[0]).decode())
    try:
        host = begun(request)
        answer = dict(host.hello, fine=True)
    except Refusal as error:
        answer = {"fine": False, "why": str(error), "story": ""}
    except SyntaxError as error:
        answer = {"fine": False, "why": "%s: %s" % (sys.executable, one_line(error)), "story": ""}
    except BaseException as error:
        if HERE:
            errors.append(error)
        text = story(error)
        answer = {"fine": False, "why": text.strip().splitlines()[-1], "story": text}
    try:
        send(answer)
        if answer["fine"]:
            host.serve()
    except OSError:
        pass  # the parent is gone


def serve_here(copy, renew, memory, seen):
    """Serves what `copy` makes in the program that this thread belongs to, see `Host`; `seen` is called with what translates its
    observations."""

    def begun(request):
        made = copy()
        host = Host(control, memory, request, made, renew())
        seen(host.eyes)
        return host

    serve(begun)


def send(message):
    """Sends an object to the parent, while it waits for the answer to its job."""
    data = json.dumps(message).encode()
    control.sendall(struct.pack("<I", len(data)) + data)


JOBS = {"host": Host}
if not HERE:
    main()
