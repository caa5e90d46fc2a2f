"""CPU time of S3TA (Mott et al. 2019) in PyTorch, acting and learning.

    python s3ta.py FOLDER [--seconds 6] [--only NAME]

FOLDER holds weights, pictures and gradients as crates/foveate-agents/examples/s3ta.rs writes them; numbers in the files are
32-bit floats, pictures bytes.

Prints one JSON object: frames per CPU second of one thread, the fastest of several calls, of acting in 1 and in 16 episodes
and of a step of learning; and how far the logits (the largest difference) and the gradient (by norm) are from those in
FOLDER. Acting computes the ConvLSTM as one convolution over input and state; learning computes everything that does not depend
on the state for all steps and sequences at once. Both are measured with channels first and with channels last, and the faster
counts.
"""

import argparse
import json
import os
import pathlib
import sys
import time

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

import numpy as np  # noqa: E402  (after the thread counts)
import torch  # noqa: E402
from learning import difference, floats  # noqa: E402
from torch.nn import functional as F  # noqa: E402

torch.set_num_threads(1)

SEQUENCES = 4
CASES = {
    "full": dict(view=(210, 160, 3), actions=18, convs=[(32, 8, 4), (64, 4, 2)], channels=128)
    | dict(query=[256, 128], answer=[512, 256], units=256, trunk=128, steps=21),
    "small": dict(view=(84, 84, 4), actions=6, convs=[(16, 8, 4), (32, 4, 2)], channels=32)
    | dict(query=[64], answer=[128], units=128, trunk=64, steps=51),
}
KEYS, HEADS, FREQUENCIES = 8, 4, 4


def basis(rows, columns):
    """`[rows · columns, 64]`"""

    def functions(size):
        p, u = np.arange(size)[:, None] / size, np.arange(1, FREQUENCIES + 1)
        return np.concatenate([np.cos(np.pi * u * p), np.sin(np.pi * u * p)], 1)

    products = np.einsum("ir,js->ijrs", functions(rows), functions(columns))
    return torch.from_numpy(products.reshape(rows * columns, -1).astype(np.float32))


def dense(name, inputs, outputs):
    return [(f"{name}_w", (outputs, inputs)), (f"{name}_b", (outputs,))]


def chain(name, inputs, hidden):
    shapes = []
    for i, outputs in enumerate(hidden, 1):
        shapes += dense(f"{name}{i}", inputs, outputs)
        inputs = outputs
    return shapes


