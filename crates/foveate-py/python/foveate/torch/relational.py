"""A relational module (Zambaldi et al. 2019, "Deep reinforcement learning with relational inductive biases").

Every cell of a grid is a node, nodes attend to each other, and the largest answer over all nodes values the actions.
"""

from foveate.torch._agent import Agent, Conv, Tensor, functional, math, nn, normalise, torch


class Relational(Agent):
    """Grids as codes, ``[batch, row, column, code]``, to a score for each choice; attention is ``[batch, head, node, node]``.

    Of a value ``temperature`` above 0, Foveate draws the choice from the softmax of the scores divided by it.
    """

    name = "relational"
    sorts = False
    defaults = {
        "view": [7, 7],
        "channels": 3,
        "actions": 5,
        "filters": [16, 20],
        "heads": 3,
        "head_dim": 64,
        "scores": "indices",
        "score_dim": 49,
        "features": 64,
        "elu_output": True,
        "divisor": "ten",
        "temperature": 0.0,
        "critic": False,
    }

    def __init__(self, config=None, fixed=None):
        super().__init__(config, fixed)
        config = self.config
        heads, width, nodes = config["heads"], config["head_dim"], config["view"][0] * config["view"][1]
        self.conv1 = Conv(config["channels"], config["filters"][0], 1)
        self.conv2 = Conv(*config["filters"], 1)
        for name in ("query", "key", "value"):
            setattr(self, name, nn.Linear(config["filters"][1] + 2, heads * width))
            setattr(self, f"{name}_norm", Tensor(scale=[heads, nodes, width], shift=[heads, nodes, width]))
        if config["scores"] != "products":
            pairs = config["scores"] == "pairs"
            hidden = config["score_dim"] if pairs else nodes
            self.score_query = nn.Linear(width, hidden)
            self.score_key = nn.Linear(width, hidden, bias=not pairs)
            self.score = nn.Linear(hidden, 1 if pairs else nodes, bias=not pairs)
        self.linear1 = nn.Linear(heads * width, config["features"])
        self.linear2 = nn.Linear(config["features"], config["actions"])
        if config["critic"]:
            self.critic = nn.Linear(config["features"], 1)
        rows, columns = config["view"]
        place = torch.arange(nodes)
        places = torch.stack([place % columns / columns, torch.div(place, columns, rounding_mode="floor") / rows], 1)
        self.register_buffer("places", places.float(), persistent=False)
        self.features_dim = config["features"]

    def attend(self, grid):
        """The largest answers, ``[batch, features_dim]``, and attention."""
        config, x = self.config, grid.float()
        if config["divisor"] == "largest":
            x = x / x.flatten(1).max(1).values.clamp_min(1).reshape(-1, 1, 1, 1)
        else:
            x = x / {"ten": 10, "one": 1}[config["divisor"]]
        # 1. Features of every cell, with its place, make queries, keys and values, [batch, head, node, number].
        x = self.conv2(self.conv1(x).relu()).relu().flatten(1, 2)
        x = torch.cat([x, self.places.expand(len(x), -1, -1)], 2)
        query, key, value = (self._project(name, x) for name in ("query", "key", "value"))
        # 2. Answers of all nodes.
        if config["scores"] == "products":
            scores = query @ key.transpose(2, 3) / math.sqrt(config["head_dim"])
        elif config["scores"] == "pairs":
            sums = self.score_query(query).unsqueeze(3) + self.score_key(key).unsqueeze(2)
            scores = self.score(functional.elu(sums)).squeeze(-1)
        else:
            scores = self.score(functional.elu(self.score_query(query) + self.score_key(key)))
        weights = scores.softmax(-1)
        answers = (weights @ value).transpose(1, 2).flatten(2)
        # 3. The largest answer over all nodes.
        return normalise(self.linear1(answers).relu(), [1, 2]).max(1).values, weights

    def _project(self, name, x):
        norm = getattr(self, f"{name}_norm")
        all_heads = getattr(self, name)(x).unflatten(2, (self.config["heads"], -1)).transpose(1, 2)
        return normalise(all_heads, [1, 2, 3]) * norm.scale + norm.shift

    def features(self, grid):
        """The largest answers over all nodes, ``[batch, features_dim]``."""
        return self.attend(grid)[0]

    def value_of(self, grid):
        """The value of states, ``[batch, 1]``, of an agent with a critic."""
        return self.critic(self.features(grid))

    def forward(self, observation, state=None):
        """A score for each choice, attention, and the state, which is empty."""
        x, weights = self.attend(observation)
        scores = self.linear2(x)
        return functional.elu(scores) if self.config["elu_output"] else scores, weights, {}
