"""AttentionNeuron (Tang and Ha 2021, "The Sensory Neuron as a Transformer").

Every sensor, a number or a patch of a picture, has a small network of its own, all of the same weights; attention of fixed
queries adds their messages up, so the order of the sensors does not matter.
"""

from foveate.torch._agent import Agent, Tensor, largest, nn, normalise, one_hot_of_largest, torch
from foveate.torch._bottleneck import divisor, vote


def queries(rows, columns):
    """The fixed queries: the sinusoidal position code, ``[rows, columns]``."""
    table = torch.empty(rows, columns, dtype=torch.float64)
    for column in range(columns):
        angle = torch.arange(rows, dtype=torch.float64) / 10_000 ** (2 * (column // 2) / columns)
        table[:, column] = angle.cos() if column % 2 else angle.sin()
    return table.float()


class AttentionNeuron(Agent):
    """Numbers, ``[batch, sensors]``, or stacks of grey pictures, ``[batch, frame, row, column, 1]``, to actions.

    The configuration's ``senses`` says which: ``"numbers"`` or ``"picture"``. Attention is the weight of each sensor for each
    code, ``[batch, codes, sensors]``, or the weights of each patch, added up over the codes, ``[batch, patches]``.
    """

    name = "attention-neuron"
    numbers = {
        "senses": "numbers",
        "codes": 16,
        "query_dim": 8,
        "key_dim": 8,
        "message_dim": 32,
        "bias": False,
        "scale": "one",
        "activation": "tanh",
        "squash": True,
        "layers": [],
        "actions": [[-1.0, 1.0]],
    }
    picture = {
        "senses": "picture",
        "image": [96, 96],
        "frames": 4,
        "patch": 6,
        "codes": [32, 32],
        "code_dim": 8,
        "query_dim": 16,
        "message_dim": 16,
        "scale": "sqrt_d",
        "sharpness": 1.0,
        "flatten": "time_fastest",
        "value_affine": False,
        "message_affine": False,
        "head": {"kind": "attention_agent"},
        "actions": [[-1.0, 1.0], [0.0, 1.0], [0.0, 1.0]],
    }
    heads = {
        "attention_agent": {"query_dim": 4, "scale": "one", "top_k": 10, "hidden": 16, "smoothing": 16},
        "convolution": {
            "layers": [{"filters": 64, "size": 4, "stride": 2}, {"filters": 64, "size": 3, "stride": 1}],
            "hidden": [512],
            "output": "scores",
        },
        "dense": {"hidden": [], "output": "tanh"},
        "recurrent": {"hidden": 32},
    }

    def __init__(self, config=None, fixed=None):
        senses = (config or {}).get("senses", "numbers")
        self.__dict__["defaults"] = self.picture if senses == "picture" else self.numbers
        super().__init__(config, fixed)
        self.senses = senses
        (self._build_picture if senses == "picture" else self._build_numbers)()

    def state_shapes(self):
        """The last output (``before``), and what the networks remember; on numbers for each sensor, ``[sensors, key_dim]``."""
        return {"before": [len(self.config["actions"])], **self.remembered}

    def initial_state(self, batch=1, sensors=None):
        """The state at the start of episodes; on numbers, of this many sensors."""
        state = super().initial_state(batch)
        if self.senses == "numbers":
            state |= {name: state["before"].new_zeros(batch, sensors, self.config["key_dim"]) for name in ("h", "c")}
        elif self.config.get("first_choice") is not None:
            state["before"][:, self.config["first_choice"]] = 1
        return state

    def forward(self, observation, state=None):
        """The actions in the world's units, or scores of choices; attention; the next state."""
        if self.senses == "picture":
            return self._look(observation, state or self.initial_state(len(observation)))
        return self._sense(observation, state or self.initial_state(*observation.shape))

    # On numbers.

    def _build_numbers(self):
        config, self.remembered = self.config, {}
        self.lstm = nn.LSTMCell(1 + len(config["actions"]), config["key_dim"])
        self.query = nn.Linear(config["query_dim"], config["message_dim"], bias=config["bias"])
        self.key = nn.Linear(config["key_dim"], config["message_dim"], bias=config["bias"])
        width = config["codes"]
        for i, units in enumerate(config["layers"]):
            setattr(self, f"hidden{i}", nn.Linear(width, units))
            width = units
        self.output = nn.Linear(width, len(config["actions"]))
        self.divisor = divisor(config["scale"], config["key_dim"], config["message_dim"])
        self.register_buffer("table", queries(config["codes"], config["query_dim"]), persistent=False)

    def _sense(self, numbers, state):
        # 1. A row of the LSTM for each sensor, which gets its number and the last output.
        batch, sensors = numbers.shape
        before = state["before"].unsqueeze(1).expand(-1, sensors, -1)
        told = torch.cat([numbers.unsqueeze(2), before], 2).flatten(0, 1)
        h, c = self.lstm(told, (state["h"].flatten(0, 1), state["c"].flatten(0, 1)))
        h, c = h.unflatten(0, (batch, sensors)), c.unflatten(0, (batch, sensors))
        # 2. The weight of each sensor for each code.
        scores = (self.precisely(self.query, self.table) @ self.precisely(self.key, h).transpose(1, 2) / self.divisor).float()
        activation = self.config["activation"]
        weights = scores.softmax(-1) if activation == "softmax" else getattr(scores, activation)()
        # 3. The message, and 4. the action.
        x = (weights @ numbers.unsqueeze(2)).squeeze(2)
        x = x.tanh() if self.config["squash"] else x
        for i in range(len(self.config["layers"])):
            x = getattr(self, f"hidden{i}")(x).tanh()
        raw = self.output(x).tanh()
        return self.in_units(raw), weights, {"before": raw, "h": h, "c": c}

    # On pictures.

    def _build_picture(self):
        config = self.config
        area, actions = config["patch"] ** 2, len(config["actions"])
        keys = (config["frames"] - 1) * area + actions
        self.query = nn.Linear(config["code_dim"], config["query_dim"])
        self.key = nn.Linear(keys, config["query_dim"])
        self.value = nn.Linear(config["frames"] * area, config["message_dim"])
        if config["value_affine"]:
            self.value_norm = Tensor(weight=[area], bias=[area])
        if config["message_affine"]:
            self.message_norm = Tensor(weight=[config["message_dim"]], bias=[config["message_dim"]])
        self.divisor = divisor(config["scale"], keys, config["query_dim"]) / config["sharpness"]
        (rows, columns), width = config["codes"], config["message_dim"]
        self.register_buffer("table", queries(rows * columns, config["code_dim"]), persistent=False)
        head = {**self.heads[config["head"]["kind"]], **config["head"]}
        self.head, self.remembered, flat = head, {}, rows * columns * width
        if head["kind"] in ("attention_agent", "recurrent"):
            if head["kind"] == "attention_agent":
                self.latent_query, self.latent_key = (nn.Linear(width, head["query_dim"]) for _ in range(2))
                flat = 2 * head["top_k"]
                place = torch.arange(rows * columns)
                places = torch.stack([place // columns / rows, place % columns / columns], 1).float()
                self.register_buffer("places", places, persistent=False)
            self.lstm = nn.LSTMCell(flat, head["hidden"])
            self.output = nn.Linear(head["hidden"], actions)
            self.remembered = {"h": [head["hidden"]], "c": [head["hidden"]]}
            if head.get("smoothing", 0) > 0:
                self.smoothing0 = nn.Linear(head["hidden"] + actions, head["smoothing"])
                self.smoothing1 = nn.Linear(head["smoothing"], 1)
                self.remembered |= {"smoothed": [rows * columns, width], "alpha": [1]}
            return
        for i, layer in enumerate(head.get("layers", [])):
            setattr(self, f"conv{i}", nn.Conv2d(width, layer["filters"], layer["size"], layer["stride"]))
            rows, columns = ((n - layer["size"]) // layer["stride"] + 1 for n in (rows, columns))
            width, flat = layer["filters"], layer["filters"] * rows * columns
        for i, units in enumerate(head["hidden"]):
            setattr(self, f"hidden{i}", nn.Linear(flat, units))
            flat = units
        self.output = nn.Linear(flat, actions)

    def _look(self, pictures, state):
        config, side, frames = self.config, self.config["patch"], self.config["frames"]
        (width, height), batch = config["image"], len(pictures)
        rows, columns = height // side, width // side
        x = pictures.reshape(batch, frames, height, width).to(self.precision)[:, :, : rows * side, : columns * side] / 255
        x = x.reshape(batch, frames, rows, side, columns, side).permute(0, 2, 4, 1, 3, 5).flatten(1, 2).flatten(3)
        # 1. Keys of what moves: `x` is [batch, patch, frame, pixel].
        moves = x[:, :, 1:] - x[:, :, :-1]
        moves = moves.transpose(2, 3) if config["flatten"] == "time_fastest" else moves
        before = state["before"].unsqueeze(1).expand(-1, rows * columns, -1)
        key = self.precisely(self.key, torch.cat([moves.flatten(2), before], 2))
        # 2. Values of what it looks like.
        looks = normalise(x, [3])
        if config["value_affine"]:
            looks = looks * self.value_norm.weight + self.value_norm.bias
        value = self.precisely(self.value, looks.flatten(2))
        # 3. A message for each code.
        weights = (self.precisely(self.query, self.table) @ key.transpose(1, 2) / self.divisor).softmax(-1)
        message = normalise((weights @ value).relu(), [2]).float()
        if config["message_affine"]:
            message = message * self.message_norm.weight + self.message_norm.bias
        # 4. The head.
        raw, following = self._act(message, state)
        following["before"] = one_hot_of_largest(raw) if config.get("first_choice") is not None else raw
        scores = self.head.get("output") == "scores"
        return raw if scores else self.in_units(raw), weights.sum(1).float(), following

    def _act(self, message, state):
        head, following = self.head, {}
        if head["kind"] in ("attention_agent", "recurrent"):
            x = message.flatten(1)
            if head["kind"] == "attention_agent":
                if head["smoothing"] > 0:
                    alpha = state["alpha"].unsqueeze(2)
                    message = (1 - alpha) * message + alpha * state["smoothed"]
                    following["smoothed"] = message
                by = divisor(head["scale"], self.config["message_dim"], head["query_dim"])
                voting = {"kernel": "softmax", **head.get("voting", {})}
                votes = vote(self.latent_query(message), self.latent_key(message), by, voting, self.fixed.get("projections"))
                x = self.places[largest(votes, head["top_k"])].flatten(1)
            h, c = self.lstm(x, (state["h"], state["c"]))
            raw = self.output(h).tanh()
            if "smoothed" in following:
                following["alpha"] = self.smoothing1(self.smoothing0(torch.cat([h, raw], 1)).tanh()).sigmoid()
            return raw, {**following, "h": h, "c": c}
        x = message.flatten(1)
        if head["kind"] == "convolution":
            x = message.unflatten(1, tuple(self.config["codes"])).permute(0, 3, 1, 2).relu()
            for i in range(len(head["layers"])):
                x = getattr(self, f"conv{i}")(x).relu()
            x = x.flatten(1)
        for i in range(len(head["hidden"])):
            x = getattr(self, f"hidden{i}")(x).relu()
        raw = self.output(x)
        return raw if head["output"] == "scores" else raw.tanh(), following