class S3ta(torch.nn.Module):
    """Parameters by name, from one flat array; convolutions are stored there with their channels last."""

    def __init__(self, case, flat, layout):
        super().__init__()
        self.case, self.layout, self.fused = case, layout, None
        rows, columns, width = case["view"]
        shapes = []
        for i, (filters, size, stride) in enumerate(case["convs"], 1):
            shapes += [(f"conv{i}_w", (filters, size, size, width)), (f"conv{i}_b", (filters,))]
            rows, columns, width = -(-rows // stride), -(-columns // stride), filters
        c, units, asked = case["channels"], case["units"], HEADS * (KEYS + 64)
        shapes += [("from_x_w", (4 * c, 3, 3, width)), ("from_x_b", (4 * c,)), ("from_h_w", (4 * c, 3, 3, c))]
        shapes += chain("query", units, case["query"]) + dense("query", case["query"][-1], asked)
        heard = HEADS * (c - KEYS + 64) + asked + 1 + case["actions"]
        shapes += chain("answer", heard, case["answer"]) + dense("core_x", case["answer"][-1], 4 * units)
        shapes += [("core_h_w", (4 * units, units))] + chain("trunk", units, [case["trunk"]])
        shapes += dense("policy", case["trunk"], case["actions"]) + dense("value", case["trunk"], 1)
        at = 0
        for name, shape in shapes:
            size = int(np.prod(shape))
            array = torch.from_numpy(flat[at : at + size].reshape(shape).copy())
            if len(shape) == 4:
                array = array.permute(0, 3, 1, 2).contiguous(memory_format=layout)
            self.register_parameter(name, torch.nn.Parameter(array))
            at += size
        assert at == flat.size, f"{flat.size} parameters, {at} are due"
        self.cells = rows, columns
        self.register_buffer("basis", basis(rows, columns))

    def gradient(self):
        grads = [p.grad.permute(0, 2, 3, 1) if p.dim() == 4 else p.grad for p in self.parameters()]
        return torch.cat([g.reshape(-1) for g in grads]).numpy()

    def linear(self, name, x):
        return F.linear(x, getattr(self, f"{name}_w"), getattr(self, f"{name}_b"))

    def layers(self, name, x):
        for i in range(1, len(self.case[name]) + 1):
            x = F.relu(self.linear(f"{name}{i}", x))
        return x

    def state(self, batch):
        c, units = self.case["channels"], self.case["units"]
        vision = [torch.zeros(batch, c, *self.cells).contiguous(memory_format=self.layout) for _ in range(2)]
        return [*vision, torch.zeros(batch, units), torch.zeros(batch, units)]

    def look(self, pictures):
        """`[batch, height, width, channels]` bytes."""
        x = pictures.permute(0, 3, 1, 2).float().mul_(1 / 255).contiguous(memory_format=self.layout)
        for i, (_, size, stride) in enumerate(self.case["convs"], 1):
            # As TensorFlow pads: of an odd number the larger part behind.
            padding = []
            for length in (x.shape[3], x.shape[2]):
                total = max((-(-length // stride) - 1) * stride + size - length, 0)
                padding += [total // 2, total - total // 2]
            weight, bias = getattr(self, f"conv{i}_w"), getattr(self, f"conv{i}_b")
            x = F.relu(F.conv2d(F.pad(x, padding), weight, bias, stride))
        return x

    def gates(self, z, c, axis):
        i, f, g, o = z.chunk(4, axis)
        c = torch.sigmoid(f + 1) * c + torch.sigmoid(i) * torch.tanh(g)
        return torch.sigmoid(o) * torch.tanh(c), c

    def step(self, z, told, states):
        """One step from the sums of the ConvLSTM's gates; returns what the trunk gets."""
        _, vision_c, core_h, core_c = states
        batch = len(told)
        vision_h, vision_c = self.gates(z, vision_c, 1)
        seen = vision_h.flatten(2).transpose(1, 2)
        places = self.basis.expand(batch, -1, -1)
        keys = torch.cat([seen[..., :KEYS], places], 2)
        values = torch.cat([seen[..., KEYS:], places], 2)
        queries = self.linear("query", self.layers("query", core_h))
        maps = torch.softmax(queries.view(batch, HEADS, -1) @ keys.transpose(1, 2), -1)
        x = torch.cat([(maps @ values).flatten(1), queries, told], 1)
        x = self.layers("answer", x)
        z = self.linear("core_x", x) + F.linear(core_h, self.core_h_w)
        core_h, core_c = self.gates(z, core_c, 1)
        return [vision_h, vision_c, core_h, core_c]

    def heads(self, x):
        x = F.relu(self.linear("trunk1", x))
        return self.linear("policy", x), self.linear("value", x)[..., 0]

    def act(self, pictures, told, states):
        if self.fused is None:
            weight = torch.cat([self.from_x_w, self.from_h_w], 1)
            self.fused = weight.contiguous(memory_format=self.layout)
        x = torch.cat([self.look(pictures), states[0]], 1)
        states = self.step(F.conv2d(x, self.fused, self.from_x_b, padding=1), told, states)
        return self.heads(states[2])[0], states

    def unroll(self, pictures, told):
        """`[steps, batch, …]`"""
        steps, batch = pictures.shape[:2]
        from_x = F.conv2d(self.look(pictures.flatten(0, 1)), self.from_x_w, self.from_x_b, padding=1)
        from_x = from_x.unflatten(0, (steps, batch))
        states, outputs = self.state(batch), []
        for t in range(steps):
            z = from_x[t] + F.conv2d(states[0], self.from_h_w, padding=1)
            states = self.step(z, told[t], states)
            outputs.append(states[2])
        return self.heads(torch.stack(outputs))


def fastest(step, seconds):
    """CPU seconds of a call of which one in ten is as fast; the clock of a virtual machine may make up the very fastest."""
    start, calls = time.process_time(), []
    while len(calls) < 2 or time.process_time() - start < seconds:
        begin = time.process_time()
        step()
        calls.append(time.process_time() - begin)
    return sorted(calls)[len(calls) // 10]


def acting(folder, name, case, layout, batch, seconds):
    """Frames per CPU second, and how far the first logits are from those in the folder."""
    net = S3ta(case, floats(folder, name, "params"), layout).eval()
    pictures = codes(folder, name, case)[:batch]
    told = torch.zeros(batch, 1 + case["actions"])
    with torch.inference_mode():
        logits, states = net.act(pictures, told, net.state(batch))
        away = None
        if batch > 1:
            wanted = floats(folder, name, "logits").reshape(batch, -1)
            away = float(np.abs(logits.numpy() - wanted).max())

        def step():
            nonlocal states
            logits, states = net.act(pictures, told, states)
            return torch.softmax(logits, -1).argmax(-1)

        return batch / fastest(step, seconds), away


def codes(folder, name, case):
    return torch.from_numpy(np.fromfile(folder / f"{name}.pictures", np.uint8).reshape(-1, *case["view"]))


def learning(folder, name, case, layout, seconds):
    net = S3ta(case, floats(folder, name, "params"), layout)
    steps, actions = case["steps"], case["actions"]

    def turned(x):
        """From `[sequences · steps, …]` to `[steps, sequences, …]`."""
        return x.unflatten(0, (SEQUENCES, steps)).transpose(0, 1).contiguous()

    numbers = lambda what: torch.from_numpy(floats(folder, name, what))  # noqa: E731
    bits = F.one_hot(numbers("choices").long(), actions).float()
    told = turned(torch.cat([numbers("rewards")[:, None], bits], 1))
    pictures = turned(codes(folder, name, case))
    of_logits, of_values = turned(numbers("of_logits").view(-1, actions)), turned(numbers("of_values"))
    optimizer = torch.optim.RMSprop(net.parameters(), lr=1e-6, alpha=0.99, eps=0.01)

    def step():
        optimizer.zero_grad()
        logits, values = net.unroll(pictures, told)
        ((logits * of_logits).sum() + (values * of_values).sum()).backward()
        optimizer.step()

    best = fastest(step, 0)
    net = S3ta(case, floats(folder, name, "params"), layout)
    optimizer = torch.optim.RMSprop(net.parameters(), lr=1e-6, alpha=0.99, eps=0.01)
    step()
    away = difference(net.gradient(), floats(folder, name, "gradient"))
    return SEQUENCES * steps / min(best, fastest(step, seconds)), away


def main():
    arguments = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    arguments.add_argument("folder", type=pathlib.Path)
    arguments.add_argument("--seconds", type=float, default=6.0, help="CPU time to spend on each measurement")
    arguments.add_argument("--only", choices=CASES, help="measure this network alone")
    given = arguments.parse_args()
    if "MALLOC_MMAP_THRESHOLD_" not in os.environ:
        memory = {"MALLOC_MMAP_THRESHOLD_": "33554432", "MALLOC_TRIM_THRESHOLD_": "1073741824"}
        os.execve(sys.executable, [sys.executable, *sys.argv], os.environ | memory)
    result = {"torch": torch.__version__}
    for name, case in CASES.items():
        if given.only not in (None, name):
            continue
        for layout, title in ((torch.contiguous_format, "first"), (torch.channels_last, "last")):
            for batch in (1, 16):
                speed, away = acting(given.folder, name, case, layout, batch, given.seconds)
                key = f"{name}_act_{batch}"
                result[key] = max(result.get(key, 0), speed)
                print(f"{key}, channels {title}: {speed:.1f}", file=sys.stderr)
                if away is not None:
                    result[f"{name}_logits"] = max(result.get(f"{name}_logits", 0), away)
            speed, away = learning(given.folder, name, case, layout, given.seconds)
            key = f"{name}_learn"
            result[key] = max(result.get(key, 0), speed)
            result[f"{name}_gradient"] = max(result.get(f"{name}_gradient", 0), away)
            print(f"{key}, channels {title}: {speed:.1f}", file=sys.stderr)
    print(json.dumps(result))


if __name__ == "__main__":
    main()
