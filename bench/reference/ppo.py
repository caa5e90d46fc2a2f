"""Proximal policy optimisation of Foveate's own worlds, in a batch, by what people use today: the same network, rollouts of as many
steps and updates of as many as in Foveate's presets.

    python ppo.py door-key|numbers|pictures torch|sb3|sbx STEPS [SCORE]

Prints one JSON object: `steps` and CPU seconds of the whole training (`cpu_s`), of its worlds alone (`world_cpu_s`), the mean
return of the last 100 episodes (`score`) and CPU seconds until that mean reached SCORE (`score_cpu_s`, null when it did not).
One thread. `torch` is a loop of 60 lines without classes of distributions, with a fused Adam and channels last.
"""

import json
import os
import sys

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")
os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1")

import time  # noqa: E402  (after the thread counts)
from collections import deque  # noqa: E402

import gymnasium  # noqa: E402
import numpy as np  # noqa: E402

import foveate.envs  # noqa: E402

GREY = {"wrap": "grey+resize:48x48+blank:bottom=6+stack:4"}
# World, its settings, worlds in a batch, steps of each in a round, epochs, learning rate, entropy weight, deviation, scale of rewards.
TASKS = {
    "door-key": ("door-key-5x5", {"picture": "one-hot", "options": {"actions": "five"}}, 32, 32, 4, 1e-3, 0.01, None, 1.0),
    "numbers": ("cartpole-swingup-harder", {}, 8, 1000, 5, 6e-4, 0.0, -0.5, 0.1),
    "pictures": ("car-racing", {"picture": "fast", "options": GREY}, 8, 500, 6, 4e-4, 0.002, -0.7, 0.05),
}
DISCOUNT, LAMBDA, CLIP, BATCH, NORM = 0.99, 0.95, 0.2, 256, 0.5


class Clock:
    """CPU time of the training, of its worlds, and until the mean return of the last 100 episodes reached a score."""

    def __init__(self, score):
        self.start, self.world, self.score, self.reached = time.process_time(), 0.0, score, None
        self.last = deque(maxlen=100)

    def ended(self, total):
        self.last.append(total)
        if self.reached is None and len(self.last) == 100 and np.mean(self.last) >= self.score:
            self.reached = time.process_time() - self.start


class Batch:
    """The worlds of a task, with the returns of their episodes."""

    def __init__(self, task, clock):
        name, settings, count, *_ = TASKS[task]
        limit = {"door-key": 250, "numbers": 1000, "pictures": 1000}[task]
        self.envs = foveate.envs.VectorEnv(
            name, num_envs=count, max_episode_steps=limit, autoreset_mode="SameStep", threads=1, copy=False, **settings
        )
        self.returns, self.clock = np.zeros(count), clock
        self.space = self.envs.single_observation_space
        # Frames of one grey channel are channels of a picture.
        self.shown = (lambda seen: seen[..., 0]) if task == "pictures" else (lambda seen: seen)
        if task == "pictures":
            self.space = gymnasium.spaces.Box(0, 255, self.space.shape[:-1], np.uint8)

    def reset(self):
        return self.shown(self.envs.reset(seed=1)[0])

    def step(self, actions):
        begin = time.process_time()
        seen, rewards, terminated, truncated, infos = self.envs.step(actions)
        self.clock.world += time.process_time() - begin
        self.returns += rewards
        for i in np.flatnonzero(terminated | truncated):
            self.clock.ended(self.returns[i])
            self.returns[i] = 0.0
        return self.shown(seen), rewards, terminated, truncated, infos


