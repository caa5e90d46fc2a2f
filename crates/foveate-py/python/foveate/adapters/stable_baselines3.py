"""Algorithms of Stable-Baselines3 and its contributions, recurrent ones with their state."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from ..jobs import Function


def fits(model: Any, known: set[str]) -> bool:
    return "stable_baselines3.BaseAlgorithm" in known or "stable_baselines3.BasePolicy" in known


class _Asked:
    """A policy with the state of its recurrent layers."""

    def __init__(self, policy: Any) -> None:
        self.policy = policy
        self.state: Any = None
        self.begins = True
        self.recurrent = hasattr(policy, "lstm_actor")

    def reset(self) -> None:
        self.state, self.begins = None, True

    def get_state(self) -> Any:
        return self.state, self.begins

    def set_state(self, state: Any) -> None:
        self.state, self.begins = state

    def __call__(self, seen: Any) -> Any:
        if self.recurrent:
            action, after = self.policy.predict(seen, self.state, np.array([self.begins]), deterministic=True)
            scores = self._recurrent_scores(seen)
            self.state, self.begins = after, False
            return action if scores is None else scores
        scores = self._scores(seen)
        return self.policy.predict(seen, deterministic=True)[0] if scores is None else scores

    def _recurrent_scores(self, seen: Any) -> Any:
        """Logarithms of probabilities of choices with the present state; ``None`` of other actions."""
        policy = self.policy
        if type(policy.action_space).__name__ != "Discrete" or not hasattr(policy, "lstm_hidden_state_shape"):
            return None
        import torch

        layers, _, width = policy.lstm_hidden_state_shape
        parts = [np.zeros((layers, 1, width), np.float32)] * 2 if self.state is None else self.state
        with torch.no_grad():
            shown, _ = policy.obs_to_tensor(seen)
            state = tuple(torch.as_tensor(part, device=policy.device) for part in parts)
            begins = torch.tensor([float(self.begins)], device=policy.device)
            return policy.get_distribution(shown, state, begins)[0].distribution.logits[0].cpu().numpy()

    def _scores(self, seen: Any) -> Any:
        """Logarithms of probabilities, or values, of choices; ``None`` of other actions."""
        policy = self.policy
        if type(policy.action_space).__name__ != "Discrete":
            return None
        import torch

        policy.set_training_mode(False)
        with torch.no_grad():
            shown, _ = policy.obs_to_tensor(seen)
            if hasattr(policy, "q_net"):
                return policy.q_net(shown)[0].cpu().numpy()
            if hasattr(policy, "quantile_net"):
                return policy.quantile_net(shown).mean(dim=1)[0].cpu().numpy()
            if hasattr(policy, "get_distribution"):
                return policy.get_distribution(shown).distribution.logits[0].cpu().numpy()
        return None


def function(model: Any) -> Function:
    from ..jobs import Function

    policy = getattr(model, "policy", model)
    asked = _Asked(policy)
    name = type(model).__name__
    if asked.recurrent:
        return Function(asked, reset=asked.reset, get_state=asked.get_state, set_state=asked.set_state, module=policy, name=name)
    return Function(asked, module=policy, name=name)
