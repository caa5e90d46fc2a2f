"""One game of the Arcade Learning Environment; runs in the worker, before its host makes the environment.

Every step is one frame, and neither a lost life nor a number of frames ends an episode. Every reset loads the game anew with
the seed, from which the emulator draws when actions stick. ale-py is imported from the user's Python; nothing of it is part of
Foveate.
"""

gymnasium, numpy = toolbox()
try:
    from ale_py import roms
    from ale_py.env import AtariEnv
except ImportError as error:
    raise Refusal("ale_py cannot be imported (%s); install it with: %s" % (one_line(error), pip("ale-py")))


class Atari(AtariEnv):
    """The screen, `[height, width, 3]`; the choices are those of the game, or all 18."""

    metadata = dict(AtariEnv.metadata, render_fps=60)

    def __init__(self, game, **settings):
        if game not in roms.get_all_rom_ids():
            raise Refusal("this ale-py has no game %s; install a newer one with: %s" % (game, pip("--upgrade ale-py")))
        super().__init__(game=game, **settings)


gymnasium.register(
    id="FoveateAtari-v0",
    entry_point=Atari,
    kwargs={
        "obs_type": "rgb",
        "frameskip": 1,
    },
)
