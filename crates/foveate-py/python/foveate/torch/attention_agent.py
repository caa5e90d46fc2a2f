"""AttentionAgent (Tang, Nguyen and Ha 2020, "Neuroevolution of Self-Interpretable Agents").

Patches of a picture vote for each other by softmax attention; an LSTM is told where the few most important ones are, and acts.
"""

from foveate.torch._agent import nn
from foveate.torch._bottleneck import Bottleneck


class AttentionAgent(Bottleneck):
    """Pictures as bytes, ``[batch, row, column, 3]``, to actions; attention is the votes, ``[batch, patches]``."""

    name = "attention-agent"
    defaults = {
        "image": [96, 96],
        "patch": 7,
        "stride": 4,
        "query_dim": 4,
        "top_k": 10,
        "scale": "sqrt_d_in",
        "hidden": 16,
        "actions": [[-1.0, 1.0], [0.0, 1.0], [0.0, 1.0]],
    }

    def __init__(self, config=None, fixed=None):
        super().__init__(config, fixed)
        hidden = self.config["hidden"]
        self.lstm = nn.LSTMCell(self.features_dim, hidden)
        self.output = nn.Linear(hidden, len(self.config["actions"]))

    def state_shapes(self):
        """h and c of the LSTM."""
        return {"h": [self.config["hidden"]], "c": [self.config["hidden"]]}

    def forward(self, observation, state=None):
        """The actions in the world's units, the votes for each patch, and the next state."""
        state = state or self.initial_state(len(observation))
        votes, _, told = self.look(observation)
        h, c = self.lstm(told, (state["h"], state["c"]))
        return self.in_units(self.output(h).tanh()), votes, {"h": h, "c": c}
