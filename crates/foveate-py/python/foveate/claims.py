"""Claims of what matters to a torch model, by the methods in use, for `explain(claims={...})`.

``model`` is an algorithm of Stable-Baselines3 or a torch module that takes a batch of observations. Claims take observations stacked
along a first axis. The score of the best choice is explained, of other actions every number.

Sources: input gradients (Simonyan et al. 2014, arXiv:1312.6034), integrated gradients (Sundararajan et al. 2017, arXiv:1703.01365),
Grad-CAM (Selvaraju et al. 2017, arXiv:1610.02391).
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np
import numpy.typing as npt

from .adapters import classes, stable_baselines3
from .errors import OptionError
from .jobs import batched

__all__ = ["attention", "captum", "grad_cam", "gradients", "integrated_gradients"]

Claim = Callable[[Any], Any]


class _Network:
    """A model as gradients need it: tensors of observations in, scores out."""

    def __init__(self, model: Any) -> None:
        known = classes(model)
        policy = getattr(model, "policy", model) if stable_baselines3.fits(model, known) else None
        self.module = policy if policy is not None else model
        if not callable(getattr(self.module, "named_modules", None)):
            raise OptionError(f"{type(model).__name__} is no torch module and no algorithm of Stable-Baselines3, which gradients need")
        self.policy = policy
        self.module.train(False)

    def tensors(self, seen: Any) -> Any:
        """Floating-point tensors ``[batch, …]`` that gradients reach."""
        import torch

        if self.policy is not None:
            made = self.policy.obs_to_tensor(seen)[0]
        else:
            device = next((parameter.device for parameter in self.module.parameters()), "cpu")
            made = _each(lambda array: torch.as_tensor(np.asarray(array), device=device), seen)
        return _each(lambda tensor: tensor.detach().float().requires_grad_(), made)

    def scores(self, tensors: Any) -> Any:
        """``[batch, outputs]``."""
        policy = self.policy
        if policy is None:
            given = self.module(tensors)
            while isinstance(given, (tuple, list)):
                given = given[0]
            return given.reshape(len(given), -1)
        for name in ("q_net", "quantile_net"):
            if hasattr(policy, name):
                values = getattr(policy, name)(tensors)
                return values if values.ndim == 2 else values.mean(dim=1)
        if hasattr(policy, "get_distribution"):
            distribution = policy.get_distribution(tensors).distribution
            return distribution.logits if hasattr(distribution, "logits") else distribution.mean
        return policy._predict(tensors, deterministic=True)

    def targets(self, scores: Any) -> list[Any]:
        """The columns of the scores that are explained: the best of each observation ``[batch]``, or every number of an action."""
        space = getattr(self.policy, "action_space", None)
        if type(space).__name__ == "Box" or scores.shape[1] == 1:
            return list(range(scores.shape[1]))
        return [scores.argmax(dim=1)]

    def explained(self, scores: Any, targets: list[Any] | None = None) -> list[Any]:
        """The scores of the targets, each ``[batch]``; without any, of those of these scores."""
        rows = list(range(len(scores)))
        return [scores[rows, target] for target in (self.targets(scores) if targets is None else targets)]


def _each(function: Callable[[Any], Any], seen: Any) -> Any:
    if isinstance(seen, dict):
        return {name: _each(function, part) for name, part in seen.items()}
    if isinstance(seen, tuple):
        return tuple(_each(function, part) for part in seen)
    return function(seen)


def _leaves(tensors: Any) -> list[Any]:
    if isinstance(tensors, dict):
        return [leaf for part in tensors.values() for leaf in _leaves(part)]
    if isinstance(tensors, tuple):
        return [leaf for part in tensors for leaf in _leaves(part)]
    return [tensors]


def _map(weights: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Weights of one part of one observation, without channels and frames."""
    if weights.ndim < 3:
        return weights
    if weights.ndim == 4:
        weights = weights.sum(axis=0)
    return weights.sum(axis=int(np.argmin(weights.shape)))


def _maps(weights: Any, count: int) -> list[Any]:
    """A map for each of ``count`` observations."""

    def one(part: Any, i: int) -> Any:
        if isinstance(part, dict):
            return {name: one(inner, i) for name, inner in part.items()}
        if isinstance(part, tuple):
            return {str(number): one(inner, i) for number, inner in enumerate(part)}
        return _map(part[i])

    return [one(weights, i) for i in range(count)]


