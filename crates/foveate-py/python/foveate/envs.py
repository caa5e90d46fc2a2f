"""Foveate's worlds with the interface of Gymnasium.

``import foveate`` registers them::

    import gymnasium, foveate
    env = gymnasium.make("foveate/CarRacing-v3")
    envs = gymnasium.make_vec("foveate/CarRacing-v3", num_envs=8, picture="fast")

Any other native world, such as ``take-cover``, is `World` or `VectorEnv` with its name.

Copies (`copy.copy`, `copy.deepcopy`) and pickles of a running world keep its episode: they go on as the original does. A pickle has
the actions since the last seed and plays them again where it is read; of a world that has had too many, it is an error.
"""

from __future__ import annotations

import copy as copying
import enum
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import gymnasium
import numpy as np
import numpy.typing as npt
from gymnasium import spaces
from gymnasium.vector.utils import batch_space

from . import _native
from .errors import FoveateError, OptionError

#: Whether this Gymnasium, 1.1 or newer, knows batches of worlds as `VectorEnv` is one. Single worlds work from 0.29 on.
_BATCHES = hasattr(gymnasium.vector, "AutoresetMode")

if TYPE_CHECKING or _BATCHES:
    from gymnasium.vector import AutoresetMode

    _VectorEnv = gymnasium.vector.VectorEnv[Any, Any, Any]
else:

    class AutoresetMode(enum.Enum):
        NEXT_STEP = "NextStep"
        SAME_STEP = "SameStep"
        DISABLED = "Disabled"

    _VectorEnv = gymnasium.vector.VectorEnv

__all__ = ["CarRacing", "CartPoleSwingUpHarder", "DMControl", "DoorKey", "MiniGrid", "VectorEnv", "World", "register"]

#: Numbers of the register that the time limits of the registered worlds come from.
_CAR_RACING_STEPS = 1000
_CARTPOLE_STEPS = 1000

_MODES = ["human", "rgb_array", "state_pixels"]
#: Width and height of rendered pictures; CarRacing's are those of Gymnasium.
_SIZES = {"car-racing": (600, 400), "cartpole-swingup-harder": (600, 400)}
_OTHER_SIZE = (480, 480)
_MOST_SEED = 2**64 - 1


def _texts(given: str | Iterable[str] | None) -> list[str]:
    """Names that may be given alone."""
    if given is None:
        return []
    return [given] if isinstance(given, str) else [str(text) for text in given]


def _text(value: Any) -> str:
    """The value of an option as the command takes it: ``true``, not ``True``."""
    if isinstance(value, (bool, np.bool_)):
        return "true" if value else "false"
    return "none" if value is None else str(value)


def describe(
    world: str | None,
    picture: str | None = None,
    variant: str | Iterable[str] | None = None,
    shifts: str | Iterable[str] | None = None,
    options: Mapping[str, Any] | None = None,
    trust: bool = False,
) -> dict[str, Any]:
    """A description of a world for native code."""
    return {
        "world": world,
        "picture": picture,
        "variants": _texts(variant),
        "options": {str(name): _text(value) for name, value in (options or {}).items()},
        "shifts": _texts(shifts),
        "trust": trust,
    }


def _observation_space(described: tuple[str, Any]) -> spaces.Space[Any]:
    kind, shape = described
    if kind == "bytes":
        return spaces.Box(0, 255, tuple(shape), np.uint8)
    if kind == "numbers":
        return spaces.Box(-np.inf, np.inf, tuple(shape), np.float32)
    return spaces.Dict({name: _observation_space(part) for name, part in shape.items()})


def _action_space(described: tuple[Any, ...]) -> spaces.Space[Any]:
    if described[0] == "discrete":
        return spaces.Discrete(described[1])
    low, high = (np.array(bounds, dtype=np.float32) for bounds in described[1:])
    return spaces.Box(low, high)


def _reset_options(options: Mapping[str, Any] | None, known: Sequence[str]) -> list[tuple[str, str]]:
    """Options of a reset that this world knows; as in Gymnasium, others are ignored."""
    if options is None:
        return []
    return [(name, _text(bool(value))) for name, value in options.items() if name in known]


def _check_seed(seed: int) -> int:
    if seed > _MOST_SEED:
        raise OptionError(f"seed {seed}; worlds take seeds from 0 to {_MOST_SEED}")
    return seed


def _modes(described: Mapping[str, Any]) -> list[str]:
    """The render modes of a world: one that shows no pixels has none of its own to give."""
    return [mode for mode in _MODES if mode != "state_pixels" or described["picture"]]


