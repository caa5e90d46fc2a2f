"""AttentionNeuron's forward for CarRacing in NumPy and in PyTorch, as usually written. The yardstick for ours.

    python attention_neuron_pictures.py STACKS WEIGHTS [--seconds 2]

STACKS is an npz with stacks of grey pictures as `stack`, [n, 4, 96, 96]; WEIGHTS an npz with flat 32-bit floats in the
published order as `params`.

Prints one JSON object: CPU microseconds per decision on one thread, the fastest of many passes through the stacks:
`numpy_us` and `torch_us`, null where PyTorch is missing, and `torch_why` says so. `chosen_sum` is the sum of all chosen codes
over the first pass; both must choose the same codes for every stack, or the program fails.
"""

import argparse
import json
import os
import sys
import time

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

import numpy as np  # noqa: E402  (after the thread counts)

CODES, TABLE, MESSAGE, K, HIDDEN, ACTIONS = 1024, 8, 16, 10, 16, 3
SHAPES = [
    ("query_w", (16, TABLE)), ("query_b", (16,)), ("key_w", (16, 111)), ("key_b", (16,)),
    ("value_w", (MESSAGE, 144)), ("value_b", (MESSAGE,)),
    ("query2_w", (4, MESSAGE)), ("query2_b", (4,)), ("key2_w", (4, MESSAGE)), ("key2_b", (4,)),
    ("w_ih", (64, 2 * K)), ("w_hh", (64, HIDDEN)), ("b_ih", (64,)), ("b_hh", (64,)),
    ("out_w", (ACTIONS, HIDDEN)), ("out_b", (ACTIONS,)),
    ("mix0_w", (16, HIDDEN + ACTIONS)), ("mix0_b", (16,)), ("mix1_w", (1, 16)), ("mix1_b", (1,)),
]  # fmt: skip


def split(params):
    out, at = {}, 0
    for name, shape in SHAPES:
        size = int(np.prod(shape))
        out[name] = np.ascontiguousarray(params[at : at + size].reshape(shape))
        at += size
    assert at == params.size, f"{params.size} parameters, {at} are due"
    return out


