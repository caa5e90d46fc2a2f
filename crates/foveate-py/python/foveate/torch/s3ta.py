"""S3TA (Mott et al. 2019, "Towards Interpretable Reinforcement Learning Using Attention Augmented Agents").

A network looks at a picture; heads ask its cells for what the agent's own state wants to know; an LSTM acts on the answers.
"""

from foveate.torch._agent import Agent, Conv, Tensor, math, nn, normalise, torch


class S3ta(Agent):
    """Pictures as bytes, ``[batch, row, column, channel]`` or ``[batch, frame, row, column, channel]``, to scores of choices.

    Attention is ``[batch, head, cell]``. The state has two parts that the world fills in: ``reward``, ``[batch]``, that of the last
    step, and ``choice``, ``[batch]``, the last choice, -1 for none. The next state says 0 and the choice of the highest score.
    """

    name = "s3ta"
    sorts = False
    defaults = {
        "view": [210, 160, 3],
        "actions": 18,
        "torso": "attention",
        "pixel_scale": 1.0,
        "convolutions": [{"filters": 32, "size": 8, "stride": 4}, {"filters": 64, "size": 4, "stride": 2}],
        "normalise": False,
        "channels": 128,
        "size": 3,
        "peepholes": False,
        "keys": 8,
        "heads": 4,
        "attention": "top-down",
        "score_scale": 1.0,
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

    def __init__(self, config=None, fixed=None):
        super().__init__(config, fixed)
        config = self.config
        if config["torso"] != "attention":
            raise ValueError(f'torso = "{config["torso"]}" has no attention and no module; choose torso = "attention"')
        rows, columns, channels = config["view"]
        for i, layer in enumerate(config["convolutions"], 1):
            conv = Conv(channels, layer["filters"], layer["size"], layer["stride"], same=True)
            setattr(self, f"vision_conv{i}", conv)
            rows, columns, channels = -(-rows // layer["stride"]), -(-columns // layer["stride"]), layer["filters"]
        self.cells, out = (rows, columns), config["channels"]
        self.vision_input = Conv(channels, 4 * out, config["size"], same=True)
        self.vision_state = Conv(out, 4 * out, config["size"], bias=False, same=True)
        if config["peepholes"]:
            self.vision_peephole = Tensor(weight=[3, rows, columns, out])
        self.register_buffer("basis", self._basis().float(), persistent=False)
        wide = self.basis.shape[1]
        asked = config["heads"] * (config["keys"] + wide)
        if config["attention"] == "top-down":
            width = self._layers("query", config["query_hidden"], config["units"])
            self.query = nn.Linear(width, asked)
        elif config["attention"] == "fixed-query":
            self.query = Tensor(value=[asked])
        else:
            asked = 0
        told = config["heads"] * (out - config["keys"] + wide) + asked + 1 + config["actions"]
        width = self._layers("answer", config["answer_hidden"], told)
        self.core_input = nn.Linear(width, 4 * config["units"])
        self.core_state = nn.Linear(config["units"], 4 * config["units"], bias=False)
        self.features_dim = self._layers("trunk", [config["trunk"]] if config["trunk"] else [], config["units"])
        self.policy = nn.Linear(self.features_dim, config["actions"])
        self.value = nn.Linear(self.features_dim, 1)

    def _layers(self, name, units, width):
        for i, outputs in enumerate(units, 1):
            setattr(self, f"{name}{i}", nn.Linear(width, outputs))
            width = outputs
        return width

    def _through(self, name, count, x, last=True):
        for i in range(1, count + 1):
            x = getattr(self, f"{name}{i}")(x)
            x = x.relu() if last or i < count else x
        return x

    def _basis(self):
        """Where a cell lies: products of one function of its row and one of its column, ``[cells, functions]``."""
        n, kind = self.config["frequencies"], self.config["basis"]

        def functions(size):
            at = torch.arange(size, dtype=torch.float64) / size
            if kind == "cosines":
                return torch.stack([torch.cos(math.pi * u * (at + 1 / size)) for u in range(1, 2 * n + 1)], 1)
            first = 1 if kind == "mixed" else 0
            cosines = [torch.cos(math.pi * u * at) for u in range(first, first + n)]
            return torch.stack(cosines + [torch.sin(math.pi * u * at) for u in range(1, n + 1)], 1)

        rows, columns = functions(self.cells[0]), functions(self.cells[1])
        return (rows[:, None, :, None] * columns[None, :, None, :]).reshape(len(rows) * len(columns), -1)

    def state_shapes(self):
        """h and c of the vision core and of the LSTM, the last reward and choice."""
        cells, units = [*self.cells, self.config["channels"]], [self.config["units"]]
        return {"vision_h": cells, "vision_c": cells, "core_h": units, "core_c": units, "reward": [], "choice": []}

    def initial_state(self, batch=1):
        """The state at the start of episodes."""
        state = super().initial_state(batch)
        return {**state, "choice": state["choice"].long() - 1}

    def _gates(self, sums, c, peepholes=None):
        """h and c after the sums of the gates; with peepholes, gates i and f see the memory before, o the new one."""
        i, f, z, o = sums.chunk(4, -1)
        if peepholes is not None:
            i, f = i + peepholes[0] * c, f + peepholes[1] * c
        c = (f + self.config["forget_bias"]).sigmoid() * c + i.sigmoid() * z.tanh()
        o = o if peepholes is None else o + peepholes[2] * c
        return o.sigmoid() * c.tanh(), c

    def step(self, observation, state):
        """What choices and values are made of, ``[batch, features_dim]``, attention, and the next state."""
        config, batch = self.config, len(observation)
        height, width, _ = config["view"]
        # 1. The vision core: convolutions, and a ConvLSTM. Pictures of a stack become channels.
        x = observation.float() * (config["pixel_scale"] / 255)
        x = x.reshape(batch, -1, height, width, x.shape[-1]).permute(0, 2, 3, 1, 4).flatten(3)
        for i in range(1, len(config["convolutions"]) + 1):
            x = getattr(self, f"vision_conv{i}")(x).relu()
        x = normalise(x, [1, 2]) if config["normalise"] else x
        peepholes = self.vision_peephole.weight if config["peepholes"] else None
        sums = self.vision_input(x) + self.vision_state(state["vision_h"])
        h, c = self._gates(sums, state["vision_c"], peepholes)
        seen, basis = h.flatten(1, 2), self.basis.expand(batch, -1, -1)
        contents, values = seen[..., : config["keys"]], torch.cat([seen[..., config["keys"] :], basis], 2)
        # 2. Queries from the state before this step.
        if config["attention"] == "top-down":
            queries = self.query(self._through("query", len(config["query_hidden"]), state["core_h"]))
        elif config["attention"] == "fixed-query":
            queries = self.query.value.expand(batch, -1)
        else:
            queries = seen.new_zeros(batch, 0)
        # 3. Answers.
        if config["attention"] == "key-norms":
            groups = contents.unflatten(2, (config["heads"], -1))
            scores = ((groups * groups).sum(3) + 1e-12).sqrt().transpose(1, 2)
        else:
            keys = torch.cat([contents, basis], 2)
            scores = queries.unflatten(1, (config["heads"], -1)) @ keys.transpose(1, 2) * config["score_scale"]
        weights = scores.softmax(-1)
        answers = (weights @ values).flatten(1)
        # 4. The LSTM, which acts and estimates values.
        reward = state["reward"].clamp(-config["reward_clip"], config["reward_clip"]).unsqueeze(1)
        last = (state["choice"].unsqueeze(1) == torch.arange(config["actions"], device=x.device)).float()
        x = torch.cat([answers, queries, reward, last], 1)
        x = self._through("answer", len(config["answer_hidden"]), x, config["answer_relu"])
        sums = self.core_input(x) + self.core_state(state["core_h"])
        core_h, core_c = self._gates(sums, state["core_c"])
        following = {"vision_h": h, "vision_c": c, "core_h": core_h, "core_c": core_c}
        return self._through("trunk", int(config["trunk"] > 0), core_h), weights, following

    def forward(self, observation, state=None):
        """A score for each choice, attention, and the next state."""
        x, weights, following = self.step(observation, state or self.initial_state(len(observation)))
        scores = self.policy(x)
        following |= {"reward": scores.new_zeros(len(scores)), "choice": scores.argmax(-1)}
        return scores, weights, following
