"""AttentionAgent learning CarRacing by evolution with what is at hand in Python: the yardstick for `bench train`.

    python train.py WEIGHTS.safetensors

Two stacks, each with pycma's CMA-ES, each on one thread: Gymnasium with an agent in PyTorch, and EnvPool with agents in
tuned NumPy. Each does two kinds of work: the first generations of a run, from fresh weights, when rollouts are short and
resets weigh most; and generations around the trained weights of the file, when they are long. A rollout ends with the
episode or with the 21st negative reward in a row, as in the paper.

Prints one JSON object. Per stack and kind of work: `steps`, `rollouts`, `cpu_s` (the process's CPU time of everything
from the first `ask` to the last `tell`) and `evolution_cpu_s` (the share of `ask` and `tell` in it). `checks` holds the
return of the trained weights on the tracks of Gymnasium's seeds 0 and 1, driven by the PyTorch agent.
"""

import argparse
import json
import os
import time
import warnings

os.environ["SDL_VIDEODRIVER"] = "dummy"
for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"
warnings.filterwarnings("ignore", module="cma")

import cma  # noqa: E402  (after the thread counts)
import envpool  # noqa: E402
import gymnasium  # noqa: E402
import numpy as np  # noqa: E402
from attention_agent_forward import SHAPES, TunedNumpyAgent, read_safetensors, to_action, torch_agent  # noqa: E402

SIGMA, PATIENCE = 0.1, 20
# Population and generations of each kind of work: enough for several thousand steps.
WORK = {"fresh": (32, 3), "trained": (8, 2)}


def fresh_weights(rng):
    """Uniform within one over the square root of the inputs, as PyTorch's layers begin."""
    fan_in = {"query": 147, "key": 147, "b_hh": 16, "b_ih": 16, "w_hh": 16, "w_ih": 16, "out": 16}
    parts = []
    for name, shape in SHAPES:
        bound = fan_in.get(name, fan_in.get(name.split("_")[0])) ** -0.5
        parts.append(rng.uniform(-bound, bound, int(np.prod(shape))))
    return np.concatenate(parts)


class Gymnasium:
    """One world and one agent, one genome after the other."""

    def __init__(self, weights):
        self.env = gymnasium.make("CarRacing-v3", disable_env_checker=True)
        self.agent = torch_agent(weights)

    def rollout(self, genome, seed, patience):
        self.agent.load(genome)
        self.agent.reset()
        frame, _ = self.env.reset(seed=seed)
        total, steps, red, over = 0.0, 0, 0, False
        while not over and red <= patience:
            frame, reward, terminated, truncated, _ = self.env.step(to_action(self.agent.act(frame)))
            total, steps, over = total + reward, steps + 1, terminated or truncated
            red = red + 1 if reward < 0 else 0
        return total, steps

    def generation(self, genomes, seed):
        return [self.rollout(np.float32(genome), seed, PATIENCE) for genome in genomes]


class EnvPool:
    """All genomes at once, each in a world of the pool; worlds whose rollout is over are stepped no more."""

    def __init__(self, population):
        self.env = envpool.make(
            "CarRacing-v3", env_type="gymnasium", num_envs=population, num_threads=1, seed=1
        )

    def generation(self, genomes, _seed):
        agents = [TunedNumpyAgent(np.float32(genome)) for genome in genomes]
        count = len(agents)
        total, steps, red = np.zeros(count), np.zeros(count, int), np.zeros(count, int)
        frames, _ = self.env.reset()
        ids = np.arange(count, dtype=np.int32)
        while ids.size:
            outputs = np.stack([agents[i].act(frame) for i, frame in zip(ids, frames)])
            frames, rewards, terminated, truncated, info = self.env.step(to_action(outputs), ids)
            ids = info["env_id"].astype(np.int32)
            total[ids] += rewards
            steps[ids] += 1
            red[ids] = np.where(rewards < 0, red[ids] + 1, 0)
            goes_on = ~(terminated | truncated | (red[ids] > PATIENCE))
            frames, ids = frames[goes_on], ids[goes_on]
        return list(zip(total, steps))


def train(stack, start, population, generations):
    # pycma's own warnings and its log files stay away; everything else is at its defaults.
    options = {"popsize": population, "seed": 1, "verbose": -9, "verb_log": 0, "verb_disp": 0}
    evolution = cma.CMAEvolutionStrategy(start.astype(float), SIGMA, options)
    steps, asking = 0, 0.0
    began = time.process_time()
    for generation in range(generations):
        then = time.process_time()
        genomes = evolution.ask()
        asking += time.process_time() - then
        results = stack.generation(genomes, 1000 + generation)
        then = time.process_time()
        evolution.tell(genomes, [-total for total, _ in results])
        asking += time.process_time() - then
        steps += int(sum(steps for _, steps in results))
    return {
        "steps": steps,
        "rollouts": population * generations,
        "cpu_s": time.process_time() - began,
        "evolution_cpu_s": asking,
    }


def main():
    arguments = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    arguments.add_argument("weights", help="a weight file; the LSTM's size may differ from the published one's")
    trained = read_safetensors(arguments.parse_args().weights)
    starts = {"fresh": fresh_weights(np.random.default_rng(1)), "trained": trained}
    result = {"checks": [Gymnasium(trained).rollout(trained, seed, 1000)[0] for seed in (0, 1)]}
    for work, (population, generations) in WORK.items():
        for name, stack in (("gymnasium", Gymnasium(starts[work])), ("envpool", EnvPool(population))):
            result.setdefault(name, {})[work] = train(stack, starts[work], population, generations)
    print(json.dumps(result))


if __name__ == "__main__":
    main()
