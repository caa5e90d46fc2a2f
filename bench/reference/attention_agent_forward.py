"""AttentionAgent's forward in NumPy and in PyTorch, as an experienced user would write it: the yardstick for ours.

    python attention_agent_forward.py [FRAMES] [--weights W.npz] [--seconds 2]

FRAMES are raw bytes, [n, 96, 96, 3], or an npz with them as `frames`. Without files, frames and weights are drawn by
the same whole-number recipe as in crates/foveate-agents/tests/common/synthetic.rs.

Prints one JSON object: CPU microseconds per decision on one thread, the fastest of many passes through the frames
(`numpy_us`, `torch_us`; null when PyTorch is missing), and `chosen_sum`, the sum of all chosen patch indices over the
first pass, which `cargo run --release -p foveate-agents --example forward` prints for the same frames and weights;
sums may differ where two patches are equally important but for rounding.
"""

import argparse
import json
import os
import time

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

import numpy as np  # noqa: E402  (after the thread counts)

SIDE, PATCH, STRIDE, D, K, HIDDEN, ACTIONS = 96, 7, 4, 4, 10, 16, 3
GRID = (SIDE - PATCH) // STRIDE + 1
D_IN = PATCH * PATCH * 3


def shapes(hidden):
    return [
        ("query_b", (D,)), ("query_w", (D, D_IN)), ("key_b", (D,)), ("key_w", (D, D_IN)),
        ("b_hh", (4 * hidden,)), ("b_ih", (4 * hidden,)), ("w_hh", (4 * hidden, hidden)), ("w_ih", (4 * hidden, 2 * K)),
        ("out_b", (ACTIONS,)), ("out_w", (ACTIONS, hidden)),
    ]  # fmt: skip


SHAPES = shapes(HIDDEN)


def hidden_units(count):
    """How many the LSTM of an agent with so many parameters has; everything else is as published."""
    hidden = 1
    while (size := sum(int(np.prod(shape)) for _, shape in shapes(hidden))) < count:
        hidden += 1
    assert size == count, f"{count} parameters are of no agent with {hidden} hidden units"
    return hidden


