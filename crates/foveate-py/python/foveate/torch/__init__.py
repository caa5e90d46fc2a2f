"""The agents as PyTorch modules, one class for each paper; PyTorch is imported when one is first used.

A module loads a file of weights, `AttentionAgent.load("agent.safetensors")`, and names its tensors as the file does. It decides for a
batch: `action, attention, state = agent(observation, state)`, where ``state`` is ``None`` at the start of episodes and a dict of
tensors, ``[batch, ...]``, after. ``action`` is in the world's units, or a score for each choice. `save` writes the weights for
Foveate. ``features`` are what the agent's controller is told, ``[batch, features_dim]``, for policies of other libraries::

    class Features(stable_baselines3.common.torch_layers.BaseFeaturesExtractor):
        def __init__(self, space):
            agent = foveate.torch.AttentionAgent({"image": [96, 96], "top_k": 10})
            super().__init__(space, agent.features_dim)
            self.agent = agent

        def forward(self, pictures):  # [batch, channel, row, column], from 0 to 1
            return self.agent.features(255 * pictures.permute(0, 2, 3, 1))
"""

import importlib
from typing import Any

_CLASSES = {
    "AttentionAgent": "attention_agent",
    "ImplicitAttention": "iap",
    "AttentionNeuron": "attention_neuron",
    "Relational": "relational",
    "S3ta": "s3ta",
}

__all__ = ["AttentionAgent", "AttentionNeuron", "ImplicitAttention", "Relational", "S3ta"]  # noqa: F822, made when used


def __getattr__(name: str) -> Any:
    if name not in _CLASSES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_CLASSES[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
