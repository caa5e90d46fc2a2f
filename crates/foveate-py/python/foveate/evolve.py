"""Evolution strategies on a function of one's own, as in training, through ``ask`` and ``tell``.

Fitness is maximised: to minimise ``f``, tell ``-f(x)``::

    es = foveate.evolve.CmaEs([3.0] * 10, sigma=0.5, seed=1)
    for _ in range(300):
        es.tell([-f(x) for x in es.ask()])
    es.best.fitness, es.recommended
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from . import _native
from .errors import OptionError

__all__ = ["Best", "Progress", "Strategy", "RankEs", "Snes", "OpenAiEs", "Pgpe", "CmaEs", "SepCmaEs", "SimpleGa"]


class Progress(NamedTuple):
    """Statistics of a generation."""

    generation: int
    """Generations told so far."""
    best: float
    """Best fitness of the generation."""
    mean: float
    """Mean fitness of the generation."""
    sigma: float
    """Standard deviation of the search, averaged over parameters."""


class Best(NamedTuple):
    """The genome with the highest fitness so far."""

    genome: npt.NDArray[np.float32]
    """``[parameters]``"""
    fitness: float


def _numbers(given: Any, what: str) -> npt.NDArray[np.float64]:
    array = np.asarray(given)
    if array.dtype.kind not in "fiu" or array.ndim != 1:
        raise OptionError(f"{what} is a list of numbers, not of {array.dtype} with the shape {list(array.shape)}")
    return array.astype(np.float64)


class Strategy:
    """What the strategies have in common; make one of its subclasses.

    All randomness derives from `seed`, so the same calls give the same numbers, on one kind of processor. Genomes are in single
    precision, ``float32``.
    """

    _name: ClassVar[str]

    def __init__(self, x0: npt.ArrayLike, seed: int, settings: Mapping[str, Any]) -> None:
        """Use a subclass: it has the settings of its strategy as arguments."""
        given = {key: value for key, value in settings.items() if value is not None}
        bounds = given.get("bounds")
        if bounds is not None and not isinstance(bounds, Mapping):
            low, high = bounds
            given["bounds"] = {"low": low, "high": high}
        for key in ("bounds", "restarts"):
            if key in given:
                given[key] = dict(given[key])
        try:
            text = json.dumps(given, allow_nan=False)
        except (TypeError, ValueError) as error:
            raise OptionError(f"{self._name}: {error}") from None
        if not 0 <= seed < 2**64:
            raise OptionError(f"seed = {seed}; choose a whole number from 0 to 2**64 - 1")
        self._native = _native.Strategy(self._name, text, _numbers(x0, "x0"), seed)

    def ask(self) -> npt.NDArray[np.float32]:
        """The genomes of this generation, ``[population, parameters]``; the same until `tell`."""
        return self._native.ask()

    def tell(self, fitness: npt.ArrayLike) -> Progress:
        """Learns from the fitness of every genome of the last `ask`, in its order; larger is better.

        Raises:
            OptionError: when the count is wrong or a fitness is NaN or infinite; the strategy is then unchanged.
            FoveateError: when `ask` was not called, or the search diverges; likewise.
        """
        return Progress(*self._native.tell(_numbers(fitness, "fitness")))

    @property
    def mean(self) -> npt.NDArray[np.float64]:
        """``[parameters]``: the centre of the search."""
        return self._native.means()[0]

    @property
    def recommended(self) -> npt.NDArray[np.float64]:
        """``[parameters]``: what the strategy recommends; the centre, or an average, or that of an earlier restart."""
        return self._native.means()[1]

    @property
    def best(self) -> Best | None:
        """The genome with the highest fitness so far; `None` before the first `tell`."""
        found = self._native.best()
        return None if found is None else Best(*found)

    @property
    def generation(self) -> int:
        """Generations told so far."""
        return self._native.generation()

    def save(self) -> str:
        """The whole state as JSON text; `restore` goes on from it with the same numbers."""
        return self._native.save()

    def restore(self, saved: str) -> None:
        """Takes back what `save` returned, of a strategy with the same settings, seed and number of parameters.

        Raises:
            OptionError: when it does not fit; the strategy is then unchanged.
        """
        self._native.restore(saved)

    def __repr__(self) -> str:
        return f"<foveate.evolve.{type(self).__name__} of {len(self.mean)} parameters, generation {self.generation}>"


class RankEs(Strategy):
    """Log-rank weights and one constant step size, for small populations.

    The arguments are the settings of `rank-es`; `bounds` keeps genomes within ``(low, high)`` or
    ``{"low": …, "high": …, "repair": "reflect" or "clip"}``, and `restarts` begins again where the search stagnates:
    ``{"after": 100, "tolerance": 1e-9, "population_factor": 2.0, …}``.
    """

    _name = "rank-es"

    def __init__(
        self,
        x0: npt.ArrayLike,
        *,
        population: int = 32,
        sigma: float = 0.1,
        learning_rate: float = 1.0,
        weight_decay: float = 0.0,
        averaging: float = 0.0,
        mirrored: bool = False,
        bounds: tuple[float, float] | Mapping[str, Any] | None = None,
        restarts: Mapping[str, Any] | None = None,
        seed: int = 0,
    ) -> None:
        """Starts around `x0`."""
        settings = {
            "population": population,
            "sigma": sigma,
            "learning_rate": learning_rate,
            "weight_decay": weight_decay,
            "averaging": averaging,
            "mirrored": mirrored,
            "bounds": bounds,
            "restarts": restarts,
        }
        super().__init__(x0, seed, settings)


class Snes(Strategy):
    """Separable natural evolution: log-rank weights and a step size for each parameter.

    The arguments are the settings of `snes`; `bounds` keeps genomes within ``(low, high)`` or
    ``{"low": …, "high": …, "repair": "reflect" or "clip"}``, and `restarts` begins again where the search stagnates:
    ``{"after": 100, "tolerance": 1e-9, "population_factor": 2.0, …}``.
    """

    _name = "snes"

    def __init__(
        self,
        x0: npt.ArrayLike,
        *,
        population: int = 32,
        sigma: float = 0.1,
        learning_rate: float = 1.0,
        sigma_learning_rate: float | None = None,
        mirrored: bool = False,
        bounds: tuple[float, float] | Mapping[str, Any] | None = None,
        restarts: Mapping[str, Any] | None = None,
        seed: int = 0,
    ) -> None:
        """Starts around `x0`."""
        settings = {
            "population": population,
            "sigma": sigma,
            "learning_rate": learning_rate,
            "sigma_learning_rate": sigma_learning_rate,
            "mirrored": mirrored,
            "bounds": bounds,
            "restarts": restarts,
        }
        super().__init__(x0, seed, settings)


class OpenAiEs(Strategy):
    """Mirrored pairs, centred ranks, Adam, and a step size that is given.

    The arguments are the settings of `openai-es`; `bounds` keeps genomes within ``(low, high)`` or
    ``{"low": …, "high": …, "repair": "reflect" or "clip"}``, and `restarts` begins again where the search stagnates:
    ``{"after": 100, "tolerance": 1e-9, "population_factor": 2.0, …}``.
    """

    _name = "openai-es"

    def __init__(
        self,
        x0: npt.ArrayLike,
        *,
        population: int = 64,
        sigma: float = 0.1,
        sigma_decay: float = 1.0,
        sigma_min: float = 0.0,
        learning_rate: float = 0.02,
        beta1: float = 0.9,
        beta2: float = 0.999,
        weight_decay: float = 0.0,
        shaping: Literal["centred-ranks", "standardised"] = "centred-ranks",
        mirrored: bool = True,
        bounds: tuple[float, float] | Mapping[str, Any] | None = None,
        restarts: Mapping[str, Any] | None = None,
        seed: int = 0,
    ) -> None:
        """Starts around `x0`."""
        settings = {
            "population": population,
            "sigma": sigma,
            "sigma_decay": sigma_decay,
            "sigma_min": sigma_min,
            "learning_rate": learning_rate,
            "beta1": beta1,
            "beta2": beta2,
            "weight_decay": weight_decay,
            "shaping": shaping,
            "mirrored": mirrored,
            "bounds": bounds,
            "restarts": restarts,
        }
        super().__init__(x0, seed, settings)


class Pgpe(Strategy):
    """Symmetric pairs, ClipUp or Adam, and a step size for each parameter.

    The arguments are the settings of `pgpe`; `bounds` keeps genomes within ``(low, high)`` or
    ``{"low": …, "high": …, "repair": "reflect" or "clip"}``, and `restarts` begins again where the search stagnates:
    ``{"after": 100, "tolerance": 1e-9, "population_factor": 2.0, …}``.
    """

    _name = "pgpe"

    def __init__(
        self,
        x0: npt.ArrayLike,
        *,
        population: int = 64,
        sigma: float = 0.1,
        sigma_learning_rate: float = 0.1,
        sigma_max_change: float = 0.2,
        optimizer: Literal["clip-up", "adam"] = "clip-up",
        learning_rate: float | None = None,
        max_speed: float | None = None,
        momentum: float = 0.9,
        shaping: Literal["centred-ranks", "standardised"] = "centred-ranks",
        bounds: tuple[float, float] | Mapping[str, Any] | None = None,
        restarts: Mapping[str, Any] | None = None,
        seed: int = 0,
    ) -> None:
        """Starts around `x0`."""
        settings = {
            "population": population,
            "sigma": sigma,
            "sigma_learning_rate": sigma_learning_rate,
            "sigma_max_change": sigma_max_change,
            "optimizer": optimizer,
            "learning_rate": learning_rate,
            "max_speed": max_speed,
            "momentum": momentum,
            "shaping": shaping,
            "bounds": bounds,
            "restarts": restarts,
        }
        super().__init__(x0, seed, settings)


class CmaEs(Strategy):
    """CMA-ES with a full covariance matrix; behaviour and constants are those of pycma. The form `eigen` is not in every build.

    The arguments are the settings of `cma-es`; `bounds` keeps genomes within ``(low, high)`` or
    ``{"low": …, "high": …, "repair": "reflect" or "clip"}``, and `restarts` begins again where the search stagnates:
    ``{"after": 100, "tolerance": 1e-9, "population_factor": 2.0, …}``.
    """

    _name = "cma-es"

    def __init__(
        self,
        x0: npt.ArrayLike,
        *,
        population: int | None = None,
        sigma: float = 0.1,
        active: bool = True,
        form: Literal["cholesky", "eigen"] = "cholesky",
        bounds: tuple[float, float] | Mapping[str, Any] | None = None,
        restarts: Mapping[str, Any] | None = None,
        seed: int = 0,
    ) -> None:
        """Starts around `x0`."""
        settings = {
            "population": population,
            "sigma": sigma,
            "active": active,
            "form": form,
            "bounds": bounds,
            "restarts": restarts,
        }
        super().__init__(x0, seed, settings)


class SepCmaEs(Strategy):
    """CMA-ES with a diagonal covariance matrix, for many parameters.

    The arguments are the settings of `sep-cma-es`; `bounds` keeps genomes within ``(low, high)`` or
    ``{"low": …, "high": …, "repair": "reflect" or "clip"}``, and `restarts` begins again where the search stagnates:
    ``{"after": 100, "tolerance": 1e-9, "population_factor": 2.0, …}``.
    """

    _name = "sep-cma-es"

    def __init__(
        self,
        x0: npt.ArrayLike,
        *,
        population: int | None = None,
        sigma: float = 0.1,
        active: bool = True,
        bounds: tuple[float, float] | Mapping[str, Any] | None = None,
        restarts: Mapping[str, Any] | None = None,
        seed: int = 0,
    ) -> None:
        """Starts around `x0`."""
        settings = {
            "population": population,
            "sigma": sigma,
            "active": active,
            "bounds": bounds,
            "restarts": restarts,
        }
        super().__init__(x0, seed, settings)


class SimpleGa(Strategy):
    """A genetic algorithm: the best have mutated children, elites stay.

    The arguments are the settings of `simple-ga`; `bounds` keeps genomes within ``(low, high)`` or
    ``{"low": …, "high": …, "repair": "reflect" or "clip"}``, and `restarts` begins again where the search stagnates:
    ``{"after": 100, "tolerance": 1e-9, "population_factor": 2.0, …}``.
    """

    _name = "simple-ga"

    def __init__(
        self,
        x0: npt.ArrayLike,
        *,
        population: int = 64,
        parents: int = 16,
        elites: int = 1,
        elite_reevaluation: bool = True,
        sigma: float = 0.1,
        sigma_decay: float = 1.0,
        sigma_min: float = 0.0,
        bounds: tuple[float, float] | Mapping[str, Any] | None = None,
        restarts: Mapping[str, Any] | None = None,
        seed: int = 0,
    ) -> None:
        """Starts around `x0`."""
        settings = {
            "population": population,
            "parents": parents,
            "elites": elites,
            "elite_reevaluation": elite_reevaluation,
            "sigma": sigma,
            "sigma_decay": sigma_decay,
            "sigma_min": sigma_min,
            "bounds": bounds,
            "restarts": restarts,
        }
        super().__init__(x0, seed, settings)
