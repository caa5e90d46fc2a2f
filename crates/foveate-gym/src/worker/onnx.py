class OnnxModel:
    """A session of onnxruntime as a policy: a batch of one observation in, an action or a score for each choice out.

    Inputs beyond the observation are a state: each is given what the output of its name returned, with `_out` in place of `_in`, or
    with `new_` or `next_` before it, and zeros at the beginning of an episode. The action is the output called `action`, `actions`,
    `scores` or `logits`, else the first that is no state. `refused` is what is raised for a model that is no policy."""

    ACTIONS = ("action", "actions", "scores", "logits")
    TYPES = {
        "tensor(float)": "f4",
        "tensor(double)": "f8",
        "tensor(float16)": "f2",
        "tensor(uint8)": "u1",
        "tensor(int32)": "i4",
        "tensor(int64)": "i8",
        "tensor(bool)": "?",
    }

    def __init__(self, session, numpy, refused):
        self.session, self.np, self.refused = session, numpy, refused
        outputs = [output.name for output in session.get_outputs()]
        # From the name of a state that goes in to that of the one that comes out.
        self.states = {}
        self.seen = []
        for given in session.get_inputs():
            name = given.name
            after = [name.replace("_in", "_out"), "new_" + name, "next_" + name, name + "_out", name + "_next", name + "n"]
            found = next((other for other in after if other in outputs and other != name), name if name in outputs else None)
            if found is None:
                self.seen.append(given)
            else:
                self.states[name] = (given, found)
        actions = [name for name in outputs if name not in {found for _, found in self.states.values()}]
        if not self.seen or not actions:
            raise refused(
                "the ONNX model has the inputs %s and the outputs %s; an observation goes in and an action comes out"
                % ([given.name for given in session.get_inputs()], outputs)
            )
        self.action = next((name for name in self.ACTIONS if name in actions), actions[0])
        self.reset()

    def reset(self):
        # Zeros, as soon as what is seen says of which shape.
        self.state = {}

    def zeros(self, sizes=()):
        """A state at the beginning of an episode; `sizes` are those of dimensions that have a name."""
        sizes = dict(sizes)
        shape = lambda given: [size if isinstance(size, int) else sizes.get(size, 1) for size in given.shape]  # noqa: E731
        return {name: self.np.zeros(shape(given), self.type(given)) for name, (given, _) in self.states.items()}

    def type(self, given):
        if given.type not in self.TYPES:
            raise self.refused(
                "the input %r of the ONNX model is a %s; %s are given" % (given.name, given.type, ", ".join(self.TYPES))
            )
        return self.np.dtype(self.TYPES[given.type])

    def get_state(self):
        return self.state

    def set_state(self, state):
        self.state = state

    def feed(self, seen):
        """What is fed of an observation, whether its first dimension is that of a batch, and the sizes of dimensions by name."""
        np = self.np
        parts = list(seen.items()) if isinstance(seen, dict) else [(self.seen[0].name, seen)]
        named = dict(parts)
        if len(self.seen) != len(parts) or (len(parts) > 1 and {given.name for given in self.seen} != set(named)):
            raise self.refused(
                "the ONNX model takes %s; the observation has %s"
                % ([given.name for given in self.seen], [name for name, _ in parts])
            )
        fed, batch, sizes = {}, False, {}
        for given in self.seen:
            array = np.asarray(named[given.name] if len(parts) > 1 else parts[0][1])
            batch = len(given.shape) != array.ndim
            fed[given.name] = array = (array[None] if batch else array).astype(self.type(given))
            sizes.update((name, size) for name, size in zip(given.shape, array.shape) if isinstance(name, str))
        return fed, batch, sizes

    def __call__(self, seen):
        fed, batch, sizes = self.feed(seen)
        fed.update(self.state or self.zeros(sizes))
        states = [found for _, found in self.states.values()]
        action, *new = self.session.run([self.action] + states, fed)
        self.state = dict(zip(self.states, new))
        return action[0] if batch else action