def synthetic_frames(count):
    frames = np.zeros((count, SIDE, SIDE, 3), np.uint8)
    y, x = np.mgrid[0:SIDE, 0:SIDE]
    for t in range(count):
        bend = (y + 3 * t) % 128
        off = np.abs(x - (30 + np.where(bend < 64, bend // 2, (128 - bend) // 2)))
        frame = np.where((((x // 16 + (y + 3 * t) // 16) % 2) == 0)[..., None], (102, 230, 102), (102, 204, 102))
        kerb = np.where((((y + 3 * t) // 4 % 2) == 0)[..., None], (255, 255, 255), (255, 0, 0))
        frame = np.where(((off < 14) & ((y + 3 * t) % 64 < 24))[..., None], kerb, frame)
        frame = np.where((off < 12)[..., None], (102, 102, 102), frame)
        frame = np.where(((x >= 44) & (x <= 51) & (y >= 62) & (y <= 76))[..., None], (204, 0, 0), frame)
        frames[t] = np.where((y >= 84)[..., None], (0, 0, 0), frame)
    return frames


def synthetic_params(count):
    state, out = 1, []
    for _ in range(count):
        state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
        out.append(np.float32((state >> 32) % 1601) / np.float32(1000.0) - np.float32(0.8))
    return np.array(out, np.float32)


def split(params):
    out, at = {}, 0
    for name, shape in shapes(hidden_units(params.size)):
        size = int(np.prod(shape))
        out[name] = np.ascontiguousarray(params[at : at + size].reshape(shape))
        at += size
    assert at == params.size, f"{params.size} parameters, {at} are due"
    return out


class NumpyAgent:
    def __init__(self, params):
        self.__dict__.update(split(params))
        # Query and key in one product, the scale folded into the query.
        scale = np.float32(1 / np.sqrt(D_IN))
        self.qk_w = np.ascontiguousarray(np.concatenate([self.query_w * scale, self.key_w]).T)
        self.qk_b = np.concatenate([self.query_b * scale, self.key_b])
        index = np.arange(GRID) * STRIDE + PATCH // 2
        rows, columns = np.meshgrid(index, index, indexing="ij")
        self.centres = (np.stack([rows.ravel(), columns.ravel()], 1) / SIDE).astype(np.float32)
        self.w = np.ascontiguousarray(np.concatenate([self.w_ih, self.w_hh], 1))
        self.b = self.b_ih + self.b_hh
        self.reset()

    def reset(self):
        hidden = self.out_w.shape[1]
        self.h, self.c = np.zeros(hidden, np.float32), np.zeros(hidden, np.float32)

    def act(self, frame):
        pixels = frame.astype(np.float32) * np.float32(1 / 255)
        windows = np.lib.stride_tricks.as_strided(
            pixels,
            (GRID, GRID, PATCH, PATCH * 3),
            (pixels.strides[0] * STRIDE, pixels.strides[1] * STRIDE, pixels.strides[0], pixels.strides[2]),
        )
        qk = windows.reshape(-1, D_IN) @ self.qk_w + self.qk_b
        scores = qk[:, :D] @ qk[:, D:].T
        scores -= scores.max(1, keepdims=True)
        np.exp(scores, out=scores)
        importance = (1 / scores.sum(1)) @ scores
        self.top = np.argsort(-importance, kind="stable")[:K]
        z = self.w @ np.concatenate([self.centres[self.top].ravel(), self.h]) + self.b
        i, f, g, o = np.split(z, 4)
        self.c = self.c / (1 + np.exp(-f)) + np.tanh(g) / (1 + np.exp(-i))
        self.h = np.tanh(self.c) / (1 + np.exp(-o))
        return np.tanh(self.out_w @ self.h + self.out_b)


def torch_agent(params):
    import torch

    torch.set_num_threads(1)
    torch.set_grad_enabled(False)

    class TorchAgent:
        def __init__(self):
            self.query = torch.nn.Linear(D_IN, D)
            self.key = torch.nn.Linear(D_IN, D)
            self.hidden = hidden_units(params.size)
            self.cell = torch.nn.LSTMCell(2 * K, self.hidden)
            self.out = torch.nn.Linear(self.hidden, ACTIONS)
            index = torch.arange(GRID) * STRIDE + PATCH // 2
            self.centres = torch.cartesian_prod(index, index).float() / SIDE
            self.load(params)
            self.reset()

        def load(self, params):
            parts = split(params)
            for target, name in [
                (self.query.weight, "query_w"), (self.query.bias, "query_b"),
                (self.key.weight, "key_w"), (self.key.bias, "key_b"),
                (self.cell.weight_ih, "w_ih"), (self.cell.weight_hh, "w_hh"),
                (self.cell.bias_ih, "b_ih"), (self.cell.bias_hh, "b_hh"),
                (self.out.weight, "out_w"), (self.out.bias, "out_b"),
            ]:  # fmt: skip
                target.copy_(torch.from_numpy(parts[name]))

        def reset(self):
            self.state = torch.zeros(1, self.hidden), torch.zeros(1, self.hidden)

        def act(self, frame):
            pixels = torch.from_numpy(frame).float() / 255
            windows = pixels.unfold(0, PATCH, STRIDE).unfold(1, PATCH, STRIDE)  # rows, columns, channel, dy, dx
            patches = windows.permute(0, 1, 3, 4, 2).reshape(-1, D_IN)
            scores = self.query(patches) @ self.key(patches).T / D_IN**0.5
            importance = torch.softmax(scores, 1).sum(0)
            self.top = torch.argsort(importance, descending=True, stable=True)[:K]
            self.state = self.cell(self.centres[self.top].reshape(1, -1), self.state)
            return torch.tanh(self.out(self.state[0]))[0].numpy()

    return TorchAgent()


def measure(agent, frames, seconds):
    chosen = 0
    for frame in frames:
        agent.act(frame)
        chosen += int(agent.top.sum())
    start, best = time.process_time_ns(), float("inf")
    while time.process_time_ns() - start < seconds * 1e9:
        passing = time.process_time_ns()
        for frame in frames:
            agent.act(frame)
        best = min(best, time.process_time_ns() - passing)
    return best / len(frames) / 1e3, chosen


def read_frames(path):
    if path.endswith(".npz"):
        return np.load(path)["frames"]
    return np.fromfile(path, np.uint8).reshape(-1, SIDE, SIDE, 3)


def main():
    arguments = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    arguments.add_argument("frames", nargs="?", help="raw bytes [n, 96, 96, 3], or an npz with `frames`")
    arguments.add_argument("--weights", help="npz with the flat vector `params`, in the published order")
    arguments.add_argument("--seconds", type=float, default=2.0, help="CPU time to spend on each")
    given = arguments.parse_args()
    size = sum(int(np.prod(shape)) for _, shape in SHAPES)
    params = np.load(given.weights)["params"] if given.weights else synthetic_params(size)
    frames = read_frames(given.frames) if given.frames else synthetic_frames(40)

    agent = NumpyAgent(params)
    numpy_us, chosen = measure(agent, frames, given.seconds)
    result = {"numpy_us": round(numpy_us, 2), "torch_us": None, "chosen_sum": chosen, "numpy": np.__version__}
    try:
        torch = torch_agent(params)
    except ImportError:
        pass
    else:
        import torch as library

        torch_us, torch_chosen = measure(torch, frames, given.seconds)
        result |= {"torch_us": round(torch_us, 2), "torch_chosen_sum": torch_chosen, "torch": library.__version__}
    print(json.dumps(result))


if __name__ == "__main__":
    main()
