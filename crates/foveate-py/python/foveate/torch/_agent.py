"""What all agents share: files of weights, states, and layers whose pictures are ``[batch, row, column, channel]``."""

import hashlib
import json
import math
import struct
from pathlib import Path

import torch
from torch import nn
from torch.nn import functional


def read_safetensors(path):
    """The metadata and the tensors of a SafeTensors file of single precision, in its order."""
    data = Path(path).read_bytes()
    if len(data) < 8 or (size := struct.unpack("<Q", data[:8])[0]) > len(data) - 8:
        raise ValueError(f"{path} is no SafeTensors file: its header does not end in it")
    try:
        header = json.loads(data[8 : 8 + size])
        about, body, tensors = header.pop("__metadata__", {}), data[8 + size :], {}
        for name, tensor in header.items():
            begin, end = tensor["data_offsets"]
            if tensor["dtype"] != "F32" or end - begin != 4 * math.prod(tensor["shape"]) or not 0 <= begin <= end <= len(body):
                raise ValueError(f"tensor {name} is not of single precision or not as long as its shape")
            numbers = torch.tensor(struct.unpack(f"<{(end - begin) // 4}f", body[begin:end]), dtype=torch.float32)
            tensors[name] = numbers.reshape(tensor["shape"])
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ValueError(f"{path} is no SafeTensors file of single precision: {error}") from None
    return about, tensors


def write_safetensors(path, about, tensors):
    """Writes a SafeTensors file."""
    header, body = {"__metadata__": about}, b""
    for name, tensor in tensors.items():
        numbers = tensor.detach().cpu().to(torch.float32).flatten().tolist()
        data = struct.pack(f"<{len(numbers)}f", *numbers)
        header[name] = {"dtype": "F32", "shape": list(tensor.shape), "data_offsets": [len(body), len(body) + len(data)]}
        body += data
    head = json.dumps(header).encode()
    head += b" " * (-len(head) % 8)
    Path(path).write_bytes(struct.pack("<Q", len(head)) + head + body)


class Agent(nn.Module):
    """An agent of one configuration, whose keys are those of the file of weights."""

    #: The agent's name in files.
    name = ""
    #: Keys of the configuration that may be left out.
    defaults = {}
    #: What attention is computed in. Double precision is as near to Foveate as can be, and gives equal patches equal votes;
    #: `torch.float32` is faster on GPUs.
    precision = torch.float64
    #: True if a file has the tensors of a layer in the order of their names.
    sorts = True

    def __init__(self, config=None, fixed=None):
        super().__init__()
        self.config = {**self.defaults, **(config or {})}
        self.about = {}
        # Numbers that are drawn from a seed and not learnt.
        self.fixed = fixed or {}

    @classmethod
    def load(cls, path, fixed=None):
        """The agent of a file of weights; ``fixed`` is the file with drawn numbers, if `foveate export` wrote one."""
        about, tensors = read_safetensors(path)
        if about.get("format") != "foveate-agent-1" or about.get("agent") != cls.name:
            raise ValueError(f"{path} holds no weights of {cls.name} but of {about.get('agent', 'something else')}")
        beside = Path(path).with_name("fixed.safetensors")
        fixed = fixed or (beside if beside.exists() else None)
        agent = cls(json.loads(about["config"]), read_safetensors(fixed)[1] if fixed else None)
        wanted = {name: list(tensor.shape) for name, tensor in agent.state_dict().items()}
        given = {name: list(tensor.shape) for name, tensor in tensors.items()}
        for tensor in sorted(wanted.keys() | given.keys()):
            if wanted.get(tensor) != given.get(tensor):
                raise ValueError(
                    f"{path}: tensor {tensor} has the shape {given.get(tensor, 'of none')}, "
                    f"this agent's is {wanted.get(tensor, 'of none')}; these are weights of another configuration"
                )
        agent.load_state_dict(tensors)
        agent.about = {key: text for key, text in about.items() if key not in ("format", "agent", "config", "sha256")}
        return agent

    def tensors(self):
        """The weights by name, in the order of a file."""
        layers = {}
        for name, tensor in self.state_dict().items():
            layers.setdefault(name.rsplit(".", 1)[0], []).append((name, tensor))
        return dict(pair for pairs in layers.values() for pair in (sorted(pairs, key=lambda p: p[0]) if self.sorts else pairs))

    def save(self, path):
        """Writes the weights for Foveate."""
        tensors = self.tensors()
        numbers = torch.cat([tensor.detach().cpu().flatten() for tensor in tensors.values()]).tolist()
        digest = hashlib.sha256(struct.pack(f"<{len(numbers)}f", *numbers)).hexdigest()
        about = {"agent": self.name, "config": json.dumps(self.config), "format": "foveate-agent-1", "sha256": digest}
        write_safetensors(path, {**self.about, **about}, tensors)

    def initial_state(self, batch=1):
        """The state at the start of episodes."""
        device = next(self.parameters()).device
        return {name: torch.zeros(batch, *shape, device=device) for name, shape in self.state_shapes().items()}

    def state_shapes(self):
        """The shape of each part of the state."""
        return {}

    def precisely(self, layer, x):
        """A linear layer of ``x`` in the precision of attention."""
        bias = None if layer.bias is None else layer.bias.to(self.precision)
        return functional.linear(x.to(self.precision), layer.weight.to(self.precision), bias)

    def in_units(self, raw):
        """Actions in the world's units, of numbers from -1 to 1."""
        bounds = raw.new_tensor(self.config["actions"])
        return raw * ((bounds[:, 1] - bounds[:, 0]) / 2) + (bounds[:, 0] + bounds[:, 1]) / 2


class Conv(nn.Module):
    """A convolution of pictures; with ``same``, zeros around them, so that the output has ceil(size / stride) rows and columns."""

    def __init__(self, inputs, outputs, size, stride=1, bias=True, same=False):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(outputs, size, size, inputs).uniform_(-1, 1) / math.sqrt(size * size * inputs))
        self.register_parameter("bias", nn.Parameter(torch.zeros(outputs)) if bias else None)
        self.size, self.stride, self.same = size, stride, same

    def forward(self, x):
        x = x.permute(0, 3, 1, 2)
        if self.same:
            missing = [max((-(-n // self.stride) - 1) * self.stride + self.size - n, 0) for n in x.shape[2:]]
            (top, left) = (n // 2 for n in missing)
            x = functional.pad(x, (left, missing[1] - left, top, missing[0] - top))
        x = functional.conv2d(x, self.weight.permute(0, 3, 1, 2), self.bias, self.stride)
        return x.permute(0, 2, 3, 1)


class Tensor(nn.Module):
    """Tensors of weights by name."""

    def __init__(self, **shapes):
        super().__init__()
        for name, shape in shapes.items():
            self.register_parameter(name, nn.Parameter(torch.ones(shape) if name in ("weight", "scale") else torch.zeros(shape)))


def normalise(x, axes):
    """(x - mean) / sqrt(variance + 1e-5) over some axes."""
    x = x - x.mean(axes, keepdim=True)
    return x / ((x * x).mean(axes, keepdim=True) + 1e-5).sqrt()


def one_hot_of_largest(x):
    """1 at the largest number of each row, the first of equal ones, and 0 elsewhere."""
    first = (x == x.max(-1, keepdim=True).values).to(torch.int64).cumsum(-1).eq(1) & (x == x.max(-1, keepdim=True).values)
    return first.to(x.dtype)


def largest(x, count):
    """The indices of the largest numbers of each row, the largest first, of equal ones the first."""
    return torch.sort(x, stable=True, dim=-1, descending=True).indices[..., :count]
