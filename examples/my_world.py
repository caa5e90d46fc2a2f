"""A world of one's own, as small as it can be: catch falling balls. It shows a picture of 64 x 64 pixels and nothing else.

    foveate train gym:my_world:Catch-v0 --option path=examples
"""

import gymnasium
import numpy as np
from gymnasium import spaces

SIZE, BALL, PADDLE, SPEED = 64, 8, 12, 4


class Catch(gymnasium.Env):
    """Ten balls, one after the other; a caught one is worth 1, a missed one -1."""

    metadata = {"render_modes": ["rgb_array"], "render_fps": 20}
    observation_space = spaces.Box(0, 255, (SIZE, SIZE, 3), np.uint8)
    action_space = spaces.Box(-1.0, 1.0, (1,), np.float32)  # where the paddle shall go: -1 left, 1 right

    def __init__(self, render_mode=None, balls=10):
        self.render_mode, self.balls = render_mode, balls

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.paddle, self.left = (SIZE - PADDLE) // 2, self.balls
        self.drop()
        return self.render(), {}

    def drop(self):
        self.x, self.y = int(self.np_random.integers(SIZE - BALL + 1)), 0

    def step(self, action):
        goal = round((float(np.clip(action[0], -1, 1)) + 1) / 2 * (SIZE - PADDLE))
        self.paddle += min(max(goal - self.paddle, -SPEED), SPEED)
        self.y += SPEED
        reward = 0.0
        if self.y + BALL > SIZE - 4:
            reward = 1.0 if self.paddle - BALL < self.x < self.paddle + PADDLE else -1.0
            self.left -= 1
            self.drop()
        return self.render(), reward, self.left == 0, False, {}

    def render(self):
        picture = np.zeros((SIZE, SIZE, 3), np.uint8)
        picture[self.y : self.y + BALL, self.x : self.x + BALL] = (255, 200, 0)
        picture[-4:, self.paddle : self.paddle + PADDLE] = (0, 120, 255)
        return picture


gymnasium.register("Catch-v0", entry_point=Catch, max_episode_steps=1000)
