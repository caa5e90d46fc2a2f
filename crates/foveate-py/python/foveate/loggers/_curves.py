"""The numbers of an event by the names that a run's TensorBoard file has."""

from __future__ import annotations

import math

from .._progress import Event

#: Names of the curves that an event ``generation`` leads to, by its fields.
_GENERATION = {
    "best": "return/best", "mean": "return/mean", "sigma": "search/sigma", "norm": "search/norm", "length": "episode/length",
}
#: Events with statistics of episodes.
_JUDGED = ("validation", "evaluation", "report")


def curves(event: Event) -> dict[str, float]:
    """Finite numbers by the names of their curves; empty for events without any."""
    kind = event["event"]
    if kind == "generation":
        named = {name: event.get(field) for field, name in _GENERATION.items()}
        named.update({f"learning/{name}": value for name, value in event.get("measures", {}).items()})
    elif kind in _JUDGED:
        named = {f"{kind}/{field}": event.get(field) for field in ("mean", "std")}
    else:
        return {}
    return {name: float(value) for name, value in named.items() if isinstance(value, (int, float)) and math.isfinite(value)}
