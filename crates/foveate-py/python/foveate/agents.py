"""Agents: trained ones from files, run folders or the champions that come with Foveate, and what they attend to."""

from __future__ import annotations

import contextlib
import hashlib
import html
import os
import re
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from . import _native
from ._keywords import keywords
from .envs import describe
from .errors import OptionError

__all__ = ["Agent", "Attention", "load"]


@dataclass(frozen=True, repr=False)
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

    def __repr__(self) -> str:
        heads, queries, tokens = self.weights.shape
        chosen = "" if self.selected is None else f", {len(self.selected)} selected"
        return f"<foveate.Attention on {tokens} {self.tokens}, shape {self.shape}, {heads} heads, {queries} queries{chosen}>"

    @property
    def importance(self) -> npt.NDArray[np.float32]:
        """``[tokens]``: the sum of absolute weights over heads and queries."""
        return np.abs(self.weights).sum(axis=(0, 1))


#: What MiniGrid shows: kind, colour and state of the cells before the agent.
_VIEW = (7, 7, 3)
#: How many kinds, colours and states there are.
_BITS = np.array([11, 6, 3])


def _bits(view: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
    """``[7, 7, 20]``: a bit for each kind, colour and state of ``view``."""
    if (view >= _BITS).any():
        worst = [int(code) for code in view.reshape(-1, 3).max(axis=0)]
        raise OptionError(f"the observation has codes up to {worst}; MiniGrid's kinds, colours and states are below {_BITS.tolist()}")
    parts = [np.eye(count, dtype=np.uint8)[view[..., part]] for part, count in enumerate(_BITS)]
    return np.concatenate(parts, axis=-1)


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
        self._one_hot = self._about["picture"] == "one-hot" and tuple(self._about["spec"]["observation"][1]) == (*_VIEW[:2], _BITS.sum())
        self._five = self._about["spec"]["action"] == ("discrete", 5)

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
    def sha256(self) -> str:
        """SHA-256 of the weight file: of `source` if that is a file, of a champion's in the folder ``champions``, else of the one that
        `save` writes."""
        with contextlib.suppress(OSError, ValueError):
            if os.path.isfile(self.source):
                with open(self.source, "rb") as file:
                    written = file.read()
                    # The file may be another one by now.
                    if self._native.is_of(written):
                        return hashlib.sha256(written).hexdigest()
        return hashlib.sha256(self._native.champion() or self._native.to_bytes()[0]).hexdigest()

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the weight file, which `load` and the command take."""
        folder = os.path.dirname(os.path.abspath(path))
        written = self._native.to_bytes()[0]
        with tempfile.NamedTemporaryFile(dir=folder, delete=False) as file:
            try:
                file.write(written)
                file.close()
                os.replace(file.name, path)
            except BaseException:
                os.unlink(file.name)
                raise

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

        An agent of a world of MiniGrid also takes what MiniGrid shows, ``uint8 [7, 7, 3]`` or the dict with it as ``image``, where it was
        trained on the same view in bits (``one-hot``): its choice is then one of MiniGrid's seven.

        Raises `FoveateError` for an observation of another shape or type.
        """
        if self._one_hot:
            seen = observation.get("image") if isinstance(observation, Mapping) else observation
            if getattr(seen, "shape", None) == _VIEW and getattr(seen, "dtype", None) == np.uint8:
                choice = self._native.act(_bits(np.asarray(seen)), reward)
                # The five actions leave out "drop" and "done".
                return 5 if choice == 4 and self._five else choice
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
            "weights": self.source, "SHA-256 of the file": self.sha256,
        }
        cells = "".join(f"<tr><th>{name}</th><td>{html.escape(str(value))}</td></tr>" for name, value in rows.items())
        return f"<table>{cells}</table>"


def _restored(weights: bytes, source: str, world: dict[str, Any]) -> Agent:
    return Agent(_native.Agent.from_bytes(weights, source, world))


@keywords
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
    the world. ``"hub:owner/name"``, or ``"hub:owner/name@revision"``, is a model of the Hugging Face Hub, which ``huggingface_hub``
    fetches; of it the weight file alone is read. The other arguments say in which world it acts where the file leaves that open; ``trust`` lets a file name a world
    that runs code of others.

    Raises `FoveateError` when there are no such weights, or when they do not fit the world.
    """
    if world is not None and not isinstance(world, str):
        raise OptionError(f"load takes a world by its name, not a {type(world).__name__}; evaluate, explain and stress take environments")
    described = describe(world, picture, variant, shifts, options, trust=trust)
    name = None if name is None else os.fspath(name)
    if name is not None and name.startswith(_HUB):
        name = _fetched(name.removeprefix(_HUB))
    return Agent(_native.Agent(name, described))


#: What a name of the Hub begins with.
_HUB = "hub:"


def _fetched(name: str) -> str:
    """The path of the weight file of the Hub's model ``name``."""
    repository, _, revision = name.partition("@")
    if not re.fullmatch(r"[\w.-]+/[\w.-]+", repository) or ".." in repository:
        raise OptionError(f"{_HUB}{name} names no model; write it as in {_HUB}owner/name or {_HUB}owner/name@revision")
    try:
        from huggingface_hub import hf_hub_download  # type: ignore[import-not-found]
    except ImportError as error:
        raise OptionError(f'{_HUB}{name} needs a package that is not installed ({error}): pip install "foveate[hub]"') from error
    try:
        path = hf_hub_download(repository, "model.safetensors", revision=revision or None)
    except Exception as error:
        raise OptionError(f"{_HUB}{name} cannot be fetched: {' '.join(str(error).split())[:300]}") from error
    # Its cache has links, which are followed here and nowhere else.
    return os.path.realpath(path)
