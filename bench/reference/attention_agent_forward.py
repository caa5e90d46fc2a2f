"""AttentionAgent's forward in NumPy and in PyTorch: as usually written, and as fast as either gets. The yardstick for ours.

    python attention_agent_forward.py FRAMES WEIGHTS [--seconds 2]

FRAMES are raw bytes, [n, 96, 96, 3], or an npz with them as `frames`; WEIGHTS are flat 32-bit floats in the published
order, or an npz with them as `params`. `foveate bench forward --write FOLDER` leaves both: FOLDER/frames.u8, params.f32.

It runs itself again with MALLOC_MMAP_THRESHOLD_ and MALLOC_TRIM_THRESHOLD_ set, if they are not: they keep glibc from
giving the score matrix (1.1 MB) back to the system after each decision. Without them PyTorch takes another time in each
process, up to twice as long.

Prints one JSON object: CPU microseconds per decision on one thread, the fastest of many passes through the frames:
`numpy_us`, `numpy_tuned_us`, `torch_us` and `torch_compiled_us`; null where PyTorch or a C++ compiler is missing, and
`torch_why`, `torch_compiled_why` say so. `chosen_sum` is the sum of all chosen patch indices over the first pass; all
four must choose the same patches in every frame, or the program fails.
"""

import argparse
import functools
import json
import os
import struct
import sys
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


@functools.cache
def shared(blocks, block, width, rows):
    """Buffers that keep nothing from one decision to the next: the picture with a margin, its pieces, scores."""
    return (
        np.zeros((SIDE, 3 * ((blocks * block - 1) * STRIDE + PATCH)), np.float32),
        np.empty((GRID, blocks, PATCH, width), np.float32),
        np.empty((rows, GRID * GRID), np.float32),
    )


