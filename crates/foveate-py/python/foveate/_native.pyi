"""The native part of the package; private to it."""

from collections.abc import Callable
from os import PathLike
from typing import Any, TypedDict

import numpy as np
import numpy.typing as npt

__version__: str

class _World(TypedDict):
    """A description of a world; `None` for the default."""

    world: str | None
    picture: str | None
    variants: list[str]
    options: dict[str, str]
    shifts: list[str]
    trust: bool

_Path = str | PathLike[str]
# Action, attention, begin of an episode, name.
_Functions = tuple[Callable[[Any], Any], Callable[[Any], Any] | None, Callable[[], Any] | None, str]
# Called with every event as JSON text.
_Listener = Callable[[str], None] | None
_Resets = list[tuple[int | None, list[tuple[str, str]], int]]
_BatchResets = list[tuple[tuple[list[int | None], list[bool] | None], list[tuple[str, str]], int]]
# Anything with the methods of `foveate.ray.RayCluster` that a run calls.
_Cluster = Any

class World:
    def __init__(self, world: _World) -> None: ...
    def spec(self) -> dict[str, Any]: ...
    def reset(self, seed: int | None, options: list[tuple[str, str]]) -> Any: ...
    def step(self, action: Any) -> tuple[Any, float, bool, bool]: ...
    def render(self, width: int, height: int) -> npt.NDArray[np.uint8]: ...
    def observation(self) -> Any: ...
    def copy(self) -> World: ...
    def history(self) -> tuple[_Resets, npt.NDArray[np.float64]] | None: ...
    def replay(self, resets: _Resets, actions: npt.NDArray[np.float64]) -> None: ...

class Worlds:
    def __init__(self, world: _World, count: int, threads: int, autoreset: str, max_steps: int | None) -> None: ...
    def spec(self) -> dict[str, Any]: ...
    def threads(self) -> int: ...
    def reset(self, seeds: list[int | None], mask: list[bool] | None, options: list[tuple[str, str]], batch: npt.NDArray[Any]) -> None: ...
    def step(
        self, actions: Any, batch: npt.NDArray[Any]
    ) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.bool_], npt.NDArray[np.bool_], list[int]]: ...
    def last_observation(self, index: int) -> npt.NDArray[Any]: ...
    def render(self, index: int, width: int, height: int) -> npt.NDArray[np.uint8]: ...
    def copy(self) -> Worlds: ...
    def history(self) -> tuple[_BatchResets, npt.NDArray[np.float64]] | None: ...
    def close(self) -> None: ...

class Agent:
    def __init__(self, name: _Path | None, world: _World) -> None: ...
    @staticmethod
    def from_bytes(bytes: bytes, source: str, world: _World) -> Agent: ...
    def to_bytes(self) -> tuple[bytes, str, dict[str, Any]]: ...
    def about(self) -> dict[str, Any]: ...
    def is_of(self, bytes: bytes) -> bool: ...
    def parameters(self) -> dict[str, npt.NDArray[np.float32]]: ...
    def reset(self, seed: int, episode: int) -> None: ...
    def act(self, observation: Any, reward: float) -> Any: ...
    def attention(self) -> dict[str, Any] | None: ...

class RolloutWorker:
    def __init__(self, setup: bytes) -> None: ...
    def run(self, weights: bytes, batch: bytes) -> bytes: ...

def forked() -> None: ...
def command(arguments: list[str], clusters: Callable[[str], _Cluster]) -> int: ...
def evaluate(
    who: Agent | _Functions,
    world: _World,
    seeds: tuple[int, int],
    each: bool,
    workers: int,
    max_steps: int | None,
    draw_actions: bool,
    listener: _Listener,
) -> str: ...
def stress(
    who: list[Agent | _Functions],
    world: _World,
    rows: tuple[str, str, str, int | None],
    seed: int,
    episodes: int,
    workers: int,
    max_steps: int | None,
    listener: _Listener,
) -> tuple[str, str, str, str | None]: ...
def explain(
    who: Agent | _Functions,
    world: _World,
    size: tuple[int, int, int, int],
    max_steps: int | None,
    workers: int,
    out: _Path,
    listener: _Listener,
) -> str: ...
def watch(
    who: Agent | _Functions,
    world: _World,
    episode: tuple[int, int],
    steps: int | None,
    size: tuple[int, int] | None,
    at: int | None,
    effects: bool,
    out: _Path,
    listener: _Listener,
) -> tuple[int, int, float, bool]: ...
def train(
    world: _World,
    preset: str | None,
    config: _Path | None,
    steps: int | None,
    set: list[str],
    runs: _Path,
    name: str | None,
    cluster: _Cluster | None,
    listener: _Listener,
) -> tuple[str, bool]: ...
def resume(
    folder: _Path, workers: int | None, trust: bool, allow_changes: bool, cluster: _Cluster | None, listener: _Listener
) -> tuple[str, bool]: ...
