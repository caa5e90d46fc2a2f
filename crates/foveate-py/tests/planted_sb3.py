"""A policy of Stable-Baselines3 whose truth is known, and Captum's methods, for `test_claims.py`: a program for a Python with PyTorch.

    python planted_sb3.py captum|numbers-upper|choices-lower|... FOLDER [PATH ...]

It prints its findings as JSON. The paths are searched last, for packages of pure Python that the Python with PyTorch lacks.
"""

import json
import sys
import types

sys.path.extend(sys.argv[3:])
sys.dont_write_bytecode = True

import gymnasium
import numpy as np
from gymnasium import spaces

#: The first row of each light, which has eight.
ROWS = {"upper": 0, "lower": 24}


class Lights(gymnasium.Env):
    """A picture of noise over which two lights move, each in rows of its own."""

    observation_space = spaces.Box(0, 255, (64, 64, 1), np.uint8)

    def __init__(self, choices=False):
        self.action_space = spaces.Discrete(2) if choices else spaces.Box(-1, 1, (1,), np.float32)

    def seen(self):
        picture = self.np_random.integers(1, 40, (64, 64, 1), np.uint8)
        for row, column in zip(ROWS.values(), self.at):
            picture[row : row + 8, column : column + 8] = 255
        return picture

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.at, self.steps = self.np_random.integers(0, 41, 2), 0
        return self.seen(), {}

    def step(self, action):
        self.at = np.clip(self.at + self.np_random.integers(-6, 7, 2), 0, 40)
        self.steps += 1
        return self.seen(), float(np.sum(action)), False, self.steps >= 30, {}


