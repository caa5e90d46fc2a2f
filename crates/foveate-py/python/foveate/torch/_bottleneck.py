"""The bottleneck: patches vote, a few are selected, and a controller is told about these (Choromanski et al. 2021, equation 1)."""

from foveate.torch._agent import Agent, Conv, Tensor, functional, largest, math, nn, torch


def divisor(scale, inputs, width):
    """The divisor of queries times keys."""
    return {"sqrt_d_in": math.sqrt(inputs), "sqrt_d": math.sqrt(width), "one": 1.0}[scale]


def vote(query, key, divided_by, voting, projections=None, weights=None):
    """The votes for each patch, ``[batch, patches]``, from queries and keys, ``[batch, patches, width]``."""
    kernel, weights = voting["kernel"], None if weights is None else weights.to(query.dtype)
    if kernel == "softmax":
        return (query @ key.transpose(1, 2) / divided_by).softmax(-1).sum(1)
    query, key = query / math.sqrt(divided_by), key / math.sqrt(divided_by)
    if kernel == "softmax_kernel":
        if (length := voting.get("same_length")) is not None:
            tiny = torch.finfo(torch.float32).tiny
            query, key = (x / x.norm(dim=-1, keepdim=True).clamp_min(tiny) * length for x in (query, key))
        pairs = (query @ key.transpose(1, 2)).exp()
        return pairs.sum(2) if weights is None else pairs @ weights
    feature = {
        "relu": lambda x: x.relu() + voting.get("epsilon", 0.001),
        "exp": torch.exp,
        "elu": lambda x: functional.elu(x) + 1,
    }.get(kernel)
    if feature is None:
        raise ValueError(f'voting.kernel = "{kernel}" has no module; choose softmax, softmax_kernel, relu, exp or elu')
    count = 1
    if voting.get("features", 0) > 0:
        if projections is None:
            raise ValueError("votes by drawn projections need the file fixed.safetensors, which `foveate export` writes")
        projections = projections.to(query)
        count, query, key = len(projections), query @ projections.T, key @ projections.T
    query, key = feature(query), feature(key)
    sums = key.sum(1) if weights is None else (weights.unsqueeze(1) * key).sum(1)
    return (query @ sums.unsqueeze(2)).squeeze(2) / count


