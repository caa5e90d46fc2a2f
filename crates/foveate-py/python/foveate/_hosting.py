"""Environments of the calling program as worlds: each copy is stepped in a thread of this process.

The threads run the program that worker processes run for ``gym:`` worlds, so both see, act and fail alike.
"""

from __future__ import annotations

import contextlib
import contextvars
import copy
import functools
import inspect
import os
import random
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from typing import Any, ParamSpec, TypeVar

import gymnasium
import numpy as np

from . import _native
from .envs import World, request_of
from .errors import FoveateError, OptionError

_P = ParamSpec("_P")
_R = TypeVar("_R")


class _OfBatch(gymnasium.Env[Any, Any]):
    """The one environment of a batch of Stable-Baselines3's, with its wrappers of batches."""

    def __init__(self, batch: Any) -> None:
        self.batch = batch
        self.observation_space, self.action_space = batch.observation_space, batch.action_space
        self.render_mode = getattr(batch, "render_mode", None)
        while batch is not None:
            if hasattr(batch, "norm_reward"):
                # Statistics are those of the training, and returns those of the world.
                batch.training = batch.norm_reward = False
            batch = getattr(batch, "venv", None)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        if seed is not None:
            self.batch.seed(seed)
        return _first(self.batch.reset()), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        seen, rewards, dones, infos = self.batch.step(np.asarray([action]))
        (info,), done = infos, bool(dones[0])
        truncated = done and bool(info.get("TimeLimit.truncated", False))
        # The batch has begun the next episode; what ended this one is kept aside.
        last = info["terminal_observation"] if done and "terminal_observation" in info else _first(seen)
        return last, float(rewards[0]), done and not truncated, truncated, info

    def render(self) -> Any:
        return self.batch.render()

    def close(self) -> None:
        self.batch.close()


def _copied(env: Any) -> Any:
    """A deep copy, also of wrappers of batches that leave out what they wrap when they are copied."""
    if not hasattr(env, "step_async") or getattr(env, "venv", None) is None:
        return copy.deepcopy(env)
    made = object.__new__(type(env))
    inner = _copied(env.venv)
    own = {name: part for name, part in vars(env).items() if name not in ("venv", "class_attributes")}
    made.__dict__.update(vars(env) | copy.deepcopy(own, {id(env.venv): inner}) | {"venv": inner})
    return made


def _named_after(env: Any) -> str:
    """The environment's id, or the name of its class."""
    while getattr(env, "venv", None) is not None:
        env = env.venv
    env = next(iter(getattr(env, "envs", None) or [env]))
    spec = getattr(env, "spec", None)
    return getattr(spec, "id", None) or type(getattr(env, "unwrapped", env)).__name__


def _remembers(env: Any) -> bool:
    """Whether a reset in the middle of an episode begins another one than a reset at first, as with wrappers that end an episode at
    each lost life."""

    def begun() -> Any:
        random.seed(0)
        np.random.seed(0)
        return env.reset(seed=0)[0]

    first = copy.deepcopy(begun())
    env.action_space.seed(0)
    for steps in (3, 1):
        # Stops at the end of an episode.
        if not any(any(env.step(env.action_space.sample())[2:4]) for _ in range(steps)):
            return not _alike(first, begun())
        begun()
    return False


def _alike(a: Any, b: Any) -> bool:
    if isinstance(a, dict):
        return all(_alike(a[name], b[name]) for name in a)
    if isinstance(a, tuple):
        return all(map(_alike, a, b))
    return bool(np.array_equal(a, b))


def _first(seen: Any) -> Any:
    if isinstance(seen, dict):
        return {name: part[0] for name, part in seen.items()}
    return tuple(part[0] for part in seen) if isinstance(seen, tuple) else seen[0]


def is_environment(world: Any) -> bool:
    """Whether ``world`` is an environment of Python's, or makes one: not one of Foveate's alone, which native code makes again."""
    if world is None or isinstance(world, (str, os.PathLike)):
        return False
    if isinstance(getattr(world, "unwrapped", None), World):
        try:
            request_of(world)
        except OptionError:
            # It has wrappers of Python's.
            return True
        return False
    return _steps(world) or callable(world)


def _steps(world: Any) -> bool:
    return not isinstance(world, type) and all(hasattr(world, name) for name in ("reset", "step", "observation_space", "action_space"))


def _checked(env: Any) -> Any:
    """``env``, if it is one environment."""
    if not _steps(env):
        raise OptionError(f"world made a {type(env).__name__}; give an environment of Gymnasium, or a function that makes one")
    if hasattr(env, "num_envs") and hasattr(env, "step_async"):
        if env.num_envs != 1:
            raise OptionError(f"world is a batch of {env.num_envs} environments; give one, or a batch of one")
        return env
    if hasattr(env, "num_envs"):
        raise OptionError(f"world is a batch of {env.num_envs} environments ({type(env).__name__}); give one environment")
    if type(env).__module__.split(".")[0] == "gym":
        raise OptionError(f"world is an environment of gym ({type(env).__name__}), which Gymnasium replaced; give one of Gymnasium")
    return env


def _single(env: Any) -> gymnasium.Env[Any, Any]:
    """``env`` with the interface of one environment of Gymnasium."""
    env = _checked(env)
    return _OfBatch(env) if hasattr(env, "step_async") else env


