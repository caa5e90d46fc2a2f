"""Exceptions of Foveate. Every message is one line: what is wrong, where, with the numbers, and what to do."""

from __future__ import annotations

import gymnasium.error

__all__ = ["ActionError", "BusyError", "FoveateError", "ForkError", "OptionError", "ResetNeeded"]


class FoveateError(Exception):
    """Any error of Foveate."""


class ActionError(FoveateError, gymnasium.error.InvalidAction, ValueError):
    """An action that a world does not take: a wrong shape, a choice out of range, a number that is not finite."""


class OptionError(FoveateError, ValueError):
    """A name, an option or a number that Foveate does not know or cannot use."""


class ResetNeeded(FoveateError, gymnasium.error.ResetNeeded):
    """A step before the first reset, or after the end of an episode."""


class BusyError(FoveateError, RuntimeError):
    """Two threads use one world or one agent at the same time."""


class ForkError(FoveateError, RuntimeError):
    """A batch of worlds is used in a process that was forked after it was made."""
