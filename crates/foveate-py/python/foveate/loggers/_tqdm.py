"""A progress bar of tqdm."""

from __future__ import annotations

from typing import Any

from .._progress import Event, Share, describe
from ..errors import OptionError


class Tqdm:
    """A bar from 0 to 100 % of a job, beside its last event in words; a widget in a notebook that has ipywidgets.

    Args:
        bar: the class of the bar; ``tqdm.auto.tqdm`` if left out. ``tqdm.rich.tqdm`` draws with Rich.
    """

    def __init__(self, bar: Any = None) -> None:
        if bar is None:
            try:
                from tqdm.auto import tqdm as bar
            except ImportError as error:
                raise OptionError(f'Tqdm needs tqdm, which cannot be imported ({error}): pip install "foveate[tqdm]"') from error
        self._class = bar
        self._bar: Any = None
        self._share = Share()

    def __call__(self, event: Event) -> None:
        done, words = self._share(event), describe(event)
        if words is None and (done is None or self._bar is None):
            return
        if self._bar is None:
            self._bar = self._class(total=100, bar_format="{l_bar}{bar}| {elapsed}<{remaining}")
        if words is not None:
            self._bar.set_description_str(words, refresh=False)
        if done is not None:
            self._bar.n = round(100 * done, 1)
        self._bar.refresh()

    def close(self) -> None:
        """Ends the bar; the next event begins another."""
        bar, self._bar, self._share = self._bar, None, Share()
        if bar is not None:
            bar.close()
