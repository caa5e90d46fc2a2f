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


# Games that have an expert, whose choices are those that the game distinguishes; and those that have another where no action
# sticks.
EXPERTS = {"breakout": BreakoutExpert, "pong": PongExpert}
EXACT_EXPERTS = {"pong": SearchingPongExpert}


class Atari(AtariEnv):
    """The screen, `[height, width, 3]`; the choices are those of the game, or all 18."""

    metadata = dict(AtariEnv.metadata, render_fps=60)

    def __init__(self, game, repeat_action_probability, **settings):
        if game not in roms.get_all_rom_ids():
            raise Refusal("this ale-py has no game %s; install a newer one with: %s" % (game, pip("--upgrade ale-py")))
        super().__init__(game=game, repeat_action_probability=repeat_action_probability, **settings)
        self.expert = None
        expert = EXPERTS.get(game)
        if repeat_action_probability == 0:
            expert = EXACT_EXPERTS.get(game, expert)
        if expert:
            self.its_actions = self.ale.getMinimalActionSet()
            self.expert = expert(numpy, self.ale, self.its_actions)
            self.foveate_expert = self.advise

    def reset(self, **settings):
        first = super().reset(**settings)
        if self.expert:
            self.expert.begin()
        return first

    def step(self, action):
        result = super().step(action)
        if self.expert:
            done = self._action_set[int(action)]
            self.expert.see(self.its_actions.index(done) if done in self.its_actions else 0)
        return result

    def foveate_repeat(self, action, times):
        """So many frames with an action, or to the end: draws the last one alone."""
        act, over = self.ale.act, self.ale.game_over
        done, expert = self._action_set[int(action)], self.expert
        seen = self.its_actions.index(done) if expert and done in self.its_actions else 0
        total, made = 0.0, 0
        while made < times:
            total += act(done)
            made += 1
            if expert:
                expert.see(seen)
            if over():
                break
        ale = self.ale
        return (
            self._get_obs(),
            total,
            ale.game_over(with_truncation=False),
            ale.game_truncated(),
            self._get_info(),
            made,
        )

    def advise(self):
        """A score for each choice, of all 18 for the game's own."""
        scores = dict(zip(self.its_actions, self.expert.advise()))
        return [scores.get(action, 0.0) for action in self._action_set]


gymnasium.register(
    id="FoveateAtari-v0",
    entry_point=Atari,
    kwargs={
        "obs_type": "rgb",
        "frameskip": 1,
    },
)