def _count(seen: Any) -> int:
    return len(_leaves(seen)[0])


def _gradients(network: _Network, tensors: Any) -> Any:
    """The root of the sum of squares, over what is explained, of the gradients."""
    import torch

    leaves = _leaves(tensors)
    explained = network.explained(network.scores(tensors))
    sums = [torch.zeros_like(leaf) for leaf in leaves]
    for i, score in enumerate(explained):
        more = i + 1 < len(explained)
        for total, gradient in zip(sums, torch.autograd.grad(score.sum(), leaves, retain_graph=more, allow_unused=True)):
            if gradient is not None:
                total += gradient**2
    found = iter(total.sqrt().cpu().double().numpy() for total in sums)
    return _each(lambda _: next(found), tensors)


def gradients(model: Any) -> Claim:
    """The size of the gradient with respect to the observation."""
    network = _Network(model)
    return batched(lambda seen: _maps(_gradients(network, network.tensors(seen)), _count(seen)))


def integrated_gradients(model: Any, steps: int = 16) -> Claim:
    """Gradients averaged on the way from an observation of zeros, times the observation; of the score that is best at its end."""
    import torch

    network = _Network(model)

    def claim(seen: Any) -> list[Any]:
        whole = network.tensors(seen)
        with torch.no_grad():
            targets = network.targets(network.scores(whole))
        sums: list[Any] = []
        for step in range(steps):
            share = (step + 0.5) / steps
            part = _each(lambda tensor: (share * tensor.detach()).requires_grad_(), whole)
            leaves = _leaves(part)
            found = [
                torch.autograd.grad(score.sum(), leaves, retain_graph=True, allow_unused=True)
                for score in network.explained(network.scores(part), targets)
            ]
            found = [[torch.zeros_like(leaf) if one is None else one for leaf, one in zip(leaves, of)] for of in found]
            sums = found if not sums else [[a + b for a, b in zip(x, y)] for x, y in zip(sums, found)]
        leaves = _leaves(whole)
        sizes = [sum((of[i] * leaf.detach() / steps) ** 2 for of in sums).sqrt() for i, leaf in enumerate(leaves)]
        found_sizes = iter(size.cpu().double().numpy() for size in sizes)
        return _maps(_each(lambda _: next(found_sizes), whole), _count(seen))

    return batched(claim)


def captum(model: Any, name: str = "IntegratedGradients", **arguments: Any) -> Claim:
    """The size of what a class of `captum.attr` attributes, such as ``"Occlusion"``, whose ``attribute`` takes the arguments."""
    try:
        kind = getattr(import_module("captum.attr"), name, None)
    except ImportError as error:
        raise OptionError('this claim needs Captum: pip install "foveate[captum]"') from error
    if not callable(getattr(kind, "attribute", None)):
        raise OptionError(f"captum.attr has no method {name!r}; it has Saliency, IntegratedGradients, DeepLift, Occlusion and others")
    import torch

    network = _Network(model)

    class Scores(torch.nn.Module):
        """The model as Captum calls it: a tensor for each part of an observation goes in."""

        def __init__(self, structure: Any) -> None:
            super().__init__()
            self.module, self.structure = network.module, structure

        def forward(self, *parts: Any) -> Any:
            left = iter(parts)
            return network.scores(_each(lambda _: next(left), self.structure))

    def claim(seen: Any) -> list[Any]:
        tensors = network.tensors(seen)
        leaves = tuple(_leaves(tensors))
        with torch.no_grad():
            targets = network.targets(network.scores(tensors))
        try:
            asked = kind(Scores(_each(lambda _: None, tensors)))
            found = [asked.attribute(leaves, target=target, **arguments) for target in targets]
            sizes = iter(sum(of[i].detach() ** 2 for of in found).sqrt().cpu().double().numpy() for i in range(len(leaves)))
            return _maps(_each(lambda _: next(sizes), tensors), _count(seen))
        except Exception as error:
            said = " ".join(str(error).split())
            raise OptionError(f"Captum's {name} failed with {type(error).__name__}: {said}") from error

    return batched(claim)


def _layers(network: _Network, name: str | None, kind: str, wanted: str) -> list[tuple[str, Any]]:
    """The layer of this name, or all of this kind."""
    layers = dict(network.module.named_modules())
    if name is not None:
        if name not in layers:
            raise OptionError(f"the model has no layer {name!r}; its layers are {', '.join(filter(None, layers))}")
        return [(name, layers[name])]
    found = [(name, layer) for name, layer in layers.items() if f"torch.{kind}" in classes(layer)]
    if not found:
        raise OptionError(f"the model has no {wanted}; its layers are {', '.join(filter(None, layers))}")
    return found