def _check_mode(render_mode: str | None, modes: list[str], what: str) -> None:
    if render_mode is None or render_mode in modes:
        return
    if render_mode == "state_pixels" and render_mode in _MODES:
        raise OptionError(
            f"render_mode='state_pixels' is the picture that the agent sees, and {what} shows none; choose from {', '.join(modes)}"
        )
    raise OptionError(f"no render_mode of {what} is called {render_mode!r}; choose from {', '.join(modes)}")


class _Copied:
    """Copies and pickles of an object whose state is in native code."""

    #: What is made anew: the native part, and what belongs to this process.
    _anew: tuple[str, ...] = ("_native",)
    _native: Any
    _world: str

    def _make_native(self) -> Any:
        raise NotImplementedError

    def __copy__(self) -> Any:
        return copying.deepcopy(self)

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        made = type(self).__new__(type(self))
        memo[id(self)] = made
        for name, value in self.__dict__.items():
            made.__dict__[name] = None if name in self._anew else copying.deepcopy(value, memo)
        made._native = self._native.copy()
        return made

    def __getstate__(self) -> dict[str, Any]:
        history = self._native.history()
        if history is None:
            raise FoveateError(
                f"{self._world} cannot be pickled now: it has had more steps since its last seed than a pickle keeps, or one that failed; "
                "call reset(seed=...) first, or make a copy in this process with copy.deepcopy"
            )
        kept = {name: value for name, value in self.__dict__.items() if name not in self._anew}
        return {**kept, "_history": history}

    def __setstate__(self, state: dict[str, Any]) -> None:
        if "_ezpickle_args" in state:  # of an older version, without an episode
            type(self).__init__(self, *state["_ezpickle_args"], **state["_ezpickle_kwargs"])
            return
        kept = dict(state)
        resets, actions = kept.pop("_history")
        self.__dict__.update({name: None for name in self._anew})
        self.__dict__.update(kept)
        self._native = self._make_native()
        self._replay(resets, actions)

    def _replay(self, resets: list[Any], actions: npt.NDArray[np.float64]) -> None:
        self._native.replay(resets, actions)


class World(_Copied, gymnasium.Env[Any, Any]):
    """A native world.

    Args:
        world: its name, as ``foveate list worlds`` prints it.
        picture: what it shows; ``None`` for its default.
        variant: changed looks of the world, as in ``"bar"`` or ``"blob:side=4"``; one or several.
        shifts: shifts of observations and actions, as in ``"noise:3"`` or ``"hue:2@200"``; one or several.
        options: options of the world by name, as in ``{"max_steps": 500}``.
        render_mode: ``None``, ``"rgb_array"``, ``"human"`` (a window; needs pygame) or, of a world that shows a picture,
            ``"state_pixels"`` (the observation).

    Raises:
        foveate.errors.OptionError: when a name or an option is unknown.

    Observations are new arrays: ``uint8 [height, width, 3]`` of pictures, ``uint8 [rows, columns, channels]`` of grids,
    ``float32 [numbers]`` of sensors. An instance is for one thread at a time.
    """

    metadata: dict[str, Any] = {"render_modes": _MODES, "render_fps": 50}

    def __init__(
        self,
        world: str,
        picture: str | None = None,
        variant: str | Iterable[str] | None = None,
        shifts: str | Iterable[str] | None = None,
        options: Mapping[str, Any] | None = None,
        render_mode: str | None = None,
    ) -> None:
        self._start(describe(world, picture, variant, shifts, options), render_mode)

    _anew = ("_native", "_window")

    def _make_native(self) -> _native.World:
        return _native.World(self._request)  # type: ignore[arg-type]

    def _start(self, request: dict[str, Any], render_mode: str | None) -> None:
        if render_mode is not None and render_mode not in _MODES:
            raise OptionError(f"no render_mode is called {render_mode!r}; choose from {', '.join(_MODES)}")
        if render_mode == "human":
            _pygame()
        self._request = request
        self._native = self._make_native()
        self._world: str = request["world"]
        described = self._native.spec()
        modes = _modes(described)
        _check_mode(render_mode, modes, self._world)
        self.metadata = {**type(self).metadata, "render_modes": modes, "render_fps": round(described["fps"])}
        self.observation_space = _observation_space(described["observation"])
        self.action_space = _action_space(described["action"])
        self.render_mode = render_mode
        self._drives = self._world == "car-racing"
        self._options: tuple[str, ...] = ()
        self._seeded = False
        self._window: _Window | None = None

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Starts an episode; see `gymnasium.Env.reset`. Without a seed the world's random stream continues.

        Returns the first observation and an empty dictionary.
        """
        if seed is not None and isinstance(seed, int):
            _check_seed(seed)
        super().reset(seed=seed)
        if seed is None and not self._seeded:
            # As in Gymnasium, a world that never got a seed draws one, which Gymnasium keeps since its 1.0.
            drawn = self.np_random_seed if hasattr(self, "np_random_seed") else np.random.SeedSequence().entropy
            seed = int(drawn or 0) & _MOST_SEED  # type: ignore[arg-type]
        observation = self._native.reset(seed, _reset_options(options, self._options))
        self._seeded = True
        if self.render_mode == "human":
            self.render()
        return observation, {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Steps the world; see `gymnasium.Env.step`.

        Raises:
            foveate.errors.ActionError: when the action has a wrong shape, is out of range or not finite.
            TypeError: when it is no number or array of numbers.
            foveate.errors.ResetNeeded: when no episode is running.
            foveate.errors.BusyError: when another thread is stepping this world.
        """
        observation, reward, terminated, truncated = self._native.step(action)
        info = {"lap_finished": reward != -100.0} if terminated and self._drives else {}
        if self.render_mode == "human":
            self.render()
        return observation, reward, terminated, truncated, info

    def render(self) -> Any:
        """The world as people see it, ``uint8 [height, width, 3]``; ``None`` in a window or without a `render_mode`."""
        if self.render_mode is None:
            name = self.spec.id if self.spec is not None else self._world
            gymnasium.logger.warn(f"no render_mode was chosen for {name}; make it with render_mode='rgb_array'")
            return None
        if self.render_mode == "state_pixels":
            return self._native.observation()
        picture = self._native.render(*_SIZES.get(self._world, _OTHER_SIZE))
        if self.render_mode == "rgb_array":
            return picture
        if self._window is None:
            self._window = _Window(picture.shape[1], picture.shape[0], self._world)
        self._window.show(picture, self.metadata["render_fps"])
        return None

    def close(self) -> None:
        """Closes the window, if there is one."""
        if self._window is not None:
            self._window.close()
            self._window = None


