"""Callbacks that show a job's events in other tools; each imports its library only when it is made.

`foveate.train` and `foveate.resume` write curves for TensorBoard by themselves. The other tools get the same curves, over training steps,
under the same names, from a callback::

    foveate.train("car-racing", callback=foveate.loggers.Wandb(project="driving"))
    foveate.train("car-racing", callback=[foveate.loggers.Mlflow("driving"), foveate.loggers.Tqdm()])
"""

from ._mlflow import Mlflow
from ._tqdm import Tqdm
from ._wandb import Wandb

__all__ = ["Mlflow", "Tqdm", "Wandb"]