def table():
    m, j = np.arange(CODES)[:, None], np.arange(TABLE)[None]
    angle = m / 10000 ** (2 * (j // 2) / TABLE)
    return np.where(j % 2 == 0, np.sin(angle), np.cos(angle)).astype(np.float32)


def softmax(scores):
    scores -= scores.max(1, keepdims=True)
    np.exp(scores, out=scores)
    scores /= scores.sum(1, keepdims=True)
    return scores


def norm(x):
    x = x - x.mean(-1, keepdims=True)
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + np.float32(1e-5))


class NumpyAgent:
    def __init__(self, params):
        self.__dict__.update(split(params))
        # What does not change from decision to decision is computed once.
        self.queries = (table() @ self.query_w.T + self.query_b) / np.float32(4)
        self.reset()

    def reset(self):
        self.h, self.c = np.zeros(HIDDEN, np.float32), np.zeros(HIDDEN, np.float32)
        self.action = np.zeros(ACTIONS, np.float32)
        self.alpha, self.message = np.float32(0), np.zeros((CODES, MESSAGE), np.float32)

    def act(self, stack):
        x = stack.astype(np.float32) * np.float32(1 / 255)
        patches = x.reshape(4, 16, 6, 16, 6).transpose(1, 3, 0, 2, 4).reshape(256, 4, 36)
        moves = (patches[:, 1:] - patches[:, :-1]).transpose(0, 2, 1).reshape(256, 108)
        keys = np.concatenate([moves, np.broadcast_to(self.action, (256, ACTIONS))], 1) @ self.key_w.T + self.key_b
        values = norm(patches).reshape(256, 144) @ self.value_w.T + self.value_b
        message = norm(np.maximum(softmax(self.queries @ keys.T) @ values, 0))
        self.message = (1 - self.alpha) * message + self.alpha * self.message
        scores = (self.message @ self.query2_w.T + self.query2_b) @ (self.message @ self.key2_w.T + self.key2_b).T
        importance = softmax(scores).sum(0)
        self.top = np.argsort(-importance, kind="stable")[:K]
        seen = (np.stack([self.top // 32, self.top % 32], 1) / 32).astype(np.float32).ravel()
        z = self.w_ih @ seen + self.b_ih + self.w_hh @ self.h + self.b_hh
        i, f, g, o = np.split(z, 4)
        self.c = self.c / (1 + np.exp(-f)) + np.tanh(g) / (1 + np.exp(-i))
        self.h = np.tanh(self.c) / (1 + np.exp(-o))
        self.action = np.tanh(self.out_w @ self.h + self.out_b)
        mixed = self.mix1_w @ np.tanh(self.mix0_w @ np.concatenate([self.h, self.action]) + self.mix0_b) + self.mix1_b
        self.alpha = 1 / (1 + np.exp(-mixed[0]))
        return self.action


def torch_agent(params):
    import torch

    torch.set_num_threads(1)
    torch.set_grad_enabled(False)
    parts = {name: torch.from_numpy(array) for name, array in split(params).items()}
    linear = torch.nn.functional.linear
    queries = linear(torch.from_numpy(table()), parts["query_w"], parts["query_b"]) / 4

    class TorchAgent:
        def __init__(self):
            self.cell = torch.nn.LSTMCell(2 * K, HIDDEN)
            for target, name in [
                (self.cell.weight_ih, "w_ih"), (self.cell.weight_hh, "w_hh"),
                (self.cell.bias_ih, "b_ih"), (self.cell.bias_hh, "b_hh"),
            ]:  # fmt: skip
                target.copy_(parts[name])
            self.reset()

        def reset(self):
            self.state = torch.zeros(1, HIDDEN), torch.zeros(1, HIDDEN)
            self.action = torch.zeros(1, ACTIONS)
            self.alpha, self.message = torch.zeros(1), torch.zeros(CODES, MESSAGE)

        def act(self, stack):
            x = torch.from_numpy(stack).float() / 255
            patches = x.reshape(4, 16, 6, 16, 6).permute(1, 3, 0, 2, 4).reshape(256, 4, 36)
            moves = (patches[:, 1:] - patches[:, :-1]).transpose(1, 2).reshape(256, 108)
            keys = linear(torch.cat([moves, self.action.expand(256, -1)], 1), parts["key_w"], parts["key_b"])
            normed = torch.nn.functional.layer_norm(patches, (36,)).reshape(256, 144)
            values = linear(normed, parts["value_w"], parts["value_b"])
            message = torch.softmax(queries @ keys.T, 1) @ values
            message = torch.nn.functional.layer_norm(torch.relu(message), (MESSAGE,))
            self.message = (1 - self.alpha) * message + self.alpha * self.message
            query = linear(self.message, parts["query2_w"], parts["query2_b"])
            key = linear(self.message, parts["key2_w"], parts["key2_b"])
            importance = torch.softmax(query @ key.T, 1).sum(0)
            self.top = torch.argsort(importance, descending=True, stable=True)[:K]
            seen = torch.stack([self.top // 32, self.top % 32], 1).float().reshape(1, -1) / 32
            self.state = self.cell(seen, self.state)
            self.action = torch.tanh(linear(self.state[0], parts["out_w"], parts["out_b"]))
            mixer = torch.tanh(linear(torch.cat([self.state[0], self.action], 1), parts["mix0_w"], parts["mix0_b"]))
            self.alpha = torch.sigmoid(linear(mixer, parts["mix1_w"], parts["mix1_b"]))[0]
            return self.action[0].numpy()

    return TorchAgent()


def measure(agent, stacks, seconds):
    """CPU microseconds of a decision, and the codes chosen in the first pass, those of a stack sorted."""
    chosen = []
    for stack in stacks:
        agent.act(stack)
        chosen.append(sorted(int(code) for code in agent.top))
    start, best = time.process_time_ns(), float("inf")
    while time.process_time_ns() - start < seconds * 1e9:
        passing = time.process_time_ns()
        for stack in stacks:
            agent.act(stack)
        best = min(best, time.process_time_ns() - passing)
    return best / len(stacks) / 1e3, chosen


def main():
    arguments = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    arguments.add_argument("stacks", help="an npz with `stack`, [n, 4, 96, 96]")
    arguments.add_argument("weights", help="an npz with `params` in the published order")
    arguments.add_argument("--seconds", type=float, default=2.0, help="CPU time to spend on each")
    given = arguments.parse_args()
    if "MALLOC_MMAP_THRESHOLD_" not in os.environ:
        memory = {"MALLOC_MMAP_THRESHOLD_": "33554432", "MALLOC_TRIM_THRESHOLD_": "1073741824"}
        os.execve(sys.executable, [sys.executable, *sys.argv], os.environ | memory)
    stacks, params = np.load(given.stacks)["stack"], np.load(given.weights)["params"]
    numpy_us, chosen = measure(NumpyAgent(params), stacks, given.seconds)
    result = {"numpy_us": round(numpy_us, 2), "chosen_sum": sum(map(sum, chosen)), "numpy": np.__version__}
    try:
        us, same = measure(torch_agent(params), stacks, given.seconds)
        differ = [i for i, (a, b) in enumerate(zip(chosen, same)) if a != b]
        assert not differ, f"PyTorch chooses other codes than NumPy for the stacks {differ}"
        result["torch_us"] = round(us, 2)
    except ImportError as error:
        result |= {"torch_us": None, "torch_why": str(error)}
    print(json.dumps(result))


if __name__ == "__main__":
    main()
