"""S3TA in JAX, in double precision: its ConvLSTM, its attention, the whole network through time, and the residual networks that
it is compared with; random weights, what the network sees, what it computes, and gradients by automatic differentiation.

JAX and not PyTorch: the environment of these tests has it already, for evolution strategies; PyTorch would be an installation
of its own, several times as large as all the rest.

Little-endian f64 throughout; a text is its length and its bytes, each as one number, and a tensor its number of axes, their
lengths and its numbers. A part begins with its kind:

"cell": a ConvLSTM, with and without peepholes: the forget bias, the weights by name, the states h and c before, the number of steps; of each step the
    input, then the new h and c.
"attention": the source of the scores, the functions of the basis, their number, heads; the queries, keys and values, the
    maps `[heads, cells]` and the answers.
"network": a name, the agent's configuration as JSON, the weights by name, then two unrolls.
    The first begins with the state of an episode's beginning and takes the best choice in every step: number of steps; of each
    the picture in bytes, the reward before it, the choice, the logits, the value, the new states, and the maps, if any.
    The second is for learning: steps and sequences (0 and 0 if there is none), the states before, `[sequences, numbers]`; of
    each step and sequence the picture, the last reward and choice (-1 for none); logits, values, what they are multiplied
    by in a loss that is the sum of these products, and the gradient of it with respect to every weight, by name.
"end"
"""

import json
import os

os.environ["JAX_PLATFORMS"] = "cpu"
os.environ["JAX_ENABLE_X64"] = "1"
# Each function runs once, so that compiling it well takes longer than running it.
os.environ["XLA_FLAGS"] = "--xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true"

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402

DEFAULT = {
    "view": [210, 160, 3],
    "actions": 18,
    "torso": "attention",
    "convolutions": [{"filters": 32, "size": 8, "stride": 4}, {"filters": 64, "size": 4, "stride": 2}],
    "channels": 128,
    "size": 3,
    "peepholes": False,
    "keys": 8,
    "heads": 4,
    "attention": "top-down",
    "frequencies": 4,
    "basis": "mixed",
    "query_hidden": [256, 128],
    "answer_hidden": [512, 256],
    "answer_relu": True,
    "units": 256,
    "trunk": 128,
    "forget_bias": 1.0,
    "reward_clip": 1.0,
}

SMALL = DEFAULT | {
    "view": [21, 18, 3],
    "actions": 5,
    "convolutions": [{"filters": 6, "size": 4, "stride": 2}, {"filters": 32, "size": 3, "stride": 2}],
    # So many channels that ours computes the ConvLSTM's convolutions with fewer multiplications.
    "channels": 32,
    "keys": 4,
    "heads": 2,
    "frequencies": 2,
    "query_hidden": [12, 9],
    "answer_hidden": [14, 11],
    "units": 10,
    "trunk": 7,
}

RESIDUAL = {"torso": "residual", "answer_hidden": [9], "trunk": 0}

REDUCED = {
    "top-down": SMALL,
    "fixed query": SMALL | {"attention": "fixed-query", "basis": "mixed-from-zero"},
    "key norms": SMALL | {"attention": "key-norms", "basis": "cosines", "answer_relu": False, "trunk": 0},
    "peepholes": SMALL | {"peepholes": True, "forget_bias": 0.0},
    "residual": SMALL | RESIDUAL | {"units": 0},
    "residual with an LSTM": SMALL | RESIDUAL,
}


def convolution(x, weight, stride=1):
    """`[batch, rows, columns, channels]`, with TensorFlow's SAME padding."""
    layout = ("NHWC", "OHWI", "NHWC")
    return jax.lax.conv_general_dilated(x, weight, (stride, stride), "SAME", dimension_numbers=layout)


def gates(z, c, forget_bias, peepholes=(0.0, 0.0, 0.0)):
    """h and c of an LSTM, from the sums of its gates."""
    i, f, g, o = jnp.split(z, 4, -1)
    of_i, of_f, of_o = peepholes
    new = jax.nn.sigmoid(f + forget_bias + of_f * c) * c + jax.nn.sigmoid(i + of_i * c) * jnp.tanh(g)
    return jax.nn.sigmoid(o + of_o * new) * jnp.tanh(new), new


def conv_lstm(p, x, h, c, forget_bias):
    """Shi et al. 2015, equation 3; peepholes are optional."""
    z = convolution(x, p["vision_input.weight"]) + p["vision_input.bias"]
    peepholes = p.get("vision_peephole.weight", (0.0, 0.0, 0.0))
    return gates(z + convolution(h, p["vision_state.weight"]), c, forget_bias, peepholes)


