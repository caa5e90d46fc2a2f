"""PPO of Stable-Baselines3 on Foveate's CarRacing, unchanged; then the trained policy is tested and explained by Foveate.

    pip install . stable-baselines3          # in the root of a clone
    python examples/sb3_ppo.py --steps 20000                     # trains, evaluates, tests, explains
    python examples/sb3_ppo.py --steps 4096 --only-train --env CarRacing-v3     # the same with Gymnasium's, for the clock
"""

import argparse
import time

import foveate
import gymnasium
from stable_baselines3 import PPO
from stable_baselines3.common.env_util import make_vec_env


class Clocked(gymnasium.Wrapper):
    """Adds up the seconds of `reset` and `step`."""

    seconds = 0.0

    def reset(self, **arguments):
        start = time.perf_counter()
        result = self.env.reset(**arguments)
        Clocked.seconds += time.perf_counter() - start
        return result

    def step(self, action):
        start = time.perf_counter()
        result = self.env.step(action)
        Clocked.seconds += time.perf_counter() - start
        return result


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=20_000)
    parser.add_argument("--env", default="foveate/CarRacing-v3", help="or Gymnasium's CarRacing-v3")
    parser.add_argument("--only-train", action="store_true")
    parser.add_argument("--episodes", type=int, default=10)
    arguments = parser.parse_args()

    envs = make_vec_env(arguments.env, n_envs=2, seed=1, wrapper_class=Clocked)
    model = PPO("CnnPolicy", envs, n_steps=512, batch_size=128, n_epochs=4, seed=1, device="cpu")
    Clocked.seconds = 0.0
    start = time.perf_counter()
    model.learn(arguments.steps)
    seconds = time.perf_counter() - start
    print(f"{arguments.env}: {model.num_timesteps / seconds:.0f} steps/s, {Clocked.seconds / seconds:.1%} of the time in the world")
    if arguments.only_train:
        return

    # The world by its name is Foveate's own, without the clock around it.
    print(foveate.evaluate(model, "car-racing", episodes=arguments.episodes))
    print(foveate.stress(model, "car-racing", variants="color,bar", episodes=arguments.episodes))
    # Which method tells the truth about this model?
    claims = {"Grad-CAM": foveate.claims.grad_cam(model), "gradients": foveate.claims.gradients(model)}
    print(foveate.explain(model, "car-racing", claims=claims, out="sb3-report", episodes=arguments.episodes, decisions=10, untrained=0))


main()