def with_torch(task, steps, clock):
    import torch
    from torch import nn
    from torch.nn import functional as F

    torch.set_num_threads(1)
    torch.manual_seed(1)
    _, _, count, length, epochs, rate, entropy_weight, log_std, scale = TASKS[task]
    worlds = Batch(task, clock)
    seen = worlds.reset()
    discrete = log_std is None
    space = worlds.envs.single_action_space
    outputs = int(space.n) if discrete else space.shape[0]
    size = int(np.prod(seen.shape[1:]))

    def network():
        if task == "pictures":
            body = [nn.Conv2d(seen.shape[1], 16, 8, 4), nn.ReLU(), nn.Conv2d(16, 32, 4, 2), nn.ReLU(), nn.Flatten()]
            return nn.Sequential(*body, nn.Linear(32 * 4 * 4, 128), nn.ReLU()).to(memory_format=torch.channels_last), 128
        width = 64 if task == "door-key" else 128
        return nn.Sequential(nn.Linear(size, width), nn.Tanh(), nn.Linear(width, 64), nn.Tanh()), 64

    if task == "pictures":
        body, width = network()
        policy, value, parts = nn.Linear(width, outputs), nn.Linear(width, 1), [body]
    else:
        (body, width), (other, _) = network(), network()
        policy, value, parts = nn.Linear(width, outputs), nn.Linear(width, 1), [body, other]
    deviation = nn.Parameter(torch.full((outputs,), log_std or 0.0))
    params = [p for part in [*parts, policy, value] for p in part.parameters()] + ([] if discrete else [deviation])
    adam = torch.optim.Adam(params, lr=rate, eps=1e-5, fused=True)

    def forward(x):
        x = x.float() if task != "pictures" else x.to(torch.float32, memory_format=torch.channels_last).div_(255.0)
        x = x if task == "pictures" else x.flatten(1)
        h = parts[0](x)
        return policy(h), value(h if len(parts) == 1 else parts[1](x)).squeeze(1)

    def log_probs(out, actions):
        if discrete:
            logs = F.log_softmax(out, 1)
            return logs.gather(1, actions[:, None]).squeeze(1), -(logs.exp() * logs).sum(1).mean()
        log = -0.5 * ((actions - out) * torch.exp(-deviation)) ** 2 - deviation - 0.9189385
        return log.sum(1), (deviation + 1.4189385).sum()

    taken = 0
    while taken < steps:
        kept, rewards, ends, values, logs, actions = [], [], [], [], [], []
        with torch.no_grad():
            for _ in range(length):
                x = torch.from_numpy(seen.copy())
                out, v = forward(x)
                if discrete:
                    a = torch.multinomial(F.softmax(out, 1), 1).squeeze(1)
                else:
                    a = out + deviation.exp() * torch.randn_like(out)
                kept.append(x), values.append(v), actions.append(a), logs.append(log_probs(out, a)[0])
                acted = a.numpy() if discrete else np.clip(a.numpy(), space.low, space.high)
                seen, r, terminated, truncated, _ = worlds.step(acted)
                rewards.append(torch.from_numpy(r * scale).float())
                ends.append(torch.from_numpy(terminated | truncated).float())
            following, gain, gains = forward(torch.from_numpy(seen.copy()))[1], 0.0, [None] * length
            for t in reversed(range(length)):
                alive = 1.0 - ends[t]
                gain = rewards[t] + DISCOUNT * following * alive - values[t] + DISCOUNT * LAMBDA * alive * gain
                following, gains[t] = values[t], gain
        taken += count * length
        kept, values, logs, actions, gains = (torch.cat(x) for x in (kept, values, logs, actions, gains))
        targets, gains = gains + values, (gains - gains.mean()) / (gains.std() + 1e-8)
        for _ in range(epochs):
            for batch in torch.randperm(len(logs)).split(BATCH):
                out, v = forward(kept[batch])
                log, entropy = log_probs(out, actions[batch])
                ratio, gain = (log - logs[batch]).exp(), gains[batch]
                gained = torch.min(ratio * gain, ratio.clamp(1 - CLIP, 1 + CLIP) * gain).mean()
                loss = 0.25 * (v - targets[batch]).square().mean() - gained - entropy_weight * entropy
                adam.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(params, NORM)
                adam.step()
    return taken


def with_library(library, task, steps, clock):
    from stable_baselines3.common.vec_env import VecEnv

    _, _, count, length, epochs, rate, entropy_weight, log_std, scale = TASKS[task]

    class Worlds(VecEnv):
        """A batch of Foveate's worlds as Stable-Baselines3 takes one."""

        def __init__(self):
            self.worlds = Batch(task, clock)
            super().__init__(count, self.worlds.space, self.worlds.envs.single_action_space)

        def reset(self):
            return self.worlds.reset()

        def step_async(self, actions):
            self.actions = actions

        def step_wait(self):
            seen, rewards, terminated, truncated, infos = self.worlds.step(self.actions)
            told = [{} for _ in range(count)]
            for i in np.flatnonzero(terminated | truncated):
                told[i] = {"terminal_observation": self.worlds.shown(infos["final_obs"][i]), "TimeLimit.truncated": bool(truncated[i])}
            return seen.copy(), rewards * scale, terminated | truncated, told

        def close(self):
            pass

        def get_attr(self, name, indices=None):
            return [None] * count

        def set_attr(self, name, value, indices=None):
            raise NotImplementedError

        def env_method(self, name, *args, indices=None, **more):
            raise NotImplementedError

        def env_is_wrapped(self, wrapper, indices=None):
            return [False] * count

    more = {} if log_std is None else {"log_std_init": log_std}
    kind, layers = "MlpPolicy", [64, 64] if task == "door-key" else [128, 64]
    if library == "sb3":
        import torch
        from stable_baselines3 import PPO
        from stable_baselines3.common.torch_layers import BaseFeaturesExtractor

        torch.set_num_threads(1)

        class Convolutions(BaseFeaturesExtractor):
            def __init__(self, space):
                super().__init__(space, 128)
                conv = [torch.nn.Conv2d(space.shape[0], 16, 8, 4), torch.nn.ReLU(), torch.nn.Conv2d(16, 32, 4, 2), torch.nn.ReLU()]
                self.net = torch.nn.Sequential(*conv, torch.nn.Flatten(), torch.nn.Linear(512, 128), torch.nn.ReLU())

            def forward(self, x):
                return self.net(x)

        if task == "pictures":
            kind, layers, more = "CnnPolicy", [], more | {"features_extractor_class": Convolutions}
    else:
        from sbx import PPO
    model = PPO(
        kind, Worlds(), n_steps=length, batch_size=BATCH, n_epochs=epochs, learning_rate=rate, ent_coef=entropy_weight, gamma=DISCOUNT,
        gae_lambda=LAMBDA, clip_range=CLIP, max_grad_norm=NORM, seed=1, policy_kwargs={"net_arch": layers, **more},
        **({"device": "cpu"} if library == "sb3" else {}),
    )
    model.learn(steps)
    return model.num_timesteps


def main():
    task, library, steps = sys.argv[1], sys.argv[2], int(sys.argv[3])
    clock = Clock(float(sys.argv[4]) if len(sys.argv) > 4 else np.inf)
    if library == "torch":
        taken = with_torch(task, steps, clock)
    else:
        taken = with_library(library, task, steps, clock)
    spent = time.process_time() - clock.start
    score = float(np.mean(clock.last)) if clock.last else None
    print(json.dumps({"steps": taken, "cpu_s": spent, "world_cpu_s": clock.world, "score": score, "score_cpu_s": clock.reached}))


main()
