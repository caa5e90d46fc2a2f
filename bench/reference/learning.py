"""CPU time of a step of learning in PyTorch: deep Q-learning with relational networks, and classification of digits.

    python learning.py FOLDER [--seconds 4]

FOLDER holds weights, batches and gradients as crates/foveate-run/examples/learning.rs writes them; numbers in the files are
32-bit floats, everything else bytes.

Prints one JSON object: of each step the CPU microseconds of the fastest one on one thread, plain (`torch_us`) and with
its forward passes and loss compiled by `torch.compile` (`compiled_us`, null where that fails, and `compiled_why` says why;
steps on repeated observations cost the same and are not compiled); `loss`, that of the first step; and `difference`, the norm
of the difference of its gradient from that in FOLDER, divided by the norm of that one. The plain and the compiled gradient
must agree, or the program fails.

Rounding decides which of two nearly equal nodes is the largest and takes the gradient; so gradients are compared by norms,
within 1e-3.
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
from torch.nn import functional as F  # noqa: E402

torch.set_num_threads(1)


class Module(torch.nn.Module):
    """Parameters by name, from one flat array in the order of SHAPES. Weights of convolutions are stored with their channels
    last."""

    def __init__(self, shapes, flat):
        super().__init__()
        at = 0
        for name, shape in shapes:
            size = int(np.prod(shape))
            array = torch.from_numpy(flat[at : at + size].reshape(shape).copy())
            if len(shape) == 4:
                array = array.permute(0, 3, 1, 2).contiguous()
            self.register_parameter(name, torch.nn.Parameter(array))
            at += size
        assert at == flat.size, f"{flat.size} parameters, {at} are due"

    def gradient(self):
        """The flat gradient in the order of the file."""
        grads = [p.grad.permute(0, 2, 3, 1) if p.dim() == 4 else p.grad for p in self.parameters()]
        return torch.cat([g.reshape(-1) for g in grads]).numpy()

    def linear(self, name, x):
        return F.linear(x, getattr(self, f"{name}_w"), getattr(self, f"{name}_b"))

    def conv(self, name, x):
        return F.relu(F.conv2d(x, getattr(self, f"{name}_w"), getattr(self, f"{name}_b")))

    def norm(self, name, x):
        scale = getattr(self, f"{name}_scale")
        return F.layer_norm(x, scale.shape, scale, getattr(self, f"{name}_shift"))


def conv_shapes(sizes, side):
    """Of convolutions from and to these numbers of channels."""
    for i, (before, after) in enumerate(zip(sizes, sizes[1:])):
        yield f"conv{i}_w", (after, side, side, before)
        yield f"conv{i}_b", (after,)


def linear_shapes(name, before, after):
    return [(f"{name}_w", (after, before)), (f"{name}_b", (after,))]


def places(rows, columns):
    """Column and row of every cell as channels, [2, rows, columns]."""
    row, column = np.mgrid[:rows, :columns].astype(np.float32)
    return torch.from_numpy(np.stack([column / columns, row / rows]))


class Values(Module):
    """The relational network for grid worlds."""

    def __init__(self, flat, channels, filters, heads, dim, features, indices):
        self.heads, self.indices, self.channels = heads, indices, channels
        wide, nodes = heads * dim, 49
        shapes = list(conv_shapes([channels, *filters], 1))
        for name in ("query", "key", "value"):
            shapes += linear_shapes(name, filters[1] + 2, wide)
            shapes += [(f"{name}_{part}", (heads, nodes, dim)) for part in ("scale", "shift")]
        if indices:
            shapes += linear_shapes("score_query", dim, nodes) + linear_shapes("score_key", dim, nodes)
            shapes += linear_shapes("score", nodes, nodes)
        shapes += linear_shapes("linear1", wide, features) + linear_shapes("linear2", features, 5)
        super().__init__(shapes, flat)
        self.register_buffer("places", places(7, 7))

    def forward(self, codes):
        batch = len(codes)
        x = codes.view(batch, 7, 7, self.channels).permute(0, 3, 1, 2).float()
        if self.indices:
            x = x / x.amax((1, 2, 3), keepdim=True)
        x = self.conv("conv1", self.conv("conv0", x))
        x = torch.cat([x, self.places.expand(batch, -1, -1, -1)], 1).flatten(2).transpose(1, 2)

        def split(name):
            heads = self.linear(name, x).view(batch, 49, self.heads, -1).transpose(1, 2)
            return self.norm(name, heads)

        query, key, value = split("query"), split("key"), split("value")
        if self.indices:
            scores = F.elu(self.linear("score_query", query) + self.linear("score_key", key))
            x = torch.softmax(self.linear("score", scores), -1) @ value
        else:
            x = F.scaled_dot_product_attention(query, key, value)
        x = F.relu(self.linear("linear1", x.transpose(1, 2).reshape(batch, 49, -1)))
        x = self.linear("linear2", F.layer_norm(x, x.shape[1:]).max(1).values)
        return F.elu(x) if self.indices else x


class Digits(Module):
    """The relational network for digits."""

    def __init__(self, flat):
        shapes = list(conv_shapes([1, 16, 20, 24, 30], 4))
        for name in ("query", "key", "value"):
            shapes += linear_shapes(name, 32, 36)
            shapes += [(f"{name}_{part}", (256, 36)) for part in ("scale", "shift")]
        shapes += linear_shapes("linear1", 36, 36) + linear_shapes("linear2", 36, 10)
        super().__init__(shapes, flat)
        self.register_buffer("places", places(16, 16))

    def forward(self, x):
        for i in range(4):
            x = self.conv(f"conv{i}", x)
        x = torch.cat([x, self.places.expand(len(x), -1, -1, -1)], 1).flatten(2).transpose(1, 2)
        query, key, value = (self.norm(name, self.linear(name, x)) for name in ("query", "key", "value"))
        x = F.relu(self.linear("linear1", F.scaled_dot_product_attention(query, key, value)))
        return self.linear("linear2", F.layer_norm(x, x.shape[1:]).max(1).values)


class Baseline(Module):
    """The convolutional network for digits."""

    def __init__(self, flat):
        shapes = list(conv_shapes([1, 10, 16, 24, 32, 64], 4))
        super().__init__(shapes + linear_shapes("linear1", 256, 128) + linear_shapes("linear2", 128, 10), flat)

    def forward(self, x):
        for i in range(5):
            x = self.conv(f"conv{i}", x)
            if i == 1:
                x = F.max_pool2d(x, 2)
        # Ours flattens with the channels last.
        x = F.relu(self.linear("linear1", x.permute(0, 2, 3, 1).flatten(1)))
        return self.linear("linear2", x)


def floats(folder, name, what):
    return np.fromfile(folder / f"{name}.{what}", np.float32)


def codes(folder, name, what, count):
    return torch.from_numpy(np.fromfile(folder / f"{name}.{what}", np.uint8).reshape(count, -1))


def q_learning(folder, name, batch, standard, rate, clip, sizes):
    """A step of double Q-learning, and its network. `standard`: the best action is that of the state after a step."""
    make = lambda what: Values(floats(folder, name, what), *sizes)  # noqa: E731
    online, target = make("params"), make("target")
    before, after = codes(folder, name, "before", batch), codes(folder, name, "after", batch)
    actions = codes(folder, name, "actions", batch).long()
    rewards, discounts = (torch.from_numpy(floats(folder, name, what)) for what in ("rewards", "discounts"))
    optimizer = torch.optim.Adam(online.parameters(), lr=rate, fused=True)

    def loss_of():
        values = online(before)
        with torch.no_grad():
            best = (online(after) if standard else values).argmax(1, keepdim=True)
            wanted = rewards + discounts * target(after).gather(1, best)[:, 0]
        return F.mse_loss(values.gather(1, actions)[:, 0], wanted)

    def step(loss_of):
        optimizer.zero_grad()
        loss = loss_of()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(online.parameters(), clip)
        optimizer.step()

    return online, loss_of, step


def classification(folder, name, kind):
    """A step that classifies digits, and its network."""
    net = kind(floats(folder, name, "params"))
    classes = torch.from_numpy(np.fromfile(folder / f"{name}.classes", np.uint8)).long()
    pictures = codes(folder, name, "pictures", len(classes)).view(-1, 1, 28, 28)
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3, fused=True)

    def loss_of():
        return F.cross_entropy(net(pictures.float() / 255), classes)

    def step(loss_of):
        optimizer.zero_grad()
        loss_of().backward()
        optimizer.step()

    return net, loss_of, step


def first(net, loss_of):
    """Loss and gradient at the weights in the file."""
    net.zero_grad()
    loss = loss_of()
    loss.backward()
    return loss.item(), net.gradient().copy()


def difference(one, other):
    return float(np.linalg.norm(one - other) / np.linalg.norm(other))


def fastest(step, seconds):
    start, best = time.process_time_ns(), float("inf")
    while best == float("inf") or time.process_time_ns() - start < seconds * 1e9:
        begin = time.process_time_ns()
        step()
        best = min(best, time.process_time_ns() - begin)
    return round(best / 1e3, 1)


def measure(folder, name, make, seconds):
    net, loss_of, step = make()
    loss, gradient = first(net, loss_of)
    result = {"loss": loss, "difference": difference(gradient, floats(folder, name, "gradient"))}
    result["torch_us"] = fastest(lambda: step(loss_of), seconds)
    if name.endswith("_repeated"):
        return result
    net, loss_of, step = make()
    try:
        compiled = torch.compile(loss_of)
        other = first(net, compiled)[1]
    except Exception as error:
        return result | {"compiled_us": None, "compiled_why": str(error).strip().split("\n")[0]}
    assert difference(other, gradient) < 1e-3, f"{name}: the compiled step has another gradient"
    return result | {"compiled_us": fastest(lambda: step(compiled), seconds)}


def main():
    arguments = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    arguments.add_argument("folder", type=pathlib.Path)
    arguments.add_argument("--seconds", type=float, default=4.0, help="CPU time to spend on each step")
    given = arguments.parse_args()
    if "MALLOC_MMAP_THRESHOLD_" not in os.environ:
        memory = {"MALLOC_MMAP_THRESHOLD_": "33554432", "MALLOC_TRIM_THRESHOLD_": "1073741824"}
        os.execve(sys.executable, [sys.executable, *sys.argv], os.environ | memory)
    folder = given.folder
    book, preset = (3, [16, 20], 3, 64, 64, True), (20, [16, 16], 2, 16, 32, False)
    steps = {}
    for suffix in ("", "_repeated"):
        for rule in ("standard", "book"):
            arguments = 50, rule == "standard", 5e-4, 1.0, book
            name = f"book_{rule}{suffix}"
            steps[name] = lambda name=name, rest=arguments: q_learning(folder, name, *rest)
        name, rest = f"preset{suffix}", (64, True, 1e-3, 10.0, preset)
        steps[name] = lambda name=name, rest=rest: q_learning(folder, name, *rest)
    steps["digits"] = lambda: classification(folder, "digits", Digits)
    steps["digits_baseline"] = lambda: classification(folder, "digits_baseline", Baseline)
    result = {name: measure(folder, name, make, given.seconds) for name, make in steps.items()}
    print(json.dumps({"torch": torch.__version__, **result}))


if __name__ == "__main__":
    main()
