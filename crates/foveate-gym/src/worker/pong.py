"""PongNoFrameskip-v4; runs in the worker, before its host makes the environment.

Every step is one frame, actions do not stick, and the emulator truncates an episode after 108,000 frames. ale-py is
imported from the user's Python; nothing of it is part of Foveate.
"""

gymnasium, numpy = toolbox()
try:
    from ale_py.env import AtariEnv
except ImportError as error:
    raise Refusal("ale_py cannot be imported (%s); install it with: %s" % (one_line(error), pip("ale-py")))


class Pong(AtariEnv):
    """The screen, `[210, 160, 3]`; choices: nothing, fire, right, left, right and fire, left and fire."""

    metadata = dict(AtariEnv.metadata, render_fps=60)

    def __init__(self, **settings):
        super().__init__(**settings)
        self.expert = PongExpert(numpy, self.ale, self._action_set)

    def reset(self, **settings):
        first = super().reset(**settings)
        self.expert.begin()
        return first

    def step(self, action):
        result = super().step(action)
        self.expert.see(int(action))
        return result

    def foveate_expert(self):
        return self.expert.advise()


gymnasium.register(
    id="FoveatePong-v0",
    entry_point=Pong,
    kwargs={
        "game": "pong",
        "obs_type": "rgb",
        "frameskip": 1,
        "repeat_action_probability": 0.0,
        "full_action_space": False,
        "max_num_frames_per_episode": 108000,
    },
)