class TunedNumpyAgent(NumpyAgent):
    """The same decisions with all that makes NumPy fast: single precision, buffers made once, calls that write in place,
    1/255 and the scales inside the weights, windows copied in long runs, no sort of what is not chosen.

    The projection takes BLOCK windows of a row at once, with a matrix that is zero where a window does not look: there are
    fewer and longer pieces to copy, which costs more than the multiplications.
    """

    BLOCK = 2
    # Rows of the scores at a time, so that they stay in the cache.
    ROWS = 265

    def __init__(self, params):
        super().__init__(params)
        count, block = GRID * GRID, self.BLOCK
        blocks = -(-GRID // block)
        width = 3 * ((block - 1) * STRIDE + PATCH)
        # Of all agents in turn, so that they stay in the cache.
        self.padded, self.copies, self.scores = shared(blocks, block, width, self.ROWS)
        rows, columns = self.padded.strides
        self.pieces = np.lib.stride_tricks.as_strided(
            self.padded,
            (GRID, blocks, PATCH, width),
            (rows * STRIDE, columns * 3 * STRIDE * block, rows, columns),
        )
        weights = (self.qk_w / np.float32(255)).reshape(PATCH, PATCH * 3, 2 * D)
        banded = np.zeros((PATCH, width, block, 2 * D), np.float32)
        for i in range(block):
            banded[:, 3 * STRIDE * i : 3 * STRIDE * i + 3 * PATCH, i] = weights
        self.banded = banded.reshape(PATCH * width, block * 2 * D)
        self.flat = self.copies.reshape(GRID * blocks, -1)
        self.projected = np.empty((GRID * blocks, block * 2 * D), np.float32)
        self.grid = self.projected.reshape(GRID, blocks * block, 2 * D)[:, :GRID]
        self.qk = np.empty((GRID, GRID, 2 * D), np.float32)
        self.q, self.k = self.qk.reshape(count, 2 * D)[:, :D], self.qk.reshape(count, 2 * D)[:, D:]
        self.keys = np.empty((D, count), np.float32)
        self.parts = [
            (self.q[start : start + self.ROWS], self.scores[: min(self.ROWS, count - start)])
            for start in range(0, count, self.ROWS)
        ]
        self.ones = np.ones(count, np.float32)
        self.sums, self.importance = np.empty(self.ROWS, np.float32), np.empty(count, np.float32)
        # The gates in the order i, f, o, g; a sigmoid is half a hyperbolic tangent of half the input, and half.
        hidden = self.out_w.shape[1]
        order = np.concatenate([np.arange(2 * hidden), np.arange(3 * hidden, 4 * hidden), np.arange(2 * hidden, 3 * hidden)])
        half = np.repeat(np.float32([0.5, 1]), [3 * hidden, hidden])
        self.gates_w = np.ascontiguousarray(self.w[order] * half[:, None])
        self.gates_b = self.b[order] * half
        self.gates = np.empty(4 * hidden, np.float32)
        self.inputs = np.zeros(2 * K + hidden, np.float32)
        self.seen, self.h = self.inputs[: 2 * K].reshape(K, 2), self.inputs[2 * K :]
        self.hidden = hidden

    def reset(self):
        super().reset()
        if hasattr(self, "inputs"):
            self.inputs[:] = 0
            self.h = self.inputs[2 * K :]

    def act(self, frame):
        np.copyto(self.padded[:, : 3 * SIDE], frame.reshape(SIDE, 3 * SIDE))
        np.copyto(self.copies, self.pieces)
        np.matmul(self.flat, self.banded, out=self.projected)
        np.add(self.grid, self.qk_b, out=self.qk)
        np.copyto(self.keys, self.k.T)
        # No exponential overflows below 88, so that no maximum is needed where no score can be that large.
        q, k, importance = self.q, self.keys, self.importance
        small = np.einsum("ij,ij->i", q, q).max() * np.einsum("ij,ij->j", k, k).max() < 80**2
        importance.fill(0)
        for some, scores in self.parts:
            np.matmul(some, k, out=scores)
            if not small:
                scores -= scores.max(1, keepdims=True)
            np.exp(scores, out=scores)
            sums = np.matmul(scores, self.ones, out=self.sums[: len(scores)])
            np.reciprocal(sums, out=sums)
            importance += sums @ scores
        # The K best, of equal ones the first.
        np.negative(importance, out=importance)
        least = importance[importance.argpartition(K - 1)[K - 1]]
        best = np.flatnonzero(importance <= least)
        self.top = best[importance[best].argsort(kind="stable")[:K]]
        np.take(self.centres, self.top, axis=0, out=self.seen)
        gates, hidden = self.gates, self.hidden
        np.matmul(self.gates_w, self.inputs, out=gates)
        gates += self.gates_b
        np.tanh(gates, out=gates)
        opened = gates[: 3 * hidden]
        opened *= np.float32(0.5)
        opened += np.float32(0.5)
        self.c *= gates[hidden : 2 * hidden]
        self.c += gates[:hidden] * gates[3 * hidden :]
        np.tanh(self.c, out=self.h)
        self.h *= gates[2 * hidden : 3 * hidden]
        out = self.out_w @ self.h
        out += self.out_b
        return np.tanh(out, out=out)


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


def compiled_torch_agent(params):
    """The decision as one function for `torch.compile`, with what NumPy's tuned one has inside the weights, too."""
    import torch

    torch.set_num_threads(1)
    torch.set_grad_enabled(False)
    plain = NumpyAgent(params)
    tensor = lambda array: torch.from_numpy(np.ascontiguousarray(array, np.float32))
    qk_w, qk_b, w, b = (tensor(array) for array in (plain.qk_w / np.float32(255), plain.qk_b, plain.w.T, plain.b))
    out_w, out_b, centres = tensor(plain.out_w.T), tensor(plain.out_b), tensor(plain.centres)

    def decide(frame, h, c):
        windows = frame.float().unfold(0, PATCH, STRIDE).unfold(1, PATCH, STRIDE)
        qk = torch.addmm(qk_b, windows.permute(0, 1, 3, 4, 2).reshape(-1, D_IN), qk_w)
        # No exponential overflows below 88, so no maximum of a row is looked for.
        scores = torch.exp(torch.clamp_max(qk[:, :D] @ qk[:, D:].T, 80))
        importance = (1 / scores.sum(1)) @ scores
        top = torch.topk(importance, K).indices
        z = torch.addmm(b, torch.cat([centres[top].reshape(1, -1), h], 1), w)
        i, f, g, o = z.chunk(4, 1)
        c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
        h = torch.sigmoid(o) * torch.tanh(c)
        return torch.tanh(torch.addmm(out_b, h, out_w)), top, h, c

    class CompiledTorchAgent:
        def __init__(self):
            self.decide = torch.compile(decide, fullgraph=True, dynamic=False, mode="max-autotune")
            self.hidden = plain.h.size
            self.reset()

        def reset(self):
            self.h, self.c = torch.zeros(1, self.hidden), torch.zeros(1, self.hidden)

        def act(self, frame):
            action, self.top, self.h, self.c = self.decide(torch.from_numpy(frame), self.h, self.c)
            return action[0].numpy()

    return CompiledTorchAgent()


def measure(agent, frames, seconds):
    """CPU microseconds of a decision, and the patches chosen in the first pass, `[n, K]`, those of a frame sorted."""
    agent.act(frames[0])  # compiles, if there is something to compile
    agent.reset()
    chosen = []
    for frame in frames:
        agent.act(frame)
        chosen.append(sorted(int(patch) for patch in agent.top))
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


def read_weights(path):
    return np.load(path)["params"] if path.endswith(".npz") else np.fromfile(path, "<f4")


def read_safetensors(path):
    """The weights in the order of the forward's shapes, which is that of the file."""
    with open(path, "rb") as file:
        (size,) = struct.unpack("<Q", file.read(8))
        header = json.loads(file.read(size))
        data = file.read()
    header.pop("__metadata__", None)
    spans = sorted(tuple(tensor["data_offsets"]) + (tuple(tensor["shape"]),) for tensor in header.values())
    weights = np.frombuffer(data, "<f4").astype(np.float32)
    due = [shape for _, shape in shapes(hidden_units(weights.size))]
    assert [shape for _, _, shape in spans] == due, "the published configuration, but for the hidden units"
    return weights


def to_action(outputs):
    """Steering stays within -1 and 1; gas and brake go from 0 to 1."""
    return (outputs * np.float32([1, 0.5, 0.5]) + np.float32([0, 0.5, 0.5])).astype(np.float32)


def main():
    arguments = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    arguments.add_argument("frames", help="raw bytes [n, 96, 96, 3], or an npz with `frames`")
    arguments.add_argument("weights", help="raw 32-bit floats in the published order, or an npz with `params`")
    arguments.add_argument("--seconds", type=float, default=2.0, help="CPU time to spend on each")
    given = arguments.parse_args()
    if "MALLOC_MMAP_THRESHOLD_" not in os.environ:
        memory = {"MALLOC_MMAP_THRESHOLD_": "33554432", "MALLOC_TRIM_THRESHOLD_": "1073741824"}
        os.execve(sys.executable, [sys.executable, *sys.argv], os.environ | memory)
    frames, params = read_frames(given.frames), read_weights(given.weights)

    numpy_us, chosen = measure(NumpyAgent(params), frames, given.seconds)
    result = {"numpy_us": round(numpy_us, 2), "chosen_sum": sum(map(sum, chosen)), "numpy": np.__version__}
    for name, make in [("numpy_tuned", TunedNumpyAgent), ("torch", torch_agent), ("torch_compiled", compiled_torch_agent)]:
        result[f"{name}_us"] = None
        try:
            us, same = measure(make(params), frames, given.seconds)
        except ImportError as error:
            result[f"{name}_why"] = str(error)
            continue
        except Exception as error:
            # Only a compiler may be missing.
            if type(error).__name__ not in ("InductorError", "InvalidCxxCompiler", "BackendCompilerFailed"):
                raise
            result[f"{name}_why"] = str(error).strip().splitlines()[0]
            continue
        differ = [i for i, (a, b) in enumerate(zip(chosen, same)) if a != b]
        assert not differ, f"{name} chooses other patches than numpy in the frames {differ}"
        result[f"{name}_us"] = round(us, 2)
    print(json.dumps(result))


if __name__ == "__main__":
    main()