def planted(choices=False, light="upper"):
    """PPO with the layers of `CnnPolicy`, whose action depends on the place of one light and on nothing else.

    The first convolution measures the brightness of blocks of 8 x 8 pixels; the others copy it for every second block.
    """
    import torch
    from stable_baselines3 import PPO

    model = PPO("CnnPolicy", Lights(choices), n_steps=8, batch_size=8, seed=1, device="cpu")
    policy = model.policy
    first, second, third = policy.features_extractor.cnn[0], policy.features_extractor.cnn[2], policy.features_extractor.cnn[4]
    linear, action = policy.features_extractor.linear[0], policy.action_net
    with torch.no_grad():
        for layer in (first, second, third, linear, action):
            layer.weight.zero_()
            layer.bias.zero_()
        first.weight[0] = 1 / 64  # of 15 x 15 blocks, 4 pixels apart
        second.weight[0, 0, 0, 0] = 1  # of 6 x 6 blocks, 8 pixels apart
        for channel in range(3):
            third.weight[channel, 0, 0, channel] = 1  # of 4 x 4 blocks, and those one and two further right
        for column in range(6):
            place = (min(column, 2), ROWS[light] // 8, column - min(column, 2))
            linear.weight[column, np.ravel_multi_index(place, (64, 4, 4))] = 1
            action.weight[0, column] = (column - 2.5) / 2.5
        if choices:
            action.weight[1] = -action.weight[0]
            action.weight *= 3
    return model


def rows(light):
    """A map of the rows of a light."""
    weights = np.zeros((8, 8))
    weights[ROWS[light] // 8] = 1
    return weights


def verdict(folder, choices, light):
    import foveate

    model = planted(choices, light)
    claims = {
        "upper": lambda _: rows("upper"),
        "lower": lambda _: rows("lower"),
        "gradients": foveate.claims.gradients(model),
        "integrated": foveate.claims.integrated_gradients(model),
        "grad_cam": foveate.claims.grad_cam(model),
    }
    report = foveate.explain(
        model, Lights(choices), claims=claims, out=folder, untrained=0, episodes=10, decisions=3, workers=1, progress=False
    )
    numbers = {line["claim"]: line.get("number") for line in report.verdict if line["question"] == "right"}
    return {"answers": [[line["question"], line["claim"], line["answer"]] for line in report.verdict], "numbers": numbers}


def captum(folder):
    """How far Captum's Saliency and IntegratedGradients are from ours, as shares of the greatest weight; without Captum, a stand-in."""
    import torch
    from foveate import claims
    from foveate.errors import OptionError
    from stable_baselines3 import SAC

    try:
        import captum.attr as attr
    except ImportError:
        attr = sys.modules["captum.attr"] = _stand_in(torch)
        sys.modules["captum"] = types.ModuleType("captum")
    found = {"errors": {}}
    seen = np.random.default_rng(1).integers(0, 256, (5, 64, 64, 1)).astype(np.uint8)
    for kind, choices in [("choices", True), ("numbers", False)]:
        model = planted(choices)
        pairs = {
            "Saliency": (claims.captum(model, "Saliency"), claims.gradients(model)),
            "IntegratedGradients": (claims.captum(model, method="riemann_middle", n_steps=16), claims.integrated_gradients(model)),
        }
        for name, (one, other) in pairs.items():
            one, other = np.stack(one(seen)), np.stack(other(seen))
            assert one.shape == (5, 64, 64) and other.max() > 0
            found[f"{name} of {kind}"] = float(np.abs(one - other).max() / other.max())
    asked = claims.gradients(SAC("CnnPolicy", Lights(), buffer_size=10, seed=1, device="cpu"))
    found["SAC asked twice"] = float(np.abs(np.stack(asked(seen)) - np.stack(asked(seen))).max())
    both = {"numbers": np.ones((3, 2), np.float32), "picture": np.ones((3, 4, 4), np.float32)}
    found["parts"] = {part: np.shape(weights) for part, weights in claims.captum(sums(torch), "Saliency")(both)[0].items()}
    found["rows"] = np.shape(claims.attention(rows_of_numbers(torch), "weights")(np.ones((3, 7, 5), np.float32)))
    attr.Fails = type("Fails", (attr.Saliency,), {"attribute": lambda self, inputs, target: 1 / 0})
    calls = {
        "Salience": lambda: claims.captum(model, "Salience"),
        "os": lambda: claims.captum(model, "os"),
        "Fails": lambda: claims.captum(model, "Fails")(seen),
        "option": lambda: claims.captum(model, "Saliency", nonsense=1)(seen),
        "model": lambda: claims.captum(3, "Saliency"),
    }
    for name, call in calls.items():
        try:
            call()
        except OptionError as error:
            found["errors"][name] = str(error)
    return found


def sums(torch):
    """A module for observations of two parts."""

    class Sums(torch.nn.Module):
        def forward(self, seen):
            return torch.stack([seen["numbers"].sum(dim=1), seen["picture"].sum(dim=(1, 2))], dim=1)

    return Sums()


def rows_of_numbers(torch):
    """A module that attends to rows of numbers, as those of the vehicles on a road."""

    class Rows(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.weights = torch.nn.Softmax(dim=-1)

        def forward(self, seen):
            return (self.weights(seen[:, None, :, 0]) @ seen)[:, 0]

    return Rows()


def _stand_in(torch):
    """`captum.attr` with two of its methods, as its papers define them."""
    attr = types.ModuleType("captum.attr")

    class Saliency:
        def __init__(self, forward_func):
            self.forward_func = forward_func

        def attribute(self, inputs, target):
            return tuple(gradient.abs() for gradient in self.gradients(inputs, target))

        def gradients(self, inputs, target):
            scores = self.forward_func(*inputs)
            rows = torch.arange(len(scores))
            return torch.autograd.grad(scores[rows, target].sum(), inputs, allow_unused=False)

    class IntegratedGradients(Saliency):
        def attribute(self, inputs, target, n_steps=50, method="gausslegendre"):
            assert method == "riemann_middle"
            shares = [(step + 0.5) / n_steps for step in range(n_steps)]
            all_ = [self.gradients(tuple((one.detach() * share).requires_grad_() for one in inputs), target) for share in shares]
            return tuple(sum(part) / n_steps * one.detach() for part, one in zip(zip(*all_), inputs))

    attr.Saliency, attr.IntegratedGradients = Saliency, IntegratedGradients
    return attr


def main():
    import torch

    torch.set_num_threads(1)
    what, folder = sys.argv[1:3]
    if what == "captum":
        found = captum(folder)
    else:
        action, light = what.split("-")
        found = verdict(folder, action == "choices", light)
    print(json.dumps(found))


if __name__ == "__main__":
    main()
