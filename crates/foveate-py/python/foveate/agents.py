"""Agents: trained ones from files, run folders or the champions that come with Foveate, and what they attend to."""

from __future__ import annotations

import html
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from . import _native
from .envs import describe

__all__ = ["Agent", "Attention", "load"]


@dataclass(frozen=True)
class Attention:
    """What a decision attended to.

    ``tokens`` says what there was to attend to, and ``shape`` how it lies:

    ==========  ==========================================================================
    tokens      shape
    ==========  ==========================================================================
    patches     rows, columns, side of a patch in pixels, pixels between two patches
    cells       rows, columns of cells of the picture
    grid        rows, columns of the cells of a grid world
    named       how many; ``names`` has their names
    ==========  ==========================================================================
    """

    tokens: str
    shape: tuple[int, ...]
    names: list[str]
    #: ``[heads, queries, tokens]``, float32: votes of hard attention, weights of soft attention.
    weights: npt.NDArray[np.float32]
    #: ``[K]``: the tokens that hard attention selected; ``None`` of soft attention, which takes all.
    selected: npt.NDArray[Any] | None
    #: ``[K]``: the rank of each selected token, 0 for the most important.
    ranks: npt.NDArray[Any] | None

    @property
    def importance(self) -> npt.NDArray[np.float32]:
        """``[tokens]``: the sum of absolute weights over heads and queries."""
        return np.abs(self.weights).sum(axis=(0, 1))


class Agent:
    """A trained agent with its memory. It decides greedily, and pickles with its weights and without its memory.

    >>> import foveate
    >>> agent = foveate.load()
    >>> agent.world
    'car-racing'
    """

    def __init__(self, native: _native.Agent) -> None:
        self._native = native
        self._about: dict[str, Any] = native.about()

    @property
    def kind(self) -> str:
        """The agent's name in the register, such as ``attention-agent``."""
        return self._about["kind"]

    @property
    def source(self) -> str:
        """Where the weights come from."""
        return self._about["source"]

    @property
    def world(self) -> str:
        """The world that it acts in."""
        return self._about["world"]

    @property
    def parameters(self) -> dict[str, npt.NDArray[np.float32]]:
        """All parameters by name, in the shapes of their layers."""
        return self._native.parameters()

    def reset(self, seed: int = 0, episode: int = 0) -> None:
        """Begins an episode: forgets everything. ``seed`` and ``episode`` matter to agents that draw at random alone."""
        self._native.reset(seed, episode)

    def act(self, observation: npt.ArrayLike | Mapping[str, npt.ArrayLike], reward: float = 0.0) -> Any:
        """Decides on an observation of its world, in the shape and type of the world's observation space.

        ``reward`` is that of the last step; few agents use it. Returns the action: float64 numbers, or a choice.

        Raises `FoveateError` for an observation of another shape or type.
        """
        return self._native.act(observation, reward)

    @property
    def attention(self) -> Attention | None:
        """What the last decision attended to; ``None`` before the first one and of agents without attention."""
        seen = self._native.attention()
        return None if seen is None else Attention(**{**seen, "shape": tuple(seen["shape"])})

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, self._native.to_bytes()

    def __repr__(self) -> str:
        return f"<foveate.Agent {self.kind}, {self._about['parameters']} parameters, for {self.world}: {self.source}>"

    def _repr_html_(self) -> str:
        rows = {
            "agent": self.kind, "world": self.world, "parameters": f"{self._about['parameters']:,}",
            "weights": self.source, "SHA-256": self._about["sha256"],
        }
        cells = "".join(f"<tr><th>{name}</th><td>{html.escape(str(value))}</td></tr>" for name, value in rows.items())
        return f"<table>{cells}</table>"


def _restored(weights: bytes, source: str, world: dict[str, Any]) -> Agent:
    return Agent(_native.Agent.from_bytes(weights, source, world))


def load(
    name: str | os.PathLike[str] | None = None,
    world: str | None = None,
    *,
    picture: str | None = None,
    variant: str | list[str] | None = None,
    shifts: str | list[str] | None = None,
    options: Mapping[str, Any] | None = None,
    trust: bool = False,
) -> Agent:
    """Loads an agent.

    ``name`` is a weight file, a run folder, a champion's name, ``"random"`` for untrained weights, or ``None`` for the champion of
    the world. The other arguments say in which world it acts where the file leaves that open; ``trust`` lets a file name a world
    that runs code of others.

    Raises `FoveateError` when there are no such weights, or when they do not fit the world.
    """
    described = describe(world, picture, variant, shifts, options, trust=trust)
    return Agent(_native.Agent(None if name is None else os.fspath(name), described))
