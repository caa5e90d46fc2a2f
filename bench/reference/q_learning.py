"""Deep Q-learning of DoorKey-5x5 with PyTorch and minigrid: the preset `relational` of crates/foveate-registry/presets, with
the same network, replay buffer and number of updates.

    python q_learning.py [STEPS]

Prints one JSON object: CPU seconds on one thread of the first steps, which only fill the replay buffer (`fill_steps` and
`fill_cpu_s`), and of the STEPS that follow with their updates (`steps`, `updates` and `cpu_s`); `acting_cpu_s` is the share of
decisions and steps of the world in that. The probability of a random action is constant, the mean of the preset's over
50,000 steps.
"""

import json
import os
import pathlib
import sys
import tomllib

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

import time  # noqa: E402  (after the thread counts)

import gymnasium  # noqa: E402
import minigrid  # noqa: E402, F401  (registers the worlds)
import numpy as np  # noqa: E402
import torch  # noqa: E402
from learning import Values  # noqa: E402
from minigrid.wrappers import ImgObsWrapper  # noqa: E402
from torch.nn import functional as F  # noqa: E402

PRESET = pathlib.Path(__file__).parents[2] / "crates/foveate-registry/presets/relational.toml"
WHOLE = 50_000
# left, right, forward, pick up, toggle
ACTIONS = [0, 1, 2, 3, 5]
# Numbers of kinds, colours and states of a cell.
KINDS = 11, 6, 3
SIZES = 20, [16, 16], 2, 16, 32, False
# Added to errors, and the exponent of the weights that correct for priorities.
LEAST, CORRECTION = 1e-6, 0.4


def bits(image):
    """[7, 7, 3] codes as [7, 7, 20] bits."""
    return np.concatenate([np.eye(n, dtype=np.uint8)[image[..., i]] for i, n in enumerate(KINDS)], -1)


