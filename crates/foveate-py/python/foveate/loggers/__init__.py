"""Callbacks that show a training in other tools: the curves of its TensorBoard file, over training steps.

A training takes one callback or a list: ``callback=[foveate.loggers.Mlflow("driving"), foveate.loggers.Tqdm()]``. Each imports its
library when it is made, and raises `OptionError` if that is not installed.
"""

from ._mlflow import Mlflow
from ._tqdm import Tqdm
from ._wandb import Wandb

__all__ = ["Mlflow", "Tqdm", "Wandb"]
