"""Foveate: reinforcement-learning worlds and agents with an attention bottleneck.

``import foveate`` registers its worlds with Gymnasium::

    import gymnasium, foveate
    env = gymnasium.make("foveate/CarRacing-v3")                                # equals CarRacing-v3 to the bit
    envs = gymnasium.make_vec("foveate/CarRacing-v3", num_envs=8, picture="fast")
"""

from __future__ import annotations

from . import envs, errors
from ._native import __version__

envs.register()

__all__ = ["__version__", "envs", "errors"]
