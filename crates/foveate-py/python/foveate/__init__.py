"""Foveate: reinforcement-learning worlds and agents with an attention bottleneck.

``import foveate`` registers its worlds with Gymnasium::

    import gymnasium, foveate
    env = gymnasium.make("foveate/CarRacing-v3")                                # equals CarRacing-v3 to the bit
    envs = gymnasium.make_vec("foveate/CarRacing-v3", num_envs=8, picture="fast")

Agents and what the commands do::

    agent = foveate.load()                                # the champion of CarRacing
    action = agent.act(observation); agent.attention.importance
    foveate.evaluate(agent), foveate.stress(agent), foveate.explain(agent), foveate.watch(agent)
    foveate.stress(lambda observation: my_policy(observation), "car-racing", episodes=20)
"""

from __future__ import annotations

from . import _compiler, agents, claims, envs, errors, evolve, jobs, loggers, rliable, torch
from ._native import __version__
from .agents import Agent, Attention, load
from .errors import FoveateError
from .jobs import (
    Calibration, Comparison, Evaluation, Exported, Film, Function, Report, Run, StressTable, batched, calibration, compare, evaluate,
    explain, export, resume, stress, train, watch,
)

envs.register()
_compiler.register()

__all__ = [
    "Agent", "Attention", "Calibration", "Comparison", "Evaluation", "Exported", "Film", "FoveateError", "Function", "Report", "Run",
    "StressTable", "__version__", "agents", "batched", "calibration", "claims", "compare", "envs", "errors", "evaluate", "evolve", "explain",
    "export", "jobs", "load", "loggers", "rliable",
    "resume", "stress", "train", "watch",
]