class CarRacing(World):
    """Gymnasium's ``CarRacing-v3``, with the arguments of its constructor and those of Foveate.

    With ``picture="exact"`` (the default) observations, rewards, flags and infos equal Gymnasium's to the bit; ``"fast"``
    shows nearly the same frames several times faster; ``"classic"`` is gym 0.15.3's ``CarRacing-v0``.

    Args:
        lap_complete_percent: as in Gymnasium.
        domain_randomize: new colours at every reset.
        continuous: three numbers (steering, gas, brake) or five choices.
        picture, variant, shifts, render_mode: see `World`.
    """

    def __init__(
        self,
        render_mode: str | None = None,
        verbose: bool = False,
        lap_complete_percent: float = 0.95,
        domain_randomize: bool = False,
        continuous: bool = True,
        picture: str = "exact",
        variant: str | Iterable[str] | None = None,
        shifts: str | Iterable[str] | None = None,
    ) -> None:
        request = _car_racing(lap_complete_percent, domain_randomize, continuous, picture, variant, shifts)
        self._start(request, render_mode)
        self.continuous = continuous
        self.domain_randomize = domain_randomize
        self.lap_complete_percent = lap_complete_percent
        self._options = ("randomize",) if domain_randomize else ()


def _car_racing(
    lap_complete_percent: float = 0.95,
    domain_randomize: bool = False,
    continuous: bool = True,
    picture: str = "exact",
    variant: str | Iterable[str] | None = None,
    shifts: str | Iterable[str] | None = None,
) -> dict[str, Any]:
    options = {
        "lap_complete_percent": float(lap_complete_percent),
        "domain_randomize": bool(domain_randomize),
        "continuous": bool(continuous),
        # Gymnasium limits steps with a wrapper, and does not round an action of doubles.
        "max_steps": None,
        "round_actions": False,
    }
    return describe("car-racing", picture, variant, shifts, options)


class DoorKey(World):
    """MiniGrid's ``DoorKey``: take the key, open the door, reach the goal.

    Observations are the image of MiniGrid's, ``uint8 [7, 7, 3]``, without direction and mission, as with MiniGrid's
    ``ImgObsWrapper``.

    Args:
        size: side of the grid: 5, 6, 8 or 16.
        picture: ``"view"`` (default), ``"one-hot"``, ``"full"``, ``"rgb"`` or ``"rgb-full"``.
        max_steps: steps after which an episode is truncated; ``None`` for MiniGrid's, 10 times the area.
        color, second_key: of door and key; a second key that does not fit. See ``foveate list worlds``.
        shifts, render_mode: see `World`.
        actions: ``"all"`` seven of MiniGrid's, or ``"five"``: left, right, forward, pick up, toggle.
    """

    def __init__(
        self,
        size: int = 5,
        picture: str = "view",
        max_steps: int | None = None,
        color: str | None = None,
        second_key: str | None = None,
        shifts: str | Iterable[str] | None = None,
        render_mode: str | None = None,
        actions: str = "all",
    ) -> None:
        self._start(_door_key(size, picture, max_steps, color, second_key, shifts, actions), render_mode)


