"""One game of the Arcade Learning Environment; runs in the worker, before its host makes the environment.

Every step is one frame, and neither a lost life nor a number of frames ends an episode. Every reset is that of a game that was
loaded anew with the seed, from which the emulator draws when actions stick. ale-py is imported from the user's Python; nothing
of it is part of Foveate.
"""

gymnasium, numpy = toolbox()
try:
    from ale_py import ALEState, roms
    from ale_py.env import AtariEnv
except ImportError as error:
    raise Refusal("ale_py cannot be imported (%s); install it with: %s" % (one_line(error), pip("ale-py")))


# Games that have an expert, whose choices are those that the game distinguishes; and those that have another where no action
# sticks.
EXPERTS = {"breakout": BreakoutExpert, "pong": PongExpert}
EXACT_EXPERTS = {"pong": SearchingPongExpert}


def counted(data):
    """Bytes as the emulator stores them in its state."""
    return len(data).to_bytes(4, "little") + data


class Beginning:
    """The emulator after the first reset. To load a game takes twenty times as long as to reset it, and the states after two
    seeds differ in their generator alone, so that of another seed is written down instead. The second reset loads the game once
    more, and what was written down counts from then on only if it was the same to the bit."""

    # Bytes in which the length of what follows is looked for, and those after it.
    HEAD, TAIL = 64, 8

    def __init__(self, ale, seed, picture):
        self.picture = picture
        # Whether it may be used; not known at first.
        self.exact = None
        # The state before and after the generator, in front of and behind the bytes whose length it names; None where the
        # emulator's states are not as expected.
        self.parts = None
        data, own = self.state(ale), self.generator(seed)
        end = len(data) - self.TAIL
        lengths = [i for i in range(self.HEAD) if i + 4 + int.from_bytes(data[i : i + 4], "little") == end]
        if data.count(own) == 1 and len(lengths) == 1:
            at, here = lengths[0], data.index(own)
            self.parts = data[:at], data[at + 4 : here], data[here + len(own) : end], data[end:]

    @staticmethod
    def state(ale):
        return bytes(ale.cloneState(include_rng=True).serialize())

    @staticmethod
    def generator(seed):
        """The Mersenne Twister after this seed, as C++ writes it."""
        words = numpy.random.RandomState(int(seed) % 2**32).get_state()[1]
        return counted(b"%s 624" % b" ".join(b"%d" % word for word in words))

    def after(self, seed):
        """The state after another seed."""
        head, before, behind, tail = self.parts
        return head + counted(before + self.generator(seed) + behind) + tail


class Atari(AtariEnv):
    """The screen, `[height, width, 3]`; the choices are those of the game, or all 18."""

    metadata = dict(AtariEnv.metadata, render_fps=60)

    def __init__(self, game, repeat_action_probability, **settings):
        if game not in roms.get_all_rom_ids():
            raise Refusal("this ale-py has no game %s; install a newer one with: %s" % (game, pip("--upgrade ale-py")))
        self.beginning = None
        super().__init__(game=game, repeat_action_probability=repeat_action_probability, **settings)
        self.expert = None
        expert = EXPERTS.get(game)
        if repeat_action_probability == 0:
            expert = EXACT_EXPERTS.get(game, expert)
        if expert:
            self.its_actions = self.ale.getMinimalActionSet()
            self.expert = expert(numpy, self.ale, self.its_actions)
            self.foveate_expert = self.advise

    def reset(self, *, seed=None, options=None):
        first = self.begin(seed) or super().reset(seed=seed, options=options)
        if seed is not None:
            self.remember(seed, first[0])
        if self.expert:
            self.expert.begin()
        return first

    def begin(self, seed):
        """A reset without loading the game; None where it has to be loaded."""
        if seed is None or self.beginning is None or not self.beginning.exact:
            return None
        seeds = self.seed_game(seed)
        state = ALEState(self.beginning.after(seeds[1]))
        # This forgets the last action, which may stick.
        self.ale.reset_game()
        self.ale.restoreState(state)
        return self.beginning.picture.copy(), dict(self._get_info(), seeds=seeds)

    def remember(self, seed, picture):
        if self.beginning is None:
            self.beginning = Beginning(self.ale, self.seed_game(seed)[1], picture.copy())
        elif self.beginning.exact is None:
            self.beginning.exact = self.foresaw(seed, picture)

    def foresaw(self, seed, picture):
        """Whether the beginning says what this reset led to."""
        if self.beginning.parts is None or not numpy.array_equal(picture, self.beginning.picture):
            return False
        expected = self.beginning.after(self.seed_game(seed)[1])
        if expected != Beginning.state(self.ale):
            return False
        try:
            return ALEState(expected).equals(self.ale.cloneState(include_rng=True))
        except Exception:  # a version that reads no states
            return False

    def step(self, action):
        return self.foveate_repeat(action, 1)[:5]

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