class Hosted:
    """An environment, or what makes one, as a world."""

    def __init__(self, given: Any) -> None:
        self._lock = threading.Lock()
        #: Whether only a new copy begins an episode anew; `None` until it was tried.
        self._remembers: bool | None = None
        #: What the environment raised.
        self.errors: list[BaseException] = []
        self._given: Any = None
        #: The way back from what its world shows.
        self._original: Any = None
        if _steps(given):
            self._given, env = given, _checked(given)
            self._made: list[Any] = []
        else:
            self._make, env = given, _checked(given())
            self._first = env
            self._made = [env]
        self.observation_space, self.action_space = env.observation_space, env.action_space
        self.name = "".join(c if c.isalnum() or c in "-_./:" else "-" for c in _named_after(env))[:100]

    def copy(self) -> gymnasium.Env[Any, Any]:
        """Another one, for a world of its own."""
        with self._lock:
            if self._made:
                return _single(self._made.pop())
            if self._given is None:
                made = self._make()
                if made is self._first:
                    raise OptionError(f"world returned the same {type(made).__name__} again; it makes a new one each time it is called")
                return _single(made)
            try:
                return _single(_copied(self._given))
            except OptionError:
                raise
            except Exception as error:
                why = " ".join(f"{type(error).__name__}: {error}".split())
            with contextlib.suppress(Exception):
                return _single(gymnasium.make(self._given.spec))
            raise OptionError(
                f"{type(self._given).__name__} cannot be copied ({why}), and Foveate plays in copies; give a function that makes it: "
                "world=lambda: …"
            )

    def serve(self, control: int, memory: int) -> None:
        """Serves a copy from a new thread until ``control`` is closed."""
        threading.Thread(target=self._serve, args=(control, memory), name=f"world {self.name}", daemon=True).start()

    def _serve(self, control: int, memory: int) -> None:
        made: list[Any] = []

        def make() -> Any:
            while made:
                self._close(made.pop())
            made.append(self.copy())
            if self._remembers is None:
                try:
                    self._remembers = again = _remembers(made[0])
                except Exception:
                    # The first episode tells what is wrong.
                    self._remembers, again = False, True
                if again:
                    return make()
            return made[0]

        def renew() -> Any:
            return make if self._remembers else None

        with socket.socket(fileno=control) as connection:

            def read(count: int) -> bytes:
                data = b""
                while len(data) < count:
                    more = connection.recv(count - len(data))
                    if not more:
                        raise EOFError
                    data += more
                return data

            with contextlib.suppress(EOFError):
                source = read(struct.unpack("<I", read(4))[0])
                worker: dict[str, Any] = {
                    "__name__": "foveate_worker_here", "control": connection, "read": read, "errors": self.errors
                }
                exec(_compiled(source), worker)

                def seen(eyes: Any) -> None:
                    spaces = self.observation_space, self.action_space
                    self._original = worker["Original"](gymnasium, np, *spaces, eyes, OptionError)

                worker["serve_here"](make, renew, memory, seen)
        os.close(memory)
        for env in made:
            self._close(env)

    @staticmethod
    def _close(env: Any) -> None:
        with contextlib.suppress(Exception):
            env.close()

    # Between the environment and its world.

    def original(self, shown: Any) -> Any:
        """The observation as the environment gives it, of what its world shows."""
        return self._original.observation(shown)

    def action(self, given: Any) -> Any:
        """The action as its world takes it, of one that the environment takes, or of scores of choices."""
        return self._original.action(given)

    def map(self, given: Any) -> Any:
        """A map of what matters as its world takes it, of one over a part of the observation, or over several by name."""
        return self._original.map(given)


@functools.lru_cache(maxsize=2)
def _compiled(source: bytes) -> Any:
    return compile(source, "<foveate worker>", "exec")


#: The environment of the calling program that a job plays in.
_CURRENT: contextvars.ContextVar[Hosted | None] = contextvars.ContextVar("foveate_hosted", default=None)


def current() -> Hosted | None:
    """The environment of the calling program that the current job plays in."""
    return _CURRENT.get()


@contextlib.contextmanager
def _named(world: Any) -> Iterator[str]:
    """The name of the environment's world, as long as the job runs."""
    drawn = random.getstate(), np.random.get_state()
    hosted = Hosted(world)
    name = _native.HostedWorld(hosted.name, hosted.serve)
    token = _CURRENT.set(hosted)
    try:
        yield name.world()
    except FoveateError as error:
        if hosted.errors and error.__cause__ is None:
            # With the traceback of the environment's own code.
            raise error from hosted.errors[-1]
        raise
    finally:
        _CURRENT.reset(token)
        name.close()
        # Environments may draw from the common generators, which were seeded for each episode.
        random.setstate(drawn[0])
        np.random.set_state(drawn[1])


def hosts(job: Callable[_P, _R]) -> Callable[_P, _R]:
    """A job whose ``world`` may also be an environment of Gymnasium, a batch of one, or a function that makes one."""
    signature = inspect.signature(job)

    @functools.wraps(job)
    def called(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        given = signature.bind(*args, **kwargs)
        world = given.arguments.get("world")
        if not is_environment(world):
            return job(*args, **kwargs)
        with _named(world) as name:
            given.arguments["world"] = name
            return job(*given.args, **given.kwargs)

    return called