def _door_key(
    size: int = 5,
    picture: str = "view",
    max_steps: int | None = None,
    color: str | None = None,
    second_key: str | None = None,
    shifts: str | Iterable[str] | None = None,
    actions: str = "all",
) -> dict[str, Any]:
    return _minigrid(f"door-key-{size}x{size}", picture, max_steps, shifts, actions, color=color, second_key=second_key)


#: MiniGrid's worlds other than DoorKey, by their names in MiniGrid.
_MINIGRID = {
    "Empty-5x5": "empty-5x5",
    "Empty-Random-5x5": "empty-random-5x5",
    "Empty-8x8": "empty-8x8",
    "Empty-16x16": "empty-16x16",
    "FourRooms": "four-rooms",
    "LavaCrossingS9N1": "lava-crossing-9x9-1",
    "LavaCrossingS9N2": "lava-crossing-9x9-2",
    "LavaCrossingS9N3": "lava-crossing-9x9-3",
    "LavaCrossingS11N5": "lava-crossing-11x11-5",
    "SimpleCrossingS9N1": "simple-crossing-9x9-1",
}


class MiniGrid(World):
    """A world of MiniGrid other than `DoorKey`, with the same observations.

    Args:
        world: its name, as ``foveate list worlds`` prints it: ``"four-rooms"``.
        picture, max_steps, actions: see `DoorKey`.
        shifts, render_mode: see `World`.
    """

    def __init__(
        self,
        world: str,
        picture: str = "view",
        max_steps: int | None = None,
        shifts: str | Iterable[str] | None = None,
        render_mode: str | None = None,
        actions: str = "all",
    ) -> None:
        self._start(_minigrid(world, picture, max_steps, shifts, actions), render_mode)


def _minigrid(
    world: str,
    picture: str = "view",
    max_steps: int | None = None,
    shifts: str | Iterable[str] | None = None,
    actions: str = "all",
    **more: Any,
) -> dict[str, Any]:
    given = {"max_steps": max_steps, "actions": None if actions == "all" else actions, **more}
    options = {name: value for name, value in given.items() if value is not None}
    return describe(world, picture, None, shifts, options)


class CartPoleSwingUpHarder(World):
    """AttentionNeuron's ``CartPoleSwingUpHarder``: a cart on a short track swings its pole up from anywhere.

    Observations are ``float32 [5]``: position, velocity, cosine and sine of the angle, angular velocity.

    Args:
        redundant: every number twice.
        shifts, render_mode: see `World`.
    """

    metadata: dict[str, Any] = {"render_modes": ["human", "rgb_array"], "render_fps": 50}

    def __init__(
        self,
        redundant: bool = False,
        shifts: str | Iterable[str] | None = None,
        render_mode: str | None = None,
    ) -> None:
        self._start(_cartpole(redundant, shifts), render_mode)


def _cartpole(redundant: bool = False, shifts: str | Iterable[str] | None = None) -> dict[str, Any]:
    options = {"redundant": True} if redundant else {}
    return describe("cartpole-swingup-harder", None, None, shifts, options)


#: Tasks of the DeepMind Control suite, and the names that Gymnasium gets for them.
_DM_CONTROL = {
    "cheetah-run": "CheetahRun",
    "walker-walk": "WalkerWalk",
    "cartpole-swingup": "CartPoleSwingUp",
    "ball-in-cup-catch": "BallInCupCatch",
    "reacher-easy": "ReacherEasy",
    "finger-spin": "FingerSpin",
}


class DMControl(World):
    """A task of the DeepMind Control suite, with the physics of MuJoCo's library and pictures drawn without OpenGL.

    Starts, rewards and numbers are those of dm_control, bit for bit; `docs/control.md` says how far pictures are apart. The
    library is that of the package ``mujoco``: ``pip install "foveate[control]"``.

    Args:
        task: ``"cheetah-run"``, ``"walker-walk"``, ``"cartpole-swingup"``, ``"ball-in-cup-catch"``, ``"reacher-easy"`` or
            ``"finger-spin"``.
        picture: ``"pixels"`` (default), ``uint8 [height, width, 3]``; ``"state"``, ``float32 [sensors]``; or ``"both"``, a dict
            of ``image`` and ``sensors``.
        size: width and height of the picture, or the side of a square, 1 to 2048.
        repeat: control steps for which an action is held, 1 to 100; their rewards are added.
        antialias: whether edges in the picture are smooth.
        variant: distractions, as in ``"distracting:level=hard:dynamic=true"`` or ``["colors", "camera"]``.
        shifts, render_mode: see `World`.
    """

    def __init__(
        self,
        task: str,
        picture: str = "pixels",
        size: int | tuple[int, int] = 100,
        repeat: int = 1,
        antialias: bool = True,
        variant: str | Iterable[str] | None = None,
        shifts: str | Iterable[str] | None = None,
        render_mode: str | None = None,
    ) -> None:
        self._start(_dm_control(task, picture, size, repeat, antialias, variant, shifts), render_mode)