class Bottleneck(Agent):
    """An agent with a bottleneck; what it is told about the selected patches is in ``config["features"]``."""

    depth = False

    def __init__(self, config=None, fixed=None):
        super().__init__(config, fixed)
        config = self.config
        self.width, self.height = config["image"]
        self.patch, self.stride = config["patch"], config["stride"]
        self.columns = (self.width - self.patch) // self.stride + 1
        self.rows = (self.height - self.patch) // self.stride + 1
        self.voting = {"kernel": "softmax", **config.get("voting", {})}
        self.told = {"centre": True, **config.get("features", config.get("values", {}))}
        inputs = self.patch**2 * (4 if config.get("depth") else 3)
        self.query = nn.Linear(inputs, config["query_dim"])
        self.key = nn.Linear(inputs, config["query_dim"])
        self.divisor = divisor(config["scale"], inputs, config["query_dim"])
        if config.get("aggregation", "ones") == "learned":
            self.aggregation = Tensor(weight=[self.rows * self.columns])
        self.features_dim = self.config["top_k"] * self.features_of_a_patch()

    def features_of_a_patch(self):
        """Adds the layer for the features, if there is one; returns their number."""
        count = 2 * self.told["centre"] + 3 * self.told.get("colour", False)
        if histogram := self.told.get("histogram"):
            count += 3 * histogram["bins"]
        if conv := self.told.get("conv"):
            conv = {"filters": 2, "size": 3, "stride": 2, "evolved": True, **conv}
            layer = Conv(3, conv["filters"], conv["size"], conv["stride"])
            if conv["evolved"]:
                self.conv = layer
            elif "conv.weight" not in self.fixed:
                raise ValueError("a drawn convolution needs the file fixed.safetensors, which `foveate export` writes")
            else:
                layer.weight.data, layer.bias.data = self.fixed["conv.weight"], self.fixed["conv.bias"]
                # Not among the weights.
                self.drawn = [layer]
            count += conv["filters"] * ((self.patch - conv["size"]) // conv["stride"] + 1) ** 2
        return count

    def look(self, picture, depth=None):
        """Votes, ``[batch, patches]``, selected patches, ``[batch, top_k]``, and what is told about these, ``[batch, features_dim]``.

        A picture has numbers from 0 to 255, ``[batch, row, column, 3 or 1]``, or ``[batch, frame, row, column, 3 or 1]``.
        """
        rgb = picture.reshape(len(picture), self.height, self.width, -1).float()
        rgb = rgb.expand(-1, -1, -1, 3) if rgb.shape[-1] == 1 else rgb
        pixels = rgb if depth is None else torch.cat([rgb, depth.reshape(*rgb.shape[:3], 1).float()], -1)
        # Every patch as a row of numbers: row, pixel, channel.
        side, channels = self.patch, pixels.shape[-1]
        patches = functional.unfold(pixels.permute(0, 3, 1, 2) / 255, side, stride=self.stride).transpose(1, 2)
        patches = patches.unflatten(2, (channels, side * side)).transpose(2, 3).flatten(2)
        weights = self.aggregation.weight if hasattr(self, "aggregation") else None
        query, key = self.precisely(self.query, patches), self.precisely(self.key, patches)
        votes = vote(query, key, self.divisor, self.voting, self.fixed.get("projections"), weights).float()
        chosen = self.select(votes)
        colours = patches.unflatten(2, (side * side, channels))[..., :3]
        return votes, chosen, self.features_of(chosen, colours[torch.arange(len(votes)).unsqueeze(1), chosen])

    def select(self, votes):
        """The indices of the selected patches."""
        count, selection = self.config["top_k"], self.config.get("selection", "best")
        if selection == "best":
            return largest(votes, count)
        if selection == "best_in_place":
            return largest(votes, count).sort(-1).values
        if selection == "least":
            return largest(-votes, count)
        reach, place = (selection["apart"] - 1) // self.stride, torch.arange(votes.shape[1], device=votes.device)
        row, column = place // self.columns, place % self.columns
        free, untaken, chosen = votes.clone(), votes.clone(), []
        for _ in range(count):
            some = free.max(-1, keepdim=True).values > -math.inf
            at = largest(torch.where(some, free, untaken), 1)
            near = ((row - row[at]).abs() <= reach) & ((column - column[at]).abs() <= reach)
            free = free.masked_fill(near, -math.inf)
            untaken = untaken.masked_fill(place == at, -math.inf)
            chosen.append(at)
        return torch.cat(chosen, -1)

    def features_of(self, chosen, pixels):
        """What is told about patches ``[batch, top_k]`` of these pixels from 0 to 1, ``[batch, top_k, side * side, 3]``."""
        parts = []
        if self.told["centre"]:
            half = self.patch // 2
            y = (chosen // self.columns * self.stride + half).float() / self.height
            x = (chosen % self.columns * self.stride + half).float() / self.width
            parts.append(torch.stack([y, x], -1))
        if self.told.get("colour"):
            parts.append(pixels.mean(2))
        if histogram := self.told.get("histogram"):
            bins = histogram["bins"]
            which = ((255 * pixels).round() * bins / 256).floor()
            parts.append((which.unsqueeze(-1) == torch.arange(bins, device=which.device)).float().mean(2).flatten(2))
        if self.told.get("conv"):
            layer = self.conv if hasattr(self, "conv") else self.drawn[0]
            sums = layer(pixels.flatten(0, 1).unflatten(1, (self.patch, self.patch))).tanh()
            parts.append(sums.permute(0, 3, 1, 2).flatten(1).unflatten(0, chosen.shape))
        return torch.cat(parts, -1).flatten(1)

    def features(self, picture):
        """What the controller is told about the selected patches, ``[batch, features_dim]``."""
        return self.look(picture)[2]
