"""IAP (Choromanski et al. 2021, "Unlocking Pixels for Reinforcement Learning via Implicit Attention").

Patches vote in linear time; a controller of any kind is told about the most important ones, and acts.
"""

from foveate.torch._agent import nn, one_hot_of_largest, torch
from foveate.torch._bottleneck import Bottleneck


class ImplicitAttention(Bottleneck):
    """Pictures as bytes, ``[batch, row, column, 3]``, to actions; attention is the votes, ``[batch, patches]``.

    With ``depth`` or ``sensors`` in its configuration it takes a dict with ``"image"``, ``"depth"`` and ``"sensors"``.
    """

    name = "iap"
    defaults = {
        "image": [96, 96],
        "depth": False,
        "sensors": 0,
        "patch": 7,
        "stride": 4,
        "query_dim": 4,
        "top_k": 10,
        "scale": "sqrt_d",
        "voting": {"kernel": "relu"},
        "aggregation": "ones",
        "selection": "best",
        "values": {"centre": True},
        "last_action": "none",
        "controller": {"kind": "lstm", "hidden": 16},
        "actions": [[-1.0, 1.0], [0.0, 1.0], [0.0, 1.0]],
    }

    def __init__(self, config=None, fixed=None):
        super().__init__(config, fixed)
        actions, controller = len(self.config["actions"]), self.config["controller"]
        width = self.features_dim + self.config["sensors"] + (actions if self.config["last_action"] != "none" else 0)
        self.hidden = controller.get("hidden", []) if controller["kind"] == "mlp" else []
        for i, units in enumerate(self.hidden):
            setattr(self, f"hidden{i}", nn.Linear(width, units))
            width = units
        if controller["kind"] == "lstm":
            self.lstm = nn.LSTMCell(width, controller["hidden"])
            width = controller["hidden"]
        self.output = nn.Linear(width, actions)

    def state_shapes(self):
        """h and c of an LSTM; what is told about the action before."""
        controller, state = self.config["controller"], {}
        if controller["kind"] == "lstm":
            state |= {"h": [controller["hidden"]], "c": [controller["hidden"]]}
        if self.config["last_action"] != "none":
            state["before"] = [len(self.config["actions"])]
        return state

    def forward(self, observation, state=None):
        """The actions in the world's units, the votes for each patch, and the next state."""
        parts = observation if isinstance(observation, dict) else {"image": observation}
        state = state or self.initial_state(len(parts["image"]))
        votes, _, x = self.look(parts["image"], parts["depth"] if self.config["depth"] else None)
        if self.config["sensors"]:
            x = torch.cat([x, parts["sensors"]], -1)
        if "before" in state:
            x = torch.cat([x, state["before"]], -1)
        following = {}
        for i in range(len(self.hidden)):
            x = getattr(self, f"hidden{i}")(x).tanh()
        if "h" in state:
            x, c = self.lstm(x, (state["h"], state["c"]))
            following |= {"h": x, "c": c}
        raw = self.output(x).tanh()
        if "before" in state:
            following["before"] = raw if self.config["last_action"] == "values" else one_hot_of_largest(raw)
        return self.in_units(raw), votes, following