def _dm_control(
    task: str,
    picture: str = "pixels",
    size: int | tuple[int, int] = 100,
    repeat: int = 1,
    antialias: bool = True,
    variant: str | Iterable[str] | None = None,
    shifts: str | Iterable[str] | None = None,
) -> dict[str, Any]:
    if task not in _DM_CONTROL:
        raise OptionError(f"no task is called {task!r}; choose from {', '.join(_DM_CONTROL)}")
    sides = (size, size) if isinstance(size, int) else tuple(size)
    options = {"size": "x".join(str(side) for side in sides), "repeat": int(repeat), "antialias": bool(antialias)}
    return describe(task, picture, variant, shifts, options)


def _mode(given: str | AutoresetMode) -> AutoresetMode:
    try:
        return given if isinstance(given, AutoresetMode) else AutoresetMode(given)
    except ValueError:
        names = ", ".join(mode.value for mode in AutoresetMode)
        raise OptionError(f"no autoreset_mode is called {given!r}; choose from {names}") from None


class VectorEnv(_Copied, _VectorEnv):
    """A batch of copies of a native world, stepped together on several threads.

    What it returns equals what Gymnasium's ``SyncVectorEnv`` of the same worlds returns, in all three autoreset modes, with
    any number of threads.

    Args:
        world, picture, variant, shifts, options: see `World`.
        num_envs: number of worlds.
        max_episode_steps: steps after which an episode is truncated, as with Gymnasium's ``TimeLimit``.
        autoreset_mode: Gymnasium's ``AutoresetMode``, or its value: ``"NextStep"``, ``"SameStep"``, ``"Disabled"``.
        threads: number of threads; 0 for one per core.
        copy: whether `reset` and `step` return a copy of the batch of observations, or the batch itself, which the next
            call overwrites.
        render_mode: ``None``, ``"rgb_array"`` or, of a world that shows a picture, ``"state_pixels"``.

    Raises:
        foveate.errors.OptionError: when a name, a number or an option is unknown or out of range.
    """

    metadata: dict[str, Any] = {"render_modes": _MODES[1:], "render_fps": 50}

    def __init__(
        self,
        world: str,
        num_envs: int = 1,
        picture: str | None = None,
        variant: str | Iterable[str] | None = None,
        shifts: str | Iterable[str] | None = None,
        options: Mapping[str, Any] | None = None,
        max_episode_steps: int | None = None,
        autoreset_mode: str | AutoresetMode = AutoresetMode.NEXT_STEP,
        threads: int = 0,
        copy: bool = True,
        render_mode: str | None = None,
    ) -> None:
        request = describe(world, picture, variant, shifts, options)
        self._start(request, num_envs, max_episode_steps, autoreset_mode, threads, copy, render_mode)

    @classmethod
    def _of(
        cls,
        request: dict[str, Any],
        options: tuple[str, ...] = (),
        num_envs: int = 1,
        max_episode_steps: int | None = None,
        autoreset_mode: str | AutoresetMode = AutoresetMode.NEXT_STEP,
        threads: int = 0,
        copy: bool = True,
        render_mode: str | None = None,
    ) -> VectorEnv:
        """Of a description of a world."""
        made = cls.__new__(cls)
        made._start(request, num_envs, max_episode_steps, autoreset_mode, threads, copy, render_mode)
        made._options = options
        return made

    def _start(
        self,
        request: dict[str, Any],
        num_envs: int,
        max_episode_steps: int | None,
        autoreset_mode: str | AutoresetMode,
        threads: int,
        copy: bool,
        render_mode: str | None,
    ) -> None:
        if not _BATCHES:
            raise gymnasium.error.DependencyNotInstalled(
                f"batches of worlds need Gymnasium 1.1 or newer, and this is {gymnasium.__version__}: "
                "pip install 'gymnasium>=1.1', or step worlds of gymnasium.make in gymnasium.vector.SyncVectorEnv"
            )
        super().__init__()
        self.closed = True  # until it is open
        if render_mode is not None and render_mode not in _MODES[1:]:
            raise OptionError(
                f"no render_mode of a batch is called {render_mode!r}; choose from {', '.join(_MODES[1:])}"
            )
        for name, number, least in [("num_envs", num_envs, 1), ("threads", threads, 0)]:
            if not isinstance(number, (int, np.integer)) or number < least:
                raise OptionError(f"{name} is a whole number of at least {least}, not {number!r}")
        if max_episode_steps is not None and max_episode_steps < 1:
            limit = max_episode_steps if max_episode_steps != -1 else None
            if limit is not None:
                raise OptionError(f"max_episode_steps is at least 1, or -1 for no limit, not {max_episode_steps}")
            max_episode_steps = None
        self.autoreset_mode = _mode(autoreset_mode)
        self._made = (request, int(num_envs), int(threads), self.autoreset_mode.value, max_episode_steps)
        self._native = self._make_native()
        self._world: str = request["world"]
        described = self._native.spec()
        modes = _modes(described)[1:]
        _check_mode(render_mode, modes, f"a batch of {self._world}")
        self.num_envs = int(num_envs)
        self.copy = copy
        self.render_mode = render_mode
        self.metadata = {
            **type(self).metadata,
            "render_modes": modes,
            "render_fps": round(described["fps"]),
            "autoreset_mode": self.autoreset_mode,
        }
        self.single_observation_space = _observation_space(described["observation"])
        self.single_action_space = _action_space(described["action"])
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)
        self.action_space = batch_space(self.single_action_space, self.num_envs)
        space = self.single_observation_space
        self._batch: npt.NDArray[Any] = np.zeros((self.num_envs, *space.shape), space.dtype)  # type: ignore[misc]
        self._drives = self._world == "car-racing"
        self._options: tuple[str, ...] = ()
        self._seeds: list[int | None] = [None] * self.num_envs
        self.closed = False

    def _make_native(self) -> _native.Worlds:
        return _native.Worlds(*self._made)  # type: ignore[arg-type]

    def _replay(self, resets: list[Any], actions: npt.NDArray[np.float64]) -> None:
        batch = np.empty_like(self._batch)
        space = self.single_action_space
        discrete = isinstance(space, spaces.Discrete)
        shape = (self.num_envs,) if discrete else (self.num_envs, *space.shape)  # type: ignore[misc]
        turns = iter(actions.reshape(-1, *shape))
        for (seeds, mask), options, steps in resets:
            self._native.reset(seeds, mask, options, batch)
            for _ in range(steps):
                taken = next(turns)
                self._native.step(taken.astype(np.int64) if discrete else taken, batch)

    @property
    def threads(self) -> int:
        """Number of threads that step the worlds."""
        return self._native.threads()

    @property
    def np_random_seed(self) -> tuple[int | None, ...]:  # type: ignore[override]
        """The seed of each world's random stream; ``None`` before the first reset."""
        return tuple(self._seeds)

    def reset(
        self,
        *,
        seed: int | Sequence[int | None] | None = None,
        options: dict[str, Any] | None = None,
    ) -> tuple[npt.NDArray[Any], dict[str, Any]]:
        """Resets all worlds, or with ``options={"reset_mask": mask}`` (``bool [num_envs]``) those of a mask.

        Args:
            seed: ``s`` for the seeds ``s``, ``s + 1``, …; or one for each world. Without one the random streams continue.
            options: as in Gymnasium, ``reset_mask`` is taken out of the dictionary.
        """
        if seed is None:
            seeds: list[int | None] = [None] * self.num_envs
        elif isinstance(seed, (int, np.integer)) and not isinstance(seed, bool):
            seeds = [int(seed) + index for index in range(self.num_envs)]
        else:
            seeds = list(seed)
        if len(seeds) != self.num_envs:
            raise OptionError(f"{len(seeds)} seeds for {self.num_envs} worlds; give one for each")
        mask = None
        if options is not None and "reset_mask" in options:
            mask = self._mask(options.pop("reset_mask"))
        for index, one in enumerate(seeds):
            if mask is not None and not mask[index]:
                continue
            if one is None:
                if self._seeds[index] is None:
                    seeds[index] = int(np.random.SeedSequence().entropy) & _MOST_SEED  # type: ignore[arg-type]
            elif isinstance(one, bool) or not isinstance(one, (int, np.integer)) or one < 0:
                raise gymnasium.error.Error(f"seed {one!r} of world {index}; seeds are whole numbers from 0")
            else:
                seeds[index] = _check_seed(int(one))
        self._native.reset(seeds, mask, _reset_options(options, self._options), self._batch)
        for index, one in enumerate(seeds):
            if one is not None and (mask is None or mask[index]):
                self._seeds[index] = one
        return self._observations(), {}

    def _mask(self, mask: Any) -> list[bool]:
        if not isinstance(mask, np.ndarray) or mask.dtype != np.bool_:
            kind = mask.dtype if isinstance(mask, np.ndarray) else type(mask).__name__
            raise TypeError(f"options['reset_mask'] is an array of bool, not {kind}")
        if mask.shape != (self.num_envs,):
            raise OptionError(f"options['reset_mask'] has the shape {mask.shape}, not ({self.num_envs},)")
        if not mask.any():
            raise OptionError("options['reset_mask'] selects no world; set at least one value to True")
        return [bool(one) for one in mask]

    def step(
        self, actions: Any
    ) -> tuple[
        npt.NDArray[Any],
        npt.NDArray[np.float64],
        npt.NDArray[np.bool_],
        npt.NDArray[np.bool_],
        dict[str, Any],
    ]:
        """Steps all worlds; see `gymnasium.vector.VectorEnv.step`.

        Raises:
            foveate.errors.ActionError: when the actions have a wrong shape, are out of range or not finite. For a shape,
                no world was stepped; for a value, all others were: reset them.
            foveate.errors.ResetNeeded: when the episode of a world is over and the mode is ``Disabled``.
        """
        rewards, terminated, truncated, over = self._native.step(actions, self._batch)
        infos: dict[str, Any] = {}
        for index in over:
            info: dict[str, Any] = {}
            if terminated[index] and self._drives:
                info = {"lap_finished": bool(rewards[index] != -100.0)}
            if self.autoreset_mode == AutoresetMode.SAME_STEP:
                last = self._native.last_observation(index).reshape(self._batch.shape[1:])
                info = {"final_obs": last, "final_info": info}
            infos = self._add_info(infos, info, index)
        return self._observations(), rewards, terminated, truncated, infos

    def _observations(self) -> npt.NDArray[Any]:
        return self._batch.copy() if self.copy else self._batch

    def render(self) -> tuple[npt.NDArray[np.uint8], ...] | None:
        """The worlds as people see them, each ``uint8 [height, width, 3]``; ``None`` without a `render_mode`."""
        if self.render_mode is None:
            gymnasium.logger.warn(
                f"no render_mode was chosen for {self._world}; make it with render_mode='rgb_array'"
            )
            return None
        if self.render_mode == "state_pixels":
            return tuple(self._batch.copy())
        size = _SIZES.get(self._world, _OTHER_SIZE)
        return tuple(self._native.render(index, *size) for index in range(self.num_envs))

    def close_extras(self, **kwargs: Any) -> None:
        """Ends the threads."""
        self._native.close()


