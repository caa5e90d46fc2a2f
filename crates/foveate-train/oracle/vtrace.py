"""V-trace's targets, the loss and its gradient through time with S3TA, in JAX in double precision; the gradient comes from
automatic differentiation.

The networks are those of crates/foveate-agents/oracle/s3ta.py, which also says how texts and tensors are written, and why JAX.
Of each case: its name, the agent's configuration and the learner's, both as JSON; the weights by name; the number of episodes,
and of each its number of unrolls. Of each unroll: the number of steps, 1 or 0 for an end, the states before, the pictures
in bytes `[steps + 1, ...]`, the choices, the rewards and the logits of the actor; then the logarithms of the ratios, the values
`[steps + 1]`, the targets of the values and the advantages. After all episodes the loss, and its gradient by name. "end" as a
name ends it.
"""

import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "foveate-agents/oracle"))

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402
from s3ta import REDUCED, Pipe, draw, shapes, single, state_shapes, step, told  # noqa: E402

LEARNER = {
    "discount": 0.9,
    "entropy_weight": 0.03,
    "value_weight": 0.7,
    "rho": 1.2,
    "trace": 0.9,
    "policy_rho": 1.1,
    "reward_clip": 1.0,
    "reduce": "sum",
    "clip": 1e9,
}
CASES = {
    "top-down, bounds apart": (REDUCED["top-down"], LEARNER),
    "fixed query, mean": (REDUCED["fixed query"], LEARNER | {"reduce": "mean"}),
    "key norms, bounds of 1": (REDUCED["key norms"], LEARNER | {"rho": 1.0, "trace": 1.0, "policy_rho": 1.0}),
    "residual with an LSTM": (REDUCED["residual with an LSTM"], LEARNER),
}
# Steps of the unrolls of each episode, and whether the task ends with the last.
EPISODES = [([4, 3], False), ([4], True)]


def targets(learner, ratios, rewards, values, terminated):
    """Espeholt et al. 2018, equation 1, as the sum over all later steps."""
    steps, discounts = len(rewards), np.full(len(rewards), learner["discount"])
    discounts[-1] *= not terminated
    rho, trace = np.minimum(ratios, learner["rho"]), np.minimum(ratios, learner["trace"])
    deltas = rho * (rewards + discounts * values[1:] - values[:-1])
    aims = [
        values[s]
        + sum(np.prod(discounts[s:t]) * np.prod(trace[s:t]) * deltas[t] for t in range(s, steps))
        for s in range(steps)
    ]
    after = np.array([*aims[1:], values[-1]])
    bounded = np.minimum(ratios, learner["policy_rho"])
    return np.array(aims), bounded * (rewards + discounts * after - values[:-1])


def unroll(config, p, states, pictures, rewards, choices, before):
    """Logits and values of all observations; `before` is reward and choice of the step before the first."""
    all = []
    for t in range(len(pictures)):
        reward, choice = (rewards[t - 1], choices[t - 1]) if t else before
        said = told(config, np.array([reward]), [choice])
        logits, values, states, _ = step(config, p, pictures[t][None] / 255, said, states)
        all.append((logits[0], values[0]))
    return [jnp.stack(part) for part in zip(*all)]


def write_case(pipe, rng, name, config, learner):
    p, pieces, total = draw(rng, shapes(config)), [], 0
    pipe.text(name)
    pipe.text(json.dumps(config))
    pipe.text(json.dumps(learner))
    pipe.tensors(p)
    pipe.numbers(len(EPISODES))
    for lengths, ends in EPISODES:
        pipe.numbers(len(lengths))
        before = (0.0, -1)
        for i, steps in enumerate(lengths):
            terminated = ends and i + 1 == len(lengths)
            states = [single(rng.uniform(-1, 1, (1, *shape))) for shape in state_shapes(config)]
            pictures = rng.integers(0, 256, (steps + 1, *config["view"]))
            choices = rng.integers(0, config["actions"], steps)
            rewards = rng.uniform(-2, 2, steps)
            behaviour = single(rng.uniform(-1, 1, (steps, config["actions"])))
            seen = (states, pictures, rewards, choices, before)
            logits, values = (np.asarray(part) for part in unroll(config, p, *seen))
            log = lambda x: np.asarray(jax.nn.log_softmax(x))[np.arange(steps), choices]  # noqa: E731
            log_ratios = log(logits[:-1]) - log(behaviour)
            clipped = np.clip(rewards, -learner["reward_clip"], learner["reward_clip"])
            aims, advantages = targets(learner, np.exp(log_ratios), clipped, values, terminated)
            pipe.numbers(steps, terminated, *states, pictures, choices, rewards, behaviour)
            pipe.numbers(log_ratios, values, aims, advantages)
            pieces.append((seen, aims, advantages))
            total += steps
            before = (rewards[-1], choices[-1])

    def loss(p):
        sum = 0.0
        for seen, aims, advantages in pieces:
            logits, values = unroll(config, p, *seen)
            logs, choices = jax.nn.log_softmax(logits[:-1]), seen[3]
            taken = logs[np.arange(len(choices)), choices]
            entropy = -(jnp.exp(logs) * logs).sum(-1)
            sum += (-taken * advantages).sum()
            sum += learner["value_weight"] * 0.5 * ((aims - values[:-1]) ** 2).sum()
            sum -= learner["entropy_weight"] * entropy.sum()
        return sum / total if learner["reduce"] == "mean" else sum

    value, gradient = jax.jit(jax.value_and_grad(loss))(p)
    pipe.numbers(value)
    pipe.tensors(gradient)


def main():
    pipe, rng = Pipe(), np.random.default_rng(2)
    for name, (config, learner) in CASES.items():
        write_case(pipe, rng, name, config, learner)
    pipe.text("end")
    pipe.file.flush()


if __name__ == "__main__":
    main()
