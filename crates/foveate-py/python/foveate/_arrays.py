"""Conversions that are too rare or too irregular for native code."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt


def _array(given: Any, what: str = "an action") -> npt.NDArray[Any]:
    """``given`` as an array; tensors of other libraries convert themselves. ``what`` it is stands in the error."""
    try:
        return np.asarray(given)
    except ValueError as error:  # ragged
        raise TypeError(f"{what} is an array of numbers, not {type(given).__name__}: {error}") from None


def numbers(given: Any, what: str = "an action") -> npt.NDArray[np.float64]:
    """Real numbers as doubles in row-major order. Raises `TypeError` for anything else."""
    array = _array(given, what)
    if array.dtype.kind not in "fiu":
        raise TypeError(f"{what} is an array of real numbers, not of {array.dtype}")
    # A new array, for the old one may be read-only in part, strided, misaligned or of another byte order.
    return np.array(array, dtype=np.float64, order="C", copy=True)


def choices(given: Any) -> npt.NDArray[np.int64]:
    """Whole numbers, ``[worlds]``. Raises `TypeError` for anything else."""
    array = _array(given)
    if array.dtype.kind not in "iu":
        raise TypeError(f"actions are whole numbers, one for each world, not {array.dtype}")
    return np.array(array, dtype=np.int64, order="C", copy=True)


def image(picture: Any, shape: tuple[int, ...]) -> npt.NDArray[np.uint8]:
    """An observation of bytes for an agent. Raises `TypeError` or `ValueError` when it is none of this shape."""
    array = _array(picture)
    if array.dtype != np.uint8:
        raise TypeError(f"the observation is of {array.dtype}; the agent takes uint8 of shape {list(shape)}")
    if array.shape != shape:
        raise ValueError(f"the observation has the shape {list(array.shape)}; the agent takes {list(shape)}")
    return np.array(array, dtype=np.uint8, order="C", copy=True)