def _vector(num_envs: int, request: dict[str, Any], options: tuple[str, ...], rest: dict[str, Any]) -> VectorEnv:
    known = ("max_episode_steps", "autoreset_mode", "threads", "copy", "render_mode")
    unknown = [name for name in rest if name not in known]
    if unknown:
        raise TypeError(f"unexpected keyword argument {unknown[0]!r}; a batch of worlds also takes {', '.join(known)}")
    return VectorEnv._of(request, options, num_envs, **rest)


def _split(names: Sequence[str], given: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The arguments of a world, and the others."""
    own = {name: value for name, value in given.items() if name in names}
    return own, {name: value for name, value in given.items() if name not in names}


def car_racing_vec(num_envs: int = 1, verbose: bool = False, **kwargs: Any) -> VectorEnv:
    """`VectorEnv` of `CarRacing`, with the arguments of both; for ``gymnasium.make_vec``."""
    names = ["lap_complete_percent", "domain_randomize", "continuous", "picture", "variant", "shifts"]
    own, rest = _split(names, kwargs)
    options = ("randomize",) if own.get("domain_randomize") else ()
    return _vector(num_envs, _car_racing(**own), options, rest)


def door_key_vec(num_envs: int = 1, **kwargs: Any) -> VectorEnv:
    """`VectorEnv` of `DoorKey`, with the arguments of both; for ``gymnasium.make_vec``."""
    own, rest = _split(["size", "picture", "max_steps", "color", "second_key", "shifts", "actions"], kwargs)
    return _vector(num_envs, _door_key(**own), (), rest)


def minigrid_vec(num_envs: int = 1, **kwargs: Any) -> VectorEnv:
    """`VectorEnv` of `MiniGrid`, with the arguments of both; for ``gymnasium.make_vec``."""
    own, rest = _split(["world", "picture", "max_steps", "shifts", "actions"], kwargs)
    return _vector(num_envs, _minigrid(**own), (), rest)


def cartpole_vec(num_envs: int = 1, **kwargs: Any) -> VectorEnv:
    """`VectorEnv` of `CartPoleSwingUpHarder`, with the arguments of both; for ``gymnasium.make_vec``."""
    own, rest = _split(["redundant", "shifts"], kwargs)
    return _vector(num_envs, _cartpole(**own), (), rest)


def dm_control_vec(num_envs: int = 1, **kwargs: Any) -> VectorEnv:
    """`VectorEnv` of `DMControl`, with the arguments of both; for ``gymnasium.make_vec``."""
    own, rest = _split(["task", "picture", "size", "repeat", "antialias", "variant", "shifts"], kwargs)
    return _vector(num_envs, _dm_control(**own), (), rest)


def register() -> None:
    """Registers the worlds with Gymnasium; ``import foveate`` does it."""
    if "foveate/CarRacing-v3" in gymnasium.registry:
        return
    gymnasium.register(
        "foveate/CarRacing-v3",
        entry_point="foveate.envs:CarRacing",
        vector_entry_point="foveate.envs:car_racing_vec",
        max_episode_steps=_CAR_RACING_STEPS,
        reward_threshold=900,
    )
    for size in (5, 6, 8, 16):
        gymnasium.register(
            f"foveate/DoorKey-{size}x{size}-v0",
            entry_point="foveate.envs:DoorKey",
            vector_entry_point="foveate.envs:door_key_vec",
            kwargs={"size": size},
        )
    for name, world in _MINIGRID.items():
        gymnasium.register(
            f"foveate/{name}-v0",
            entry_point="foveate.envs:MiniGrid",
            vector_entry_point="foveate.envs:minigrid_vec",
            kwargs={"world": world},
        )
    gymnasium.register(
        "foveate/CartPoleSwingUpHarder-v0",
        entry_point="foveate.envs:CartPoleSwingUpHarder",
        vector_entry_point="foveate.envs:cartpole_vec",
        max_episode_steps=_CARTPOLE_STEPS,
    )
    for task, name in _DM_CONTROL.items():
        gymnasium.register(
            f"foveate/DMControl{name}-v0",
            entry_point="foveate.envs:DMControl",
            vector_entry_point="foveate.envs:dm_control_vec",
            kwargs={"task": task},
        )


def _pygame() -> Any:
    try:
        import pygame
    except ImportError:
        raise gymnasium.error.DependencyNotInstalled(
            "render_mode='human' shows a window with pygame, which is not installed; pip install \"foveate[human]\", or use "
            "render_mode='rgb_array'"
        ) from None
    return pygame


class _Window:
    """A window of pygame."""

    def __init__(self, width: int, height: int, title: str) -> None:
        self._pygame = _pygame()
        self._pygame.display.init()
        self._screen = self._pygame.display.set_mode((width, height))
        self._pygame.display.set_caption(title)
        self._clock = self._pygame.time.Clock()

    def show(self, picture: npt.NDArray[np.uint8], fps: float) -> None:
        self._pygame.event.pump()
        self._clock.tick(fps)
        # pygame's first axis is x.
        self._pygame.surfarray.blit_array(self._screen, picture.swapaxes(0, 1))
        self._pygame.display.flip()

    def close(self) -> None:
        self._pygame.display.quit()


def request_of(env: str | gymnasium.Env[Any, Any] | None, **rest: Any) -> dict[str, Any]:
    """The description of a world that is given as a name, which ``rest`` completes as in `describe`, an id of Gymnasium, or an
    environment of this module."""
    if isinstance(env, str) and env.startswith("foveate/"):
        env = gymnasium.make(env, **rest)
    elif env is None or isinstance(env, str):
        return describe(env, **rest)
    elif rest:
        raise OptionError(f"{', '.join(rest)}: the environment has what it was made with; give its name to change that")
    inner = getattr(env, "unwrapped", None)
    if not isinstance(inner, World):
        raise OptionError(
            f"{type(env).__name__} is no world that Foveate can copy; give its import path, as 'gym:my_package:MyWorld-v0', "
            "which Foveate then runs in processes of its own"
        )
    request = dict(inner._request)
    layer = env
    while layer is not inner:
        if isinstance(layer, gymnasium.wrappers.TimeLimit) and request["world"] == "car-racing":
            request["options"] = {**request["options"], "max_steps": str(layer._max_episode_steps)}
        elif not isinstance(
            layer, (gymnasium.wrappers.TimeLimit, gymnasium.wrappers.OrderEnforcing, gymnasium.wrappers.PassiveEnvChecker)
        ):
            raise OptionError(
                f"the wrapper {type(layer).__name__} is Python's, and Foveate steps the world without it; leave it out"
            )
        layer = layer.env
    return request


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_native.forked)
