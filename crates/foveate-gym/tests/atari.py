"""Episodes of Atari through Gymnasium's own AtariPreprocessing: one line per step of reward, flags and the picture's hash."""

import hashlib
import sys

import ale_py
import gymnasium
from gymnasium.wrappers import AtariPreprocessing

gymnasium.register_envs(ale_py)
name, grey, lives, steps = sys.argv[1], sys.argv[2] == "grey", sys.argv[3] == "lives", int(sys.argv[4])
env = gymnasium.make(name, frameskip=1, repeat_action_probability=0.0)
env = AtariPreprocessing(
    env, noop_max=0, frame_skip=4, screen_size=84, grayscale_obs=grey, grayscale_newaxis=True, terminal_on_life_loss=lives
)


def tell(observation, reward, terminated, truncated):
    if grey:
        observation = observation.repeat(3, axis=2)
    print(float(reward), int(terminated), int(truncated), hashlib.sha256(observation.tobytes()).hexdigest())


observation, _ = env.reset(seed=5)
tell(observation, 0, False, False)
for t in range(steps):
    observation, reward, terminated, truncated, _ = env.step((t // 3 * 7 + 1) % int(env.action_space.n))
    tell(observation, reward, terminated, truncated)
    if terminated or truncated:
        break