def basis(kind, n, rows, columns):
    """`[rows, columns, (2 n)²]`: products of a function of the row and one of the column."""

    def functions(size):
        p = np.arange(size) / size
        if kind == "mixed":
            return [np.cos(np.pi * u * p) for u in range(1, n + 1)] + [
                np.sin(np.pi * u * p) for u in range(1, n + 1)
            ]
        if kind == "mixed-from-zero":
            return [np.cos(np.pi * u * p) for u in range(n)] + [np.sin(np.pi * u * p) for u in range(1, n + 1)]
        return [np.cos(np.pi * u * (np.arange(size) + 1) / size) for u in range(1, 2 * n + 1)]

    products = [np.outer(down, across) for down in functions(rows) for across in functions(columns)]
    return np.stack(products, -1)


def attend(source, queries, keys, values, places, heads):
    """Maps `[batch, heads, cells]`, and answers `[batch, heads, features]`; keys and values without the basis `places`."""
    batch, rows, columns, width = keys.shape
    everywhere = jnp.broadcast_to(places, (batch, *places.shape))
    values = jnp.concatenate([values, everywhere], -1).reshape(batch, rows * columns, -1)
    if source == "key-norms":
        groups = keys.reshape(batch, rows * columns, heads, width // heads)
        scores = jnp.sqrt((groups**2).sum(-1)).swapaxes(1, 2)
    else:
        keys = jnp.concatenate([keys, everywhere], -1).reshape(batch, rows * columns, -1)
        scores = jnp.einsum("bhk,bck->bhc", queries, keys)
    maps = jax.nn.softmax(scores, -1)
    return maps, jnp.einsum("bhc,bcv->bhv", maps, values)


def linear(p, name, x):
    y = x @ p[name + ".weight"].T
    return y + p[name + ".bias"] if name + ".bias" in p else y


def layers(p, name, count, x, last=True):
    for i in range(1, count + 1):
        x = linear(p, f"{name}{i}", x)
        x = jax.nn.relu(x) if last or i < count else x
    return x


def residual(p, x):
    for stage in range(1, 4):
        x = convolution(x, p[f"stage{stage}_conv.weight"]) + p[f"stage{stage}_conv.bias"]
        x = jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, (1, 3, 3, 1), (1, 2, 2, 1), "SAME")
        for block in (1, 2):
            y = x
            for conv in (1, 2):
                name = f"stage{stage}_block{block}_conv{conv}"
                y = convolution(jax.nn.relu(y), p[name + ".weight"]) + p[name + ".bias"]
            x = x + y
    return jax.nn.relu(x).reshape(len(x), -1)


def step(config, p, picture, told, states):
    """Logits `[batch, actions]`, values `[batch]`, the new states and the maps. Pictures are numbers from 0 to 1."""
    batch, maps, bias = len(picture), None, config["forget_bias"]
    if config["torso"] == "attention":
        vision_h, vision_c, core_h, core_c = states
        x = picture
        for i, layer in enumerate(config["convolutions"], 1):
            x = convolution(x, p[f"vision_conv{i}.weight"], layer["stride"]) + p[f"vision_conv{i}.bias"]
            x = jax.nn.relu(x)
        vision_h, vision_c = conv_lstm(p, x, vision_h, vision_c, bias)
        keys, values = vision_h[..., : config["keys"]], vision_h[..., config["keys"] :]
        places = basis(config["basis"], config["frequencies"], *vision_h.shape[1:3])
        queries = None
        if config["attention"] == "top-down":
            hidden = layers(p, "query", len(config["query_hidden"]), core_h)
            queries = linear(p, "query", hidden)
        elif config["attention"] == "fixed-query":
            queries = jnp.broadcast_to(p["query.value"], (batch, p["query.value"].size))
        asked = None if queries is None else queries.reshape(batch, config["heads"], -1)
        maps, answers = attend(config["attention"], asked, keys, values, places, config["heads"])
        x = [answers.reshape(batch, -1), *([] if queries is None else [queries]), told]
        x = jnp.concatenate(x, -1)
        x = layers(p, "answer", len(config["answer_hidden"]), x, config["answer_relu"])
        states = [vision_h, vision_c]
    else:
        x = layers(p, "answer", len(config["answer_hidden"]), residual(p, picture))
        core_h, core_c = states if config["units"] else (None, None)
        x = jnp.concatenate([x, told], -1) if config["units"] else x
        states = []
    if config["units"]:
        core_h, core_c = gates(linear(p, "core_input", x) + linear(p, "core_state", core_h), core_c, bias)
        x, states = core_h, [*states, core_h, core_c]
    x = layers(p, "trunk", 1 if config["trunk"] else 0, x)
    return linear(p, "policy", x), linear(p, "value", x)[:, 0], states, maps


