"""Which method tells the truth about a policy? PPO of Stable-Baselines3 learns CarRacing, and Foveate judges six maps of what matters.

    pip install . stable-baselines3 captum opencv-python-headless     # in the root of a clone
    python examples/sb3_which_method.py --minutes 5                   # trains, evaluates, explains; the score grows with the time
    python examples/sb3_which_method.py --model ppo.zip               # explains the model that was saved
"""

import argparse
import time

import foveate
import gymnasium
import numpy as np
from stable_baselines3 import PPO
from stable_baselines3.common.atari_wrappers import WarpFrame
from stable_baselines3.common.vec_env import DummyVecEnv, VecFrameStack, VecMonitor, VecNormalize


class Repeat(gymnasium.Wrapper):
    """Takes every action for four frames; in training, an episode also ends after 25 actions without a new tile."""

    def __init__(self, env, training=False):
        super().__init__(env)
        self.training = training

    def reset(self, **keywords):
        self.idle = 0
        return self.env.reset(**keywords)

    def step(self, action):
        total, terminated, truncated = 0.0, False, False
        for _ in range(4):
            seen, reward, terminated, truncated, info = self.env.step(action)
            total += reward
            if terminated or truncated:
                break
        self.idle = 0 if total > 0 else self.idle + 1
        return seen, total, terminated, truncated or (self.training and self.idle >= 25), info


def make(count=1, training=False):
    """Worlds with five actions that show the last four frames, grey, of 64 x 64 pixels."""

    def one():
        return WarpFrame(Repeat(gymnasium.make("foveate/CarRacing-v3", picture="fast", continuous=False), training), 64, 64)

    return VecFrameStack(DummyVecEnv([one] * count), 4)


def train(minutes):
    start = time.monotonic()
    left = lambda: max(0.0, 1 - (time.monotonic() - start) / (60 * minutes))
    envs = VecNormalize(VecMonitor(make(8, training=True)), norm_obs=False, norm_reward=True)
    rate = lambda _: 3e-4 * (0.05 + 0.95 * left())
    model = PPO("CnnPolicy", envs, rate, n_steps=256, batch_size=128, n_epochs=4, ent_coef=0.005, seed=1, device="cpu")
    model.learn(10**9, callback=lambda _local, _global: left() > 0)
    return model


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--minutes", type=float, default=20)
    parser.add_argument("--model", help="a model that was saved, in place of training")
    parser.add_argument("--episodes", type=int, default=20)
    parser.add_argument("--decisions", type=int, default=30)
    arguments = parser.parse_args()

    model = PPO.load(arguments.model, device="cpu") if arguments.model else train(arguments.minutes)
    if not arguments.model:
        model.save("ppo.zip")
    print(foveate.evaluate(model, make(), episodes=arguments.episodes))

    rows, columns = np.mgrid[-1:1:64j, -1:1:64j]
    centre = np.exp(-4 * (rows**2 + columns**2))
    claims = {
        "gradients": foveate.claims.gradients(model),
        "integrated gradients": foveate.claims.integrated_gradients(model),
        "Grad-CAM": foveate.claims.grad_cam(model),
        "Captum Occlusion": foveate.claims.captum(model, "Occlusion", sliding_window_shapes=(4, 8, 8), strides=(4, 4, 4)),
        "Captum DeepLift": foveate.claims.captum(model, "DeepLift"),
        "centre": lambda _: centre,  # what no method is needed for
    }
    # As many questions as the method wants: with 3,000, six claims would be tested at a few decisions alone.
    sizes = {"episodes": arguments.episodes, "decisions": arguments.decisions, "questions": None, "untrained": 0}
    print(foveate.explain(model, make(), claims=claims, out="which-method", **sizes))


main()
