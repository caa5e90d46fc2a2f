"""The networks for digits in JAX, in double precision: random weights and pictures, logits, loss and its gradient.

Little-endian f64 throughout; a text is its length and its bytes, each as one number. For each network: its name, the number
of parameters and of pictures, all parameters, the pictures `[28, 28]` from 0 to 1, their classes, the logits, the mean cross
entropy and its gradient with respect to all parameters. For the relational network, the attention of the first picture
`[256, 256]` comes last.
"""

import os

os.environ["JAX_PLATFORMS"] = "cpu"
os.environ["JAX_ENABLE_X64"] = "1"
_pipe = os.fdopen(os.dup(1), "wb", buffering=1 << 20)
os.dup2(2, 1)

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402

PICTURES = 5


def numbers(*values):
    for value in values:
        _pipe.write(np.asarray(value, dtype="<f8").tobytes())


def text(value):
    data = value.encode()
    numbers(len(data), list(data))


def conv(x, p, name):
    """`[batch, height, width, channels]`, with a ReLU."""
    numbers_of = ("NHWC", "OHWI", "NHWC")
    y = jax.lax.conv_general_dilated(x, p[name + ".weight"], (1, 1), "VALID", dimension_numbers=numbers_of)
    return jax.nn.relu(y + p[name + ".bias"])


def linear(x, p, name):
    return x @ p[name + ".weight"].T + p[name + ".bias"]


def normed(x):
    """Over nodes and features together."""
    mean = x.mean((1, 2), keepdims=True)
    variance = ((x - mean) ** 2).mean((1, 2), keepdims=True)
    return (x - mean) / jnp.sqrt(variance + 1e-5)


def relational(p, x):
    x = x[..., None]
    for name in ["conv1", "conv2", "conv3", "conv4"]:
        x = conv(x, p, name)
    rows, columns = jnp.meshgrid(jnp.arange(16) / 16, jnp.arange(16) / 16, indexing="ij")
    places = jnp.broadcast_to(jnp.stack([columns, rows], -1), (*x.shape[:3], 2))
    nodes = jnp.concatenate([x, places], -1).reshape(len(x), 256, 32)
    q, k, v = (
        normed(linear(nodes, p, name)) * p[name + "_norm.scale"] + p[name + "_norm.shift"]
        for name in ["query", "key", "value"]
    )
    attention = jax.nn.softmax(q @ k.transpose(0, 2, 1) / 6, -1)
    x = normed(jax.nn.relu(linear(attention @ v, p, "linear1"))).max(1)
    return linear(x, p, "linear2"), attention


def convolutional(p, x):
    x = conv(conv(x[..., None], p, "conv1"), p, "conv2")
    x = x.reshape(len(x), 11, 2, 11, 2, 16).max((2, 4))
    for name in ["conv3", "conv4", "conv5"]:
        x = conv(x, p, name)
    return linear(jax.nn.relu(linear(x.reshape(len(x), 256), p, "linear1")), p, "linear2"), None


def convs(*sizes):
    return [
        (f"conv{i + 1}.{kind}", shape)
        for i, (c, n) in enumerate(zip(sizes, sizes[1:]))
        for kind, shape in [("weight", (n, 4, 4, c)), ("bias", (n,))]
    ]


def dense(name, inputs, outputs):
    return [(name + ".weight", (outputs, inputs)), (name + ".bias", (outputs,))]


def attending(name):
    return dense(name, 32, 36) + [(name + "_norm.scale", (256, 36)), (name + "_norm.shift", (256, 36))]


NETWORKS = {
    "relational": (
        relational,
        convs(1, 16, 20, 24, 30)
        + [tensor for name in ["query", "key", "value"] for tensor in attending(name)]
        + dense("linear1", 36, 36)
        + dense("linear2", 36, 10),
    ),
    "convolutional": (
        convolutional,
        convs(1, 10, 16, 24, 32, 64) + dense("linear1", 256, 128) + dense("linear2", 128, 10),
    ),
}

rng = np.random.default_rng(1)
for name, (network, shapes) in NETWORKS.items():
    p = {}
    for tensor, shape in shapes:
        width = 1 / np.sqrt(np.prod(shape[1:])) if tensor.endswith("weight") else 0.1
        centre = 1 if tensor.endswith("scale") else 0
        p[tensor] = np.float32(centre + rng.uniform(-width, width, shape)).astype(np.float64)
    pictures = (rng.integers(0, 256, (PICTURES, 28, 28)) / 255).astype(np.float32).astype(np.float64)
    classes = rng.integers(0, 10, PICTURES)

    def loss(p):
        return -jax.nn.log_softmax(network(p, pictures)[0])[jnp.arange(PICTURES), classes].mean()

    value, gradient = jax.value_and_grad(loss)(p)
    logits, attention = network(p, pictures)
    text(name)
    numbers(sum(x.size for x in p.values()), PICTURES)
    numbers(*p.values(), pictures, classes, logits, value, *(gradient[tensor] for tensor, _ in shapes))
    if attention is not None:
        numbers(attention[0])
text("end")
_pipe.flush()
