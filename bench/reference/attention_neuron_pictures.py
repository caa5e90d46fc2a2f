"""AttentionNeuron's forward on pictures in NumPy and in PyTorch, as usually written. The yardstick for ours.

    python attention_neuron_pictures.py [STACKS WEIGHTS] [--seconds 2]

CarRacing, where STACKS and WEIGHTS are given: STACKS is an npz with stacks of grey pictures as `stack`, [n, 4, 96, 96];
WEIGHTS an npz with flat 32-bit floats in the published order as `params`. And the architecture for Pong, whose weights are
sines of their places and whose pictures are paddles and a ball, as in
crates/foveate-agents/examples/picture_forward.rs.

Prints one JSON object: CPU microseconds per decision on one thread, the fastest of many passes through the stacks:
`carracing_numpy_us`, `carracing_torch_us`, `pong_numpy_us` and `pong_torch_us`, null where PyTorch is missing, and
`torch_why` says so. `carracing_sums` has for each stack, as the first of an episode, the sum of the chosen codes, null where
rounding decides which are chosen; `pong_sums` that of all scores. Both programs must agree on them, or this one fails.
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


def split(params, shapes=SHAPES):
    out, at = {}, 0
    for name, shape in shapes:
        size = int(np.prod(shape))
        out[name] = np.ascontiguousarray(params[at : at + size].reshape(shape))
        at += size
    assert at == params.size, f"{params.size} parameters, {at} are due"
    return out


def table(codes=CODES):
    m, j = np.arange(codes)[:, None], np.arange(TABLE)[None]
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
        self.importance = softmax(scores).sum(0)
        self.top = np.argsort(-self.importance, kind="stable")[:K]
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
            self.importance = torch.softmax(query @ key.T, 1).sum(0)
            self.top = torch.argsort(self.importance, descending=True, stable=True)[:K]
            seen = torch.stack([self.top // 32, self.top % 32], 1).float().reshape(1, -1) / 32
            self.state = self.cell(seen, self.state)
            self.action = torch.tanh(linear(self.state[0], parts["out_w"], parts["out_b"]))
            mixer = torch.tanh(linear(torch.cat([self.state[0], self.action], 1), parts["mix0_w"], parts["mix0_b"]))
            self.alpha = torch.sigmoid(linear(mixer, parts["mix1_w"], parts["mix1_b"]))[0]
            return self.action[0].numpy()

    return TorchAgent()


# Pong: codes, numbers of a message, actions, and the shapes of its parameters in the published order.
PONG_CODES, PONG_MESSAGE, PONG_ACTIONS = 400, 32, 6
PONG_SHAPES = [
    ("query_w", (32, TABLE)), ("query_b", (32,)), ("key_w", (32, 114)), ("key_b", (32,)),
    ("value_w", (32, 144)), ("value_b", (32,)), ("in_w", (36,)), ("in_b", (36,)), ("norm_w", (32,)), ("norm_b", (32,)),
    ("conv0_w", (64, 32, 4, 4)), ("conv0_b", (64,)), ("conv1_w", (64, 64, 3, 3)), ("conv1_b", (64,)),
    ("hidden_w", (512, 3136)), ("hidden_b", (512,)), ("out_w", (6, 512)), ("out_b", (6,)),
]  # fmt: skip


def pong_params():
    count = sum(int(np.prod(shape)) for _, shape in PONG_SHAPES)
    return (0.06 * np.sin(0.37 * np.arange(count))).astype(np.float32)


def pong_stacks(steps=24):
    def picture(t):
        grey = np.full((84, 84), 87, np.uint8)
        grey[:10] = 0
        for row, column, height, width, value in [
            (14 + t % 50, 8, 8, 2, 147),
            (60 - t % 40, 74, 8, 2, 148),
            (20 + 2 * t % 60, 12 + 3 * t % 60, 3, 2, 236),
        ]:
            grey[row : row + height, column : column + width] = value
        return grey

    pictures = np.stack([picture(t) for t in range(steps + 3)])
    return np.stack([pictures[t : t + 4] for t in range(steps)])


def convolve(x, weight, bias, stride):
    """[channels, height, width] to [filters, rows, columns], without padding: windows as rows, one product."""
    size = weight.shape[-1]
    windows = np.lib.stride_tricks.sliding_window_view(x, (size, size), (1, 2))[:, ::stride, ::stride]
    rows, columns = windows.shape[1:3]
    flat = windows.transpose(1, 2, 0, 3, 4).reshape(rows * columns, -1)
    return (flat @ weight.reshape(len(weight), -1).T + bias).T.reshape(len(weight), rows, columns)


class NumpyPong:
    def __init__(self, params):
        self.__dict__.update(split(params, PONG_SHAPES))
        self.queries = (table(PONG_CODES) @ self.query_w.T + self.query_b) / np.float32(32**0.5)
        self.reset()

    def reset(self):
        self.action = np.eye(PONG_ACTIONS, dtype=np.float32)[3]

    def act(self, stack):
        x = stack.astype(np.float32) * np.float32(1 / 255)
        patches = x.reshape(4, 14, 6, 14, 6).transpose(1, 3, 0, 2, 4).reshape(196, 4, 36)
        moves = (patches[:, 1:] - patches[:, :-1]).reshape(196, 108)
        keys = np.concatenate([moves, np.broadcast_to(self.action, (196, PONG_ACTIONS))], 1) @ self.key_w.T + self.key_b
        values = (norm(patches) * self.in_w + self.in_b).reshape(196, 144) @ self.value_w.T + self.value_b
        message = norm(np.maximum(softmax(self.queries @ keys.T) @ values, 0)) * self.norm_w + self.norm_b
        x = np.maximum(message.T.reshape(PONG_MESSAGE, 20, 20), 0)
        x = np.maximum(convolve(x, self.conv0_w, self.conv0_b, 2), 0)
        x = np.maximum(convolve(x, self.conv1_w, self.conv1_b, 1), 0)
        x = np.maximum(self.hidden_w @ x.ravel() + self.hidden_b, 0)
        self.scores = self.out_w @ x + self.out_b
        self.top = [np.argmax(self.scores)]
        self.action = np.eye(PONG_ACTIONS, dtype=np.float32)[self.top[0]]
        return self.scores


def torch_pong(params):
    import torch

    parts = {name: torch.from_numpy(array) for name, array in split(params, PONG_SHAPES).items()}
    linear, convolution = torch.nn.functional.linear, torch.nn.functional.conv2d
    layer_norm, relu = torch.nn.functional.layer_norm, torch.relu
    queries = linear(torch.from_numpy(table(PONG_CODES)), parts["query_w"], parts["query_b"]) / 32**0.5

    class TorchPong:
        def __init__(self):
            self.reset()

        def reset(self):
            self.action = torch.eye(PONG_ACTIONS)[3]

        def act(self, stack):
            x = torch.from_numpy(stack).float() / 255
            patches = x.reshape(4, 14, 6, 14, 6).permute(1, 3, 0, 2, 4).reshape(196, 4, 36)
            moves = (patches[:, 1:] - patches[:, :-1]).reshape(196, 108)
            keys = linear(torch.cat([moves, self.action.expand(196, -1)], 1), parts["key_w"], parts["key_b"])
            normed = layer_norm(patches, (36,), parts["in_w"], parts["in_b"]).reshape(196, 144)
            message = torch.softmax(queries @ keys.T, 1) @ linear(normed, parts["value_w"], parts["value_b"])
            message = layer_norm(relu(message), (PONG_MESSAGE,), parts["norm_w"], parts["norm_b"])
            x = relu(message.T.reshape(1, PONG_MESSAGE, 20, 20))
            x = relu(convolution(x, parts["conv0_w"], parts["conv0_b"], 2))
            x = relu(convolution(x, parts["conv1_w"], parts["conv1_b"]))
            x = relu(linear(x.flatten(), parts["hidden_w"], parts["hidden_b"]))
            self.scores = linear(x, parts["out_w"], parts["out_b"]).numpy()
            self.top = [int(self.scores.argmax())]
            self.action = torch.eye(PONG_ACTIONS)[self.top[0]]
            return self.scores

    return TorchPong()


def outcomes(agent, stacks):
    """For each stack, as the first of an episode: the sum of the chosen codes, or of all scores; and whether codes that were
    not chosen are as important as the last one that was, up to rounding."""
    sums, ties = [], []
    for stack in stacks:
        agent.reset()
        scores = agent.act(stack)
        importance = getattr(agent, "importance", None)
        sums.append(float(scores.sum() if importance is None else sum(agent.top)))
        ties.append(False)
        if importance is not None:
            last, next_one = np.sort(np.asarray(importance))[::-1][K - 1 : K + 1]
            ties[-1] = bool(last - next_one <= 1e-4 * last)
    return sums, ties


def measure(agent, stacks, seconds):
    """CPU microseconds of a decision."""
    start, best = time.process_time_ns(), float("inf")
    while time.process_time_ns() - start < seconds * 1e9:
        passing = time.process_time_ns()
        for stack in stacks:
            agent.act(stack)
        best = min(best, time.process_time_ns() - passing)
    return best / len(stacks) / 1e3


def main():
    arguments = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    arguments.add_argument("stacks", nargs="?", help="an npz with `stack`, [n, 4, 96, 96]")
    arguments.add_argument("weights", nargs="?", help="an npz with `params` in the published order")
    arguments.add_argument("--seconds", type=float, default=2.0, help="CPU time to spend on each")
    given = arguments.parse_args()
    if "MALLOC_MMAP_THRESHOLD_" not in os.environ:
        memory = {"MALLOC_MMAP_THRESHOLD_": "33554432", "MALLOC_TRIM_THRESHOLD_": "1073741824"}
        os.execve(sys.executable, [sys.executable, *sys.argv], os.environ | memory)
    work = {"pong": (NumpyPong, torch_pong, pong_stacks(), pong_params())}
    if given.weights:
        work["carracing"] = NumpyAgent, torch_agent, np.load(given.stacks)["stack"], np.load(given.weights)["params"]
    result = {"numpy": np.__version__}
    for name, (in_numpy, in_torch, stacks, params) in work.items():
        agent = in_numpy(params)
        sums, ties = outcomes(agent, stacks)
        result[f"{name}_sums"] = [None if tie else total for total, tie in zip(sums, ties)]
        result |= {f"{name}_numpy_us": round(measure(agent, stacks, given.seconds), 2), f"{name}_torch_us": None}
        try:
            other = in_torch(params)
            for i, (total, tie, same) in enumerate(zip(sums, ties, outcomes(other, stacks)[0])):
                assert tie or abs(total - same) < 0.01, f"{name}: PyTorch answers stack {i} otherwise than NumPy"
            result[f"{name}_torch_us"] = round(measure(other, stacks, given.seconds), 2)
        except ImportError as error:
            result["torch_why"] = str(error)
    print(json.dumps(result))


if __name__ == "__main__":
    main()