class Replay:
    """The last transitions, drawn in proportion to their priorities; sums of those in a binary tree."""

    def __init__(self, capacity):
        self.before, self.after = (np.zeros((capacity, 7, 7, 20), np.uint8) for _ in range(2))
        self.actions = np.zeros(capacity, np.int64)
        self.rewards, self.discounts = np.zeros(capacity, np.float32), np.zeros(capacity, np.float32)
        self.leaves = 1 << (capacity - 1).bit_length()
        self.sums = np.zeros(2 * self.leaves)
        self.capacity, self.next, self.size, self.largest = capacity, 0, 0, 1.0

    def push(self, before, action, reward, discount, after):
        at = self.next
        self.before[at], self.after[at] = before, after
        self.actions[at], self.rewards[at], self.discounts[at] = action, reward, discount
        node = at + self.leaves
        self.sums[node] = self.largest
        while node > 1:
            node //= 2
            self.sums[node] = self.sums[2 * node] + self.sums[2 * node + 1]
        self.next, self.size = (at + 1) % self.capacity, min(self.size + 1, self.capacity)

    def set(self, places, priorities):
        self.largest = max(self.largest, priorities.max())
        nodes = places + self.leaves
        self.sums[nodes] = priorities
        while nodes[0] > 1:
            nodes = np.unique(nodes // 2)
            self.sums[nodes] = self.sums[2 * nodes] + self.sums[2 * nodes + 1]

    def draw(self, rng, count):
        """Places and priorities."""
        left, nodes = rng.random(count) * self.sums[1], np.ones(count, np.int64)
        while nodes[0] < self.leaves:
            first = self.sums[2 * nodes]
            right = left >= first
            left = np.where(right, left - first, left)
            nodes = 2 * nodes + right
        places = np.minimum(nodes - self.leaves, self.size - 1)
        return places, self.sums[places + self.leaves]


class Learner:
    def __init__(self, stage, rng):
        self.stage, self.rng, self.updates = stage, rng, 0
        torch.manual_seed(1)
        blank = Values(np.zeros(COUNT, np.float32), *SIZES)
        flat = np.concatenate([start(name, p).ravel() for name, p in blank.named_parameters()])
        self.online, self.target, self.average = (Values(flat.astype(np.float32), *SIZES) for _ in range(3))
        self.optimizer = torch.optim.Adam(self.online.parameters(), lr=stage["learning_rate"], fused=True)
        self.replay = Replay(stage["capacity"])

    def act(self, observation, epsilon):
        if self.rng.random() < epsilon:
            return int(self.rng.integers(len(ACTIONS)))
        with torch.inference_mode():
            return int(self.online(torch.from_numpy(observation[None])).argmax())

    def update(self):
        if self.updates % self.stage["target_every"] == 0:
            self.target.load_state_dict(self.online.state_dict())
        replay = self.replay
        places, priorities = replay.draw(self.rng, self.stage["batch"])
        before, after, actions, rewards, discounts = (
            torch.from_numpy(kept[places])
            for kept in (replay.before, replay.after, replay.actions, replay.rewards, replay.discounts)
        )
        weights = (replay.size * priorities / replay.sums[1]) ** -CORRECTION
        weights = torch.from_numpy((weights / weights.max()).astype(np.float32))
        with torch.no_grad():
            best = self.online(after).argmax(1, keepdim=True)
            wanted = rewards + discounts * self.target(after).gather(1, best)[:, 0]
        errors = self.online(before).gather(1, actions[:, None])[:, 0] - wanted
        self.optimizer.zero_grad()
        (weights * errors.square()).mean().backward()
        torch.nn.utils.clip_grad_norm_(self.online.parameters(), 10.0)
        self.optimizer.step()
        self.updates += 1
        replay.set(places, (errors.detach().abs().numpy().astype(float) + LEAST) ** self.stage["priority"])
        keep = min(self.stage["averaging"], 1 - 1 / self.updates)
        with torch.no_grad():
            torch._foreach_lerp_(list(self.average.parameters()), list(self.online.parameters()), 1 - keep)


# Parameters of the network: convolutions, queries, keys and values with their normalisations, and two layers.
COUNT = 20 * 16 + 16 + 16 * 16 + 16 + 3 * (18 * 32 + 32 + 2 * 2 * 49 * 16) + 32 * 32 + 32 + 32 * 5 + 5


def start(name, parameter):
    """Ones and zeros for normalisations; else uniform within one over the square root of the inputs, of weights."""
    if name.endswith("_scale"):
        return np.ones(parameter.shape)
    if name.endswith("_shift"):
        return np.zeros(parameter.shape)
    inputs = {"conv0": 20, "conv1": 16, "linear1": 32, "linear2": 32}.get(name[:-2], 18)
    shape = [parameter.shape[i] for i in (0, 2, 3, 1)] if parameter.dim() == 4 else parameter.shape
    return torch.empty(shape).uniform_(-(inputs**-0.5), inputs**-0.5).numpy()


def mean_epsilon(schedule, begin):
    """The mean over the steps from `begin` to WHOLE."""
    steps = np.arange(begin, WHOLE)
    share = np.minimum(steps / schedule["over"], 1)
    return float(np.mean(schedule["from"] + (schedule["to"] - schedule["from"]) * share))


def main():
    steps = int(sys.argv[1]) if len(sys.argv) > 1 else 2000
    stage = tomllib.loads(PRESET.read_text())["recipe"]["stage"][0]
    epsilon = mean_epsilon(stage["epsilon"], stage["first"])
    env = ImgObsWrapper(gymnasium.make("MiniGrid-DoorKey-5x5-v0"))
    rng, parts, episode = np.random.default_rng(1), {}, 0
    start_s, acting, filled = time.process_time(), 0.0, None
    learner = Learner(stage, rng)
    observation, done = None, 0
    while filled is None or done < steps:
        begin = time.process_time()
        if observation is None:
            observation = bits(env.reset(seed=episode)[0])
            episode += 1
        action = learner.act(observation, 1.0 if filled is None else epsilon)
        after, reward, terminated, truncated, _ = env.step(ACTIONS[action])
        after = bits(after)
        acting += time.process_time() - begin
        discount = 0.0 if terminated else stage["discount"]
        for _ in range(stage["rewarding_copies"] if reward > 0 else 1):
            learner.replay.push(observation, action, reward, discount, after)
        observation = None if terminated or truncated else after
        done += 1
        if filled is None:
            if learner.replay.size > stage["first"]:
                filled = done
                parts = {"fill_steps": done, "fill_cpu_s": time.process_time() - start_s}
                start_s, acting, done, episode_before = time.process_time(), 0.0, 0, episode
        elif done % stage["steps_per_update"] == 0:
            learner.update()
    spent = time.process_time() - start_s
    parts |= {"steps": done, "updates": learner.updates, "cpu_s": spent, "acting_cpu_s": acting}
    print(json.dumps({**parts, "episodes": episode - episode_before, "torch": torch.__version__}))


if __name__ == "__main__":
    main()
