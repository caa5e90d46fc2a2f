"""AttentionNeuron's forward on numbers in NumPy and in PyTorch. The yardstick for ours.

    python attention_neuron_numbers.py [--seconds 2]

Weights and numbers are sines of their places, as in crates/foveate-agents/examples/numbers_forward.rs. Prints one JSON object:
for `cartpole` (5 numbers) and `ant` (28 numbers) the CPU microseconds per decision on one thread, the fastest of many
passes, `cartpole_numpy_us`, `cartpole_torch_us` and so on, null where PyTorch is missing, and the sum of the first
action over a pass, `cartpole_sum`; both programs must agree on it.
"""

import argparse
import json
import os
import time

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

import numpy as np  # noqa: E402  (after the thread counts)

try:
    import torch
except ImportError:
    torch = None

STEPS, HIDDEN, DIM = 200, 8, 32
# name: sensors, actions, codes, bias and scale, hidden layers
AGENTS = {"cartpole": (5, 1, 16, False, 0), "ant": (28, 8, 32, True, 1)}


def queries(rows, columns):
    row, column = np.arange(rows)[:, None], np.arange(columns)[None]
    angle = row / 10000 ** (2 * (column // 2) / columns)
    return np.where(column % 2 == 0, np.sin(angle), np.cos(angle)).astype(np.float32)


def weights(actions, codes, bias, layers):
    shapes = [(4 * HIDDEN, 1 + actions), (4 * HIDDEN, HIDDEN), (4 * HIDDEN,), (4 * HIDDEN,)]
    for _ in range(2):
        shapes += [(DIM, HIDDEN)] + ([(DIM,)] if bias else [])
    shapes += [(codes, codes), (codes,)] * layers + [(actions, codes), (actions,)]
    count = sum(int(np.prod(shape)) for shape in shapes)
    flat = (0.4 * np.sin(0.37 * np.arange(count))).astype(np.float32)
    found, at = [], 0
    for shape in shapes:
        size = int(np.prod(shape))
        found.append(flat[at:at + size].reshape(shape))
        at += size
    return found


def logistic(x):
    return 1 / (1 + np.exp(-x))


class NumpyAgent:
    def __init__(self, sensors, actions, codes, bias, layers):
        self.sensors, self.actions = sensors, actions
        self.w_ih, self.w_hh, b_ih, b_hh, *rest = weights(actions, codes, bias, layers)
        self.b = b_ih + b_hh
        self.w_q, self.b_q = rest.pop(0), rest.pop(0) if bias else np.float32(0)
        self.w_k, self.b_k = rest.pop(0), rest.pop(0) if bias else np.float32(0)
        self.layers = list(zip(rest[::2], rest[1::2]))
        # The queries do not change: their layer is applied once.
        self.q = queries(codes, HIDDEN) @ self.w_q.T + self.b_q
        self.scale = np.float32(DIM ** 0.5 if bias else 1)
        self.reset()

    def reset(self):
        self.h = np.zeros((self.sensors, HIDDEN), np.float32)
        self.c = np.zeros((self.sensors, HIDDEN), np.float32)
        self.action = np.zeros(self.actions, np.float32)

    def act(self, seen):
        x = np.concatenate([seen[:, None], np.broadcast_to(self.action, (self.sensors, self.actions))], 1)
        i, f, g, o = np.split(x @ self.w_ih.T + self.h @ self.w_hh.T + self.b, 4, 1)
        self.c = logistic(f) * self.c + logistic(i) * np.tanh(g)
        self.h = logistic(o) * np.tanh(self.c)
        x = np.tanh(np.tanh(self.q @ (self.h @ self.w_k.T + self.b_k).T / self.scale) @ seen)
        for weight, bias in self.layers:
            x = np.tanh(weight @ x + bias)
        self.action = x
        return x


def torch_agent(sensors, actions, codes, bias, layers):
    w_ih, w_hh, b_ih, b_hh, *rest = (torch.from_numpy(w.copy()) for w in weights(actions, codes, bias, layers))

    class TorchAgent:
        def __init__(self):
            self.cell = torch.nn.LSTMCell(1 + actions, HIDDEN)
            self.q_layer = torch.nn.Linear(HIDDEN, DIM, bias=bias)
            self.k_layer = torch.nn.Linear(HIDDEN, DIM, bias=bias)
            with torch.no_grad():
                for to, given in zip((self.cell.weight_ih, self.cell.weight_hh, self.cell.bias_ih, self.cell.bias_hh),
                                     (w_ih, w_hh, b_ih, b_hh)):
                    to.copy_(given)
                parts = list(rest)
                for layer in (self.q_layer, self.k_layer):
                    layer.weight.copy_(parts.pop(0))
                    if bias:
                        layer.bias.copy_(parts.pop(0))
                self.layers = list(zip(parts[::2], parts[1::2]))
                self.q = self.q_layer(torch.from_numpy(queries(codes, HIDDEN)))
            self.scale = DIM ** 0.5 if bias else 1
            self.reset()

        def reset(self):
            self.state = torch.zeros(sensors, HIDDEN), torch.zeros(sensors, HIDDEN)
            self.action = torch.zeros(actions)

        def act(self, seen):
            with torch.inference_mode():
                seen = torch.from_numpy(seen)
                x = torch.cat([seen[:, None], self.action.expand(sensors, actions)], 1)
                self.state = self.cell(x, self.state)
                scores = self.q @ self.k_layer(self.state[0]).T / self.scale
                x = torch.tanh(torch.tanh(scores) @ seen)
                for weight, offset in self.layers:
                    x = torch.tanh(torch.nn.functional.linear(x, weight, offset))
                self.action = x
                return x.numpy()

    return TorchAgent()


def measure(agent, frames, seconds):
    """CPU microseconds of a decision, and the sum of the first action over a pass."""
    start, best, total = time.process_time_ns(), float("inf"), 0.0
    while best == float("inf") or time.process_time_ns() - start < seconds * 1e9:
        passing, total = time.process_time_ns(), 0.0
        agent.reset()
        for seen in frames:
            total += float(agent.act(seen)[0])
        best = min(best, time.process_time_ns() - passing)
    return best / len(frames) / 1e3, total


def main():
    arguments = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    arguments.add_argument("--seconds", type=float, default=2)
    seconds = arguments.parse_args().seconds
    found = {}
    for name, (sensors, *sizes) in AGENTS.items():
        places = np.arange(STEPS * sensors)
        frames = (2 * np.sin(0.7 * places + 0.3)).astype(np.float32).reshape(STEPS, sensors)
        found[f"{name}_numpy_us"], total = measure(NumpyAgent(sensors, *sizes), frames, seconds)
        found[f"{name}_sum"] = total
        found[f"{name}_torch_us"] = None
        if torch is not None:
            torch.set_num_threads(1)
            found[f"{name}_torch_us"], other = measure(torch_agent(sensors, *sizes), frames, seconds)
            assert abs(total - other) < 1e-2, f"{name}: NumPy acts {total} in sum, PyTorch {other}"
    print(json.dumps(found))


if __name__ == "__main__":
    main()