def told(config, reward, choice):
    """What the network is told of the last step; `choice` is -1 for none. Arrays over a batch."""
    bound = config["reward_clip"]
    bits = (np.asarray(choice)[:, None] == np.arange(config["actions"])).astype(float)
    return np.concatenate([np.clip(reward, -bound, bound)[:, None], bits], -1)


def cells(config):
    rows, columns = config["view"][:2]
    for layer in config["convolutions"]:
        rows, columns = -(-rows // layer["stride"]), -(-columns // layer["stride"])
    return rows, columns


def state_shapes(config):
    units = [(config["units"],)] * 2 if config["units"] else []
    vision = [(*cells(config), config["channels"])] * 2
    return [*vision, *units] if config["torso"] == "attention" else units


def shapes(config):
    """Every tensor's name and shape."""

    def dense(name, inputs, outputs):
        return {name + ".weight": (outputs, inputs), name + ".bias": (outputs,)}

    def filters(name, before, after, size):
        return {name + ".weight": (after, size, size, before), name + ".bias": (after,)}

    def chain(name, inputs, hidden):
        for i, outputs in enumerate(hidden, 1):
            all.update(dense(f"{name}{i}", inputs, outputs))
            inputs = outputs
        return inputs

    all, units, told = {}, config["units"], 1 + config["actions"]
    if config["torso"] == "attention":
        width, channels, size = config["view"][2], config["channels"], config["size"]
        for i, layer in enumerate(config["convolutions"], 1):
            all |= filters(f"vision_conv{i}", width, layer["filters"], layer["size"])
            width = layer["filters"]
        all |= filters("vision_input", width, 4 * channels, size)
        all["vision_state.weight"] = (4 * channels, size, size, channels)
        if config["peepholes"]:
            all["vision_peephole.weight"] = (3, *cells(config), channels)
        places, heads = 4 * config["frequencies"] ** 2, config["heads"]
        asked = heads * (config["keys"] + places)
        if config["attention"] == "top-down":
            all |= dense("query", chain("query", units, config["query_hidden"]), asked)
        elif config["attention"] == "fixed-query":
            all["query.value"] = (asked,)
        else:
            asked = 0
        x = chain("answer", heads * (channels - config["keys"] + places) + asked + told, config["answer_hidden"])
    else:
        rows, columns, width = config["view"]
        for stage, outputs in enumerate((16, 32, 32), 1):
            all |= filters(f"stage{stage}_conv", width, outputs, 3)
            for block in (1, 2):
                for conv in (1, 2):
                    all |= filters(f"stage{stage}_block{block}_conv{conv}", outputs, outputs, 3)
            rows, columns, width = -(-rows // 2), -(-columns // 2), outputs
        x = chain("answer", rows * columns * width, config["answer_hidden"]) + (told if units else 0)
    if units:
        all |= dense("core_input", x, 4 * units)
        all["core_state.weight"] = (4 * units, units)
        x = units
    x = chain("trunk", x, [config["trunk"]] if config["trunk"] else [])
    return all | dense("policy", x, config["actions"]) | dense("value", x, 1)


def draw(rng, shapes):
    """Random weights, exact in single precision."""
    p = {}
    for name, shape in shapes.items():
        width = 1.5 / np.sqrt(np.prod(shape[1:])) if len(shape) > 1 else 0.3
        p[name] = single(rng.uniform(-width, width, shape))
    return p


def single(x):
    return np.float32(x).astype(np.float64)


class Pipe:
    """Writes what was computed; everything else that is printed goes to the error output."""

    def __init__(self):
        self.file = os.fdopen(os.dup(1), "wb", buffering=1 << 20)
        os.dup2(2, 1)

    def numbers(self, *values):
        for value in values:
            self.file.write(np.asarray(value, dtype="<f8").tobytes())

    def text(self, value):
        data = value.encode()
        self.numbers(len(data), list(data))

    def tensor(self, value):
        value = np.asarray(value)
        self.numbers(value.ndim, value.shape, value)

    def tensors(self, values):
        self.numbers(len(values))
        for name, value in values.items():
            self.text(name)
            self.tensor(value)


def write_cell(pipe, rng, forget_bias, peepholes):
    rows, columns, inputs, channels = 5, 4, 3, 6
    tensors = {
        "vision_input.weight": (4 * channels, 3, 3, inputs),
        "vision_input.bias": (4 * channels,),
        "vision_state.weight": (4 * channels, 3, 3, channels),
    }
    p = draw(rng, tensors)
    if peepholes:
        p["vision_peephole.weight"] = single(rng.uniform(-1, 1, (3, rows, columns, channels)))
    h, c = (single(rng.uniform(-1, 1, (rows, columns, channels))) for _ in range(2))
    pipe.text("cell")
    pipe.numbers(forget_bias)
    pipe.tensors(p)
    pipe.tensor(h)
    pipe.tensor(c)
    pipe.numbers(6)
    for _ in range(6):
        x = single(rng.uniform(-1, 1, (rows, columns, inputs)))
        h, c = (state[0] for state in conv_lstm(p, x[None], h[None], c[None], forget_bias))
        pipe.tensor(x)
        pipe.tensor(h)
        pipe.tensor(c)


def write_attention(pipe, rng, source, kind):
    rows, columns, width, features, heads, n = 5, 7, 6, 9, 3, 2
    places = basis(kind, n, rows, columns)
    queries = single(rng.uniform(-1, 1, (heads, width + 4 * n * n)))
    keys, values = (single(rng.uniform(-2, 2, (rows, columns, size))) for size in (width, features))
    maps, answers = attend(source, queries[None], keys[None], values[None], places, heads)
    pipe.text("attention")
    pipe.text(source)
    pipe.text(kind)
    pipe.numbers(n, heads)
    for value in (queries, keys, values, maps[0], answers[0]):
        pipe.tensor(value)


def write_network(pipe, rng, name, config, steps, learning):
    p, sizes = draw(rng, shapes(config)), state_shapes(config)
    pipe.text("network")
    pipe.text(name)
    pipe.text(json.dumps(config))
    pipe.tensors(p)
    states, choice = [np.zeros((1, *shape)) for shape in sizes], -1
    pipe.numbers(steps)
    for t in range(steps):
        picture = rng.integers(0, 256, config["view"])
        reward = rng.uniform(-2, 2) if t else 0.0
        before = told(config, np.array([reward]), [choice])
        logits, values, states, maps = step(config, p, picture[None] / 255, before, states)
        # The best choice leads by more than rounding, so that the agent takes it, too.
        least = np.sort(logits[0])[-2:]
        assert least[1] - least[0] > 1e-4, f"{name}, step {t}: no choice is the best"
        choice = int(logits[0].argmax())
        pipe.numbers(picture, reward, choice, logits[0], values[0], *(state[0] for state in states))
        if maps is not None:
            pipe.numbers(maps[0])
    steps, sequences = learning
    pipe.numbers(steps, sequences)
    if steps == 0:
        return
    begin = [single(rng.uniform(-1, 1, (sequences, *shape))) for shape in sizes]
    pictures = rng.integers(0, 256, (steps, sequences, *config["view"]))
    rewards = rng.uniform(-2, 2, (steps, sequences))
    choices = rng.integers(-1, config["actions"], (steps, sequences))
    of_logits = single(rng.uniform(-1, 1, (steps, sequences, config["actions"])))
    of_values = single(rng.uniform(-1, 1, (steps, sequences)))

    def unroll(p):
        states, all = begin, []
        for t in range(steps):
            before = told(config, rewards[t], choices[t])
            logits, values, states, _ = step(config, p, pictures[t] / 255, before, states)
            all.append((logits, values))
        return [jnp.stack(part) for part in zip(*all)]

    def loss(p):
        logits, values = unroll(p)
        return (logits * of_logits).sum() + (values * of_values).sum()

    logits, values = jax.jit(unroll)(p)
    for sequence in range(sequences):
        pipe.numbers(*(state[sequence] for state in begin))
    for t in range(steps):
        for sequence in range(sequences):
            pipe.numbers(pictures[t, sequence], rewards[t, sequence], choices[t, sequence])
    pipe.numbers(logits, values, of_logits, of_values)
    pipe.tensors(jax.jit(jax.grad(loss))(p))


def main():
    pipe, rng = Pipe(), np.random.default_rng(1)
    for forget_bias, peepholes in ((0.0, False), (1.0, False), (1.0, True)):
        write_cell(pipe, rng, forget_bias, peepholes)
    for source in ("top-down", "fixed-query", "key-norms"):
        for kind in ("mixed", "mixed-from-zero", "cosines"):
            write_attention(pipe, rng, source, kind)
    for name, config in REDUCED.items():
        write_network(pipe, rng, name, config, 5, (5, 2))
    write_network(pipe, rng, "default", DEFAULT, 2, (0, 0))
    pipe.text("end")
    pipe.file.flush()


if __name__ == "__main__":
    main()