def grad_cam(model: Any, layer: str | None = None) -> Claim:
    """Grad-CAM of a convolution, by default the last that is asked: ``[rows, columns]`` of its features."""
    import torch

    network = _Network(model)
    layers = _layers(network, layer, "Conv2d", "convolution")

    def claim(seen: Any) -> list[Any]:
        kept: list[Any] = []
        hooks = [one.register_forward_hook(lambda _module, _given, out: kept.append(out)) for _, one in layers]
        try:
            scores = network.explained(network.scores(network.tensors(seen)))
        finally:
            for hook in hooks:
                hook.remove()
        if not kept or not hasattr(kept[-1], "ndim") or kept[-1].ndim != 4:
            shape = list(kept[-1].shape) if kept and hasattr(kept[-1], "shape") else "nothing"
            raise OptionError(f"the layer {layers[-1][0]!r} gives {shape}; Grad-CAM needs features [batch, channels, rows, columns]")
        features, total = kept[-1], 0.0
        for score in scores:
            (gradient,) = torch.autograd.grad(score.sum(), features, retain_graph=True)
            total = total + torch.relu((gradient.mean(dim=(2, 3), keepdim=True) * features).sum(dim=1))
        return list(total.detach().cpu().double().numpy())

    return batched(claim)


def attention(model: Any, layer: str | None = None, *, shape: tuple[int, ...] | None = None, skip: int = 0) -> Claim:
    """The attention weights of a layer, summed over heads and queries; by default of the last `torch.nn.MultiheadAttention` that is asked.

    Args:
        layer: its name in the model.
        shape: rows and columns that the tokens have in the picture; by default a square, or a weight for each number or row.
        skip: tokens before those, such as a class token.
    """
    network = _Network(model)
    layers = _layers(network, layer, "MultiheadAttention", "layer of attention; name one")
    name = layers[-1][0]

    def weights(seen: Any) -> Any:
        import torch

        kept: list[Any] = []

        def ask(_module: Any, args: Any, kwargs: Any) -> Any:
            return args, {**kwargs, "need_weights": True, "average_attn_weights": False}

        hooks = [one.register_forward_hook(lambda _module, _given, out: kept.append(out)) for _, one in layers]
        own = [one for _, one in layers if "torch.MultiheadAttention" in classes(one)]
        hooks.extend(one.register_forward_pre_hook(ask, with_kwargs=True) for one in own)
        try:
            with torch.no_grad():
                network.scores(network.tensors(seen))
        finally:
            for hook in hooks:
                hook.remove()
        if not kept:
            raise OptionError(f"the layer {name!r} was not asked for the model's action")
        outs = kept[-1] if isinstance(kept[-1], (tuple, list)) else [kept[-1]]
        for out in reversed(outs):
            if hasattr(out, "ndim") and out.ndim in (3, 4) and bool((out >= 0).all()) and bool(((out.sum(dim=-1) - 1).abs() < 1e-3).all()):
                return out.reshape(len(out), -1, out.shape[-1]).sum(dim=1).cpu().double().numpy()
        shapes = ", ".join(str(list(out.shape)) for out in outs if hasattr(out, "shape")) or "nothing"
        raise OptionError(f"the layer {name!r} gives {shapes}, no weights that add up to 1 over tokens; name the layer that does")

    def claim(seen: Any) -> list[Any]:
        rows = weights(seen)[:, skip:]
        count = rows.shape[1]
        wanted = shape
        first = _leaves(seen)[0]
        of_rows = first.ndim == 3 and first.shape[1] == count and first.dtype.kind == "f"
        if wanted is None and first.ndim > 2 and not of_rows:
            side = round(count**0.5)
            if side * side != count:
                raise OptionError(f"the layer {name!r} attends to {count} tokens, which are no square; give their shape=(rows, columns)")
            wanted = (side, side)
        if wanted is not None and int(np.prod(wanted)) != count:
            raise OptionError(f"the layer {name!r} attends to {count} tokens, not {' × '.join(map(str, wanted))}; see shape and skip")
        return list(rows if wanted is None else rows.reshape(len(rows), *wanted))

    return batched(claim)
