"""How an observation of Gymnasium's lies in the memory file, and back: part of the worker's program."""

# More pictures at once are numbers.
MOST_FRAMES = 64


class Eyes:
    """Writes observations to the memory file: first the pictures, `[frames, height, width, channels]` bytes, then their
    depth, `[height, width]` bytes, then the other numbers, `float32`.

    `drawn` is how large the pictures are that render() draws, if they take the place of those in the observation. With `whole`
    nothing is left out that `Original` needs: several pictures lie side by side, and so do stacks of others' layouts."""

    def __init__(self, gymnasium, numpy, space, wanted, drawn=None, whole=False):
        self.spaces, self.np, self.wanted, self.whole = gymnasium.spaces, numpy, wanted, whole
        self.size = drawn  # width, height
        self.frames, self.channels = 1, 3
        # Of each picture in the observation its left edge in the one that is shown, and its width and height.
        self.regions = []
        self.copies = []
        self.parts = [["render()", "picture", "%d x %d, rgb" % drawn]] if drawn else []
        self.left_out = []
        # Where the numbers of each part begin, and how many there are.
        self.spans = []
        self.numbers = 0
        self.depth = None
        self.plan(space, "", lambda whole: whole)
        if self.depth:
            title, find, part, size, layout = self.depth
            if size == self.size:
                self.copies.append(("depth", find, part, layout))
                self.parts.append([title, "depth", "%d x %d, %s" % (size + (layout,))])
            else:
                self.left_out.append([title, "a depth without its picture"])
                self.depth = None

    def plan(self, space, name, find):
        spaces, np = self.spaces, self.np
        title = name or "observation"
        if isinstance(space, spaces.Dict):
            for key, part in space.spaces.items():
                self.plan(part, "%s%s" % (name and name + ".", key), lambda whole, f=find, k=key: f(whole)[k])
        elif isinstance(space, spaces.Tuple):
            for index, part in enumerate(space.spaces):
                self.plan(part, "%s%s" % (name and name + ".", index), lambda whole, f=find, k=index: f(whole)[k])
        elif isinstance(space, spaces.Box):
            looks = self.looks(space)
            if looks and "depth" in title and looks[1].endswith("grey") and self.wanted != title:
                self.depth = (title, find, space, looks[0], looks[1])
            elif looks and self.size is None and self.wanted in (None, title):
                self.size = looks[0]
                self.frames = 1
                if looks[1].endswith("stack"):
                    self.frames = space.shape[2] if looks[1].endswith("last stack") else space.shape[0]
                self.channels = 1 if "grey" in looks[1] else 3
                self.regions.append((0,) + looks[0])
                self.copies.append(("picture", find, space, looks[1]))
                words = "%d x %d, %s" % (looks[0] + (looks[1],))
                self.parts.append([title, "picture", words + (" of %d" % self.frames if self.frames > 1 else "")])
            elif looks and self.wanted is None and self.whole and self.beside(looks):
                # Several cameras, side by side.
                (width, height), layout = looks
                self.regions.append((self.size[0], width, height))
                self.size = (self.size[0] + width, max(self.size[1], height))
                self.copies.append(("picture", find, space, layout))
                self.parts.append([title, "picture", "%d x %d, %s" % (width, height, layout)])
            elif looks and self.size is not None and not self.wanted == title:
                self.left_out.append([title, "a second picture"])
            elif looks:
                self.left_out.append([title, "not the picture that was asked for"])
            else:
                count = int(np.prod(space.shape))
                self.add(title, find, space, "numbers", count, "%d numbers, %s" % (count, space.dtype))
        elif isinstance(space, spaces.Discrete):
            self.add(title, find, space, "one", int(space.n), "one of %d, as %d numbers" % (space.n, space.n))
        elif isinstance(space, spaces.MultiDiscrete):
            counts = [int(n) for n in space.nvec.reshape(-1)]
            self.add(title, find, space, "several", sum(counts), "choices of %s, as %d numbers" % (counts, sum(counts)))
        elif isinstance(space, spaces.MultiBinary):
            count = int(np.prod(space.shape))
            self.add(title, find, space, "numbers", count, "%d bits" % count)
        else:
            self.left_out.append([title, type(space).__name__])

    def beside(self, looks):
        """Whether another picture fits beside those that are shown."""
        one = self.regions and self.frames == 1 and not looks[1].endswith("stack")
        return one and self.channels == (1 if "grey" in looks[1] else 3)

    def add(self, title, find, space, kind, count, words):
        self.copies.append((kind, find, space, (self.numbers, count)))
        self.parts.append([title, "numbers", words])
        self.spans.append([title, self.numbers, count])
        self.numbers += count

    def looks(self, space):
        """Width and height, and how the picture lies in memory, if it is one."""
        np, shape = self.np, space.shape
        if space.dtype == np.uint8:
            prefix = ""
        elif space.dtype.kind == "f" and np.all(space.low == 0) and np.all(space.high == 1):
            prefix = "unit "
        elif self.whole and space.dtype.kind == "f" and same(space.low) and same(space.high) and space.low.min() < space.high.max():
            prefix = "unit "
        else:
            return None
        if len(shape) == 2:
            size, layout = (shape[1], shape[0]), "grey"
        elif self.whole and len(shape) == 3 and (shape[2] == 2 or 3 < shape[2] <= MOST_FRAMES) and shape[0] >= 16:
            # Nothing may be left out, as alpha would be.
            size, layout = (shape[1], shape[0]), "grey last stack"
        elif len(shape) == 3 and shape[2] in (1, 3, 4):
            size, layout = (shape[1], shape[0]), {1: "grey", 3: "rgb", 4: "rgba"}[shape[2]]
        elif len(shape) == 3 and shape[0] in (1, 3):
            size, layout = (shape[2], shape[1]), {1: "grey first", 3: "rgb first"}[shape[0]]
        elif (self.whole or not prefix) and len(shape) == 3 and shape[0] <= MOST_FRAMES:
            # The last pictures, the oldest first, as Gymnasium's FrameStackObservation gives them.
            size, layout = (shape[2], shape[1]), "grey stack"
        elif (self.whole or not prefix) and len(shape) == 4 and shape[0] <= MOST_FRAMES and shape[3] in (1, 3):
            size, layout = (shape[2], shape[1]), {1: "grey stack", 3: "rgb stack"}[shape[3]]
        else:
            return None
        # Smaller ones are boards and symbols.
        return ((int(size[0]), int(size[1])), prefix + layout) if min(size) >= 16 else None

    def bytes(self):
        pixels = self.size[0] * self.size[1] if self.size else 0
        picture = pixels * (self.frames * self.channels + (1 if self.depth else 0))
        return (picture + 7) // 8 * 8, 4 * self.numbers

    def open(self, memory):
        """Maps the memory file; gives what writes an observation to it."""
        np = self.np
        at, more = self.bytes()
        total = max(at + more, 1)
        os.ftruncate(memory, total)
        self.map = mmap.mmap(memory, total)
        numbers = np.frombuffer(self.map, "<f4", self.numbers, at)
        writers = []
        regions = iter(self.regions)
        for kind, find, space, what in self.copies:
            if kind == "picture":
                width, height = self.size
                shape = (self.frames, height, width, self.channels)
                target = np.frombuffer(self.map, np.uint8, width * height * shape[0] * shape[3]).reshape(shape)
                target = target if what.endswith("stack") else target[0]
                if len(self.regions) > 1:
                    left, across, down = next(regions)
                    target = target[:down, left : left + across]
                writers.append((find, picture_writer(np, space, what, target)))
            elif kind == "depth":
                width, height = self.size
                target = np.frombuffer(self.map, np.uint8, width * height, width * height * self.frames * self.channels)
                target = target.reshape(height, width, 1)
                writers.append((find, picture_writer(np, space, what, target)))
            else:
                target = numbers[what[0] : what[0] + what[1]]
                writers.append((find, numbers_writer(np, kind, space, target)))
        if len(writers) == 1 and self.parts[0][0] == "observation":
            return writers[0][1]

        def write_all(whole):
            for find, write in writers:
                write(find(whole))

        return write_all


def same(bounds):
    """Whether all bounds are one finite number."""
    first = float(bounds.flat[0])
    return abs(first) < 1e30 and bool((bounds == first).all())


def picture_writer(np, space, layout, target):
    shape = space.shape
    unit, layout = layout.startswith("unit "), layout.replace("unit ", "")
    low, high = (float(space.low.flat[0]), float(space.high.flat[0])) if unit else (0.0, 1.0)
    copyto, ndarray, uint8 = np.copyto, np.ndarray, np.dtype(np.uint8)

    def arranged(picture):
        if picture.shape != shape:
            raise ValueError("the observation is a picture of shape %s; its space says %s" % (picture.shape, shape))
        if picture.dtype.kind == "f" and not np.isfinite(picture).all():
            raise Refusal("the picture in its observation has a NaN or an infinity; correct the environment")
        if unit:
            picture = np.rint((np.clip(picture, low, high) - low) * (255.0 / (high - low)))
        if layout.endswith("last stack"):
            picture = picture.transpose(2, 0, 1)
        if layout.endswith(" first"):
            picture = picture.transpose(1, 2, 0)
        if picture.ndim < target.ndim:
            picture = picture[..., None]
        return picture[..., :3]

    if layout in ("rgb", "rgb stack") and not unit:

        def write(picture):
            if type(picture) is ndarray and picture.shape == shape and picture.dtype == uint8:
                copyto(target, picture)
            else:
                copyto(target, arranged(np.asarray(picture)), "unsafe")

    else:

        def write(picture):
            copyto(target, arranged(np.asarray(picture)), "unsafe")

    return write


def numbers_writer(np, kind, space, target):
    shape = space.shape
    if kind == "numbers":
        target = target.reshape(shape)

        def write(value):
            value = np.asarray(value)
            if value.shape != shape:
                raise ValueError("a part of the observation has shape %s; its space says %s" % (value.shape, shape))
            np.copyto(target, value, "unsafe")

    elif kind == "one":
        start, count = int(space.start), int(space.n)

        def write(value):
            index = int(value) - start
            if not 0 <= index < count:
                raise ValueError("a part of the observation is %s; its space says %s" % (value, space))
            target[:] = 0.0
            target[index] = 1.0

    else:
        counts = space.nvec.reshape(-1)
        offsets = np.concatenate([[0], np.cumsum(counts)[:-1]])
        starts = np.asarray(getattr(space, "start", 0)).reshape(-1)

        def write(value):
            index = np.asarray(value).reshape(-1) - starts
            if index.shape != counts.shape or (index < 0).any() or (index >= counts).any():
                raise ValueError("a part of the observation is %s; its space says %s" % (value, space))
            target[:] = 0.0
            target[offsets + index] = 1.0

    return write


class Original:
    """The inverse of `Eyes` and `Hands`: the observation as an environment gives it, of what its world shows, and the action as its
    world takes it. `refused` is what is raised where that is not possible."""

    def __init__(self, gymnasium, numpy, observation_space, action_space, eyes, refused):
        self.spaces, self.np, self.eyes, self.refused = gymnasium.spaces, numpy, eyes, refused
        self.observation_space, self.action_space = observation_space, action_space
        titles = [title for title, _, _ in eyes.parts[len(eyes.parts) - len(eyes.copies) :]]
        edges = iter(eyes.regions)
        # Of each part by its name: kind, layout, region of the picture.
        self.parts = {}
        for title, (kind, _, _, what) in zip(titles, eyes.copies):
            self.parts[title] = (kind, what, next(edges) if kind == "picture" else None)

    def observation(self, shown):
        """The observation; `shown` is an array, or a dict of them by `image`, `depth` and `sensors`."""
        parts = shown if isinstance(shown, dict) else {"sensors" if self.eyes.size is None else "image": shown}
        numbers = len(parts["sensors"]) if "sensors" in parts else 0
        if numbers != self.eyes.numbers:
            raise self.refused(
                "%d numbers are shown and the model takes %d: leave out the shift that changes that" % (numbers, self.eyes.numbers)
            )
        return self.part(parts, self.observation_space, "")

    def part(self, parts, space, name):
        spaces = self.spaces
        if isinstance(space, spaces.Dict):
            return {key: self.part(parts, inner, "%s%s" % (name and name + ".", key)) for key, inner in space.spaces.items()}
        if isinstance(space, spaces.Tuple):
            return tuple(self.part(parts, inner, "%s%s" % (name and name + ".", i)) for i, inner in enumerate(space.spaces))
        title = name or "observation"
        if title not in self.parts:
            raise self.refused(
                "%s of the observation, a %s, is no picture and no numbers, which a report needs" % (title, type(space).__name__)
            )
        kind, what, region = self.parts[title]
        if kind not in ("picture", "depth"):
            at, count = what
            return self.numbers(parts["sensors"][at : at + count], kind, space)
        pixels = parts["image" if kind == "picture" else "depth"]
        if region is not None and len(self.eyes.regions) > 1:
            left, width, height = region
            pixels = pixels[:height, left : left + width]
        made = self.picture(pixels, what, space)
        if made.shape != space.shape:
            raise self.refused(
                "%s is shown as %s and the model takes %s: leave out what changes that" % (title, list(made.shape), list(space.shape))
            )
        return made

    def picture(self, pixels, layout, space):
        np = self.np
        unit, layout = layout.startswith("unit "), layout.replace("unit ", "")
        if layout.endswith("stack"):
            pixels = pixels if pixels.ndim == 4 else pixels[None]
            pixels = pixels[..., 0] if len(space.shape) == 3 else pixels
            pixels = pixels.transpose(1, 2, 0) if layout.endswith("last stack") else pixels
        elif layout.endswith(" first"):
            pixels = pixels.transpose(2, 0, 1)
        elif layout == "rgba":
            pixels = np.concatenate([pixels, np.full(pixels.shape[:2] + (1,), 255, np.uint8)], axis=2)
        elif len(space.shape) == 2:
            pixels = pixels[..., 0]
        if unit:
            low, high = float(space.low.flat[0]), float(space.high.flat[0])
            return (pixels * ((high - low) / 255.0) + low).astype(space.dtype)
        return np.ascontiguousarray(pixels, space.dtype)

    def numbers(self, numbers, kind, space):
        np = self.np
        if kind == "one":
            return np.int64(int(np.argmax(numbers)) + int(space.start))
        if kind == "several":
            counts = space.nvec.reshape(-1)
            ends = np.cumsum(counts)
            chosen = [int(np.argmax(numbers[end - count : end])) for count, end in zip(counts, ends)]
            return (np.reshape(chosen, space.nvec.shape) + getattr(space, "start", 0)).astype(space.dtype)
        if space.dtype is not None and space.dtype.kind in "iub":
            numbers = np.rint(numbers)
        return np.reshape(numbers, space.shape).astype(space.dtype)

    def action(self, given):
        """The action, of one that the environment takes, or of scores of choices."""
        np, space = self.np, self.action_space
        if isinstance(space, self.spaces.Discrete):
            numbers = np.asarray(given)
            if numbers.size == 1 and space.n != 1 and numbers.dtype.kind in "iu":
                return int(numbers.reshape(())) - int(space.start)
            return given
        if given is None:
            return None
        if isinstance(space, self.spaces.Box):
            numbers = np.asarray(given)
            return numbers.reshape(-1) if numbers.shape in (space.shape, (1,) + space.shape) else given
        return np.concatenate(list(self.row(space, given)))

    def row(self, space, given):
        """The numbers of an action of several parts: of a Box its own, a score for each choice."""
        np, spaces = self.np, self.spaces
        if isinstance(space, spaces.Dict):
            for key, part in space.spaces.items():
                yield from self.row(part, given[key])
        elif isinstance(space, spaces.Tuple):
            if len(given) != len(space.spaces):
                raise self.refused("an action of %d parts; take %d" % (len(given), len(space.spaces)))
            for part, value in zip(space.spaces, given):
                yield from self.row(part, value)
        elif isinstance(space, spaces.Discrete):
            yield np.eye(int(space.n))[int(np.asarray(given).reshape(())) - int(space.start)]
        elif isinstance(space, spaces.MultiDiscrete):
            chosen = np.asarray(given).reshape(-1) - np.reshape(getattr(space, "start", 0), -1)
            counts = space.nvec.reshape(-1)
            if chosen.shape != counts.shape:
                raise self.refused("an action of %d choices; take %d" % (chosen.size, counts.size))
            for choice, count in zip(chosen, counts):
                yield np.eye(int(count))[int(choice)]
        else:
            yield np.asarray(given, np.float64).reshape(-1)

    def map(self, given):
        """A map of what matters as the world takes it, of one over a part of the observation, or over several by name."""
        np, eyes = self.np, self.eyes
        if not isinstance(given, dict):
            space = self.observation_space
            if eyes.size is None and isinstance(space, self.spaces.Box) and given is not None:
                # One weight for each number, or for each row of them.
                weights = np.asarray(given)
                if weights.ndim > 0 and weights.shape == space.shape[: weights.ndim]:
                    wide = weights.reshape(weights.shape + (1,) * (len(space.shape) - weights.ndim))
                    return np.broadcast_to(wide, space.shape).reshape(-1)
            return given
        given = dict(by_dots(given))
        if eyes.size is None:
            rows = []
            for title, (_, (_, count), _) in self.parts.items():
                weights = np.zeros(count) if given.get(title) is None else np.asarray(given[title], np.float64).reshape(-1)
                if weights.size != count:
                    raise self.refused("the map of %s has %d weights; it has %d numbers" % (title, weights.size, count))
                rows.append(weights)
            return np.concatenate(rows)
        pictures = {title: region for title, (kind, _, region) in self.parts.items() if kind == "picture"}
        found = [title for title in pictures if title in given]
        if not found:
            raise self.refused(
                "the map has %s; it is about %s" % (", ".join(map(repr, given)), " or ".join(map(repr, pictures)))
            )
        if len(pictures) == 1:
            return given[found[0]]
        width, height = eyes.size
        whole = np.zeros((height, width))
        for title, (left, across, down) in pictures.items():
            if title in given:
                whole[:down, left : left + across] = self.resized(np.asarray(given[title], np.float64), down, across)
        return whole

    def resized(self, weights, down, across):
        """`weights [rows, columns]` over a picture, one for each pixel; the sum of a weight's pixels is the weight."""
        np = self.np
        if weights.ndim != 2 or not (0 < weights.shape[0] <= down and 0 < weights.shape[1] <= across):
            raise self.refused(
                "a map has the shape %s; it has rows and columns, at most %d and %d" % (list(weights.shape), down, across)
            )
        rows, columns = (np.arange(n) * of // n for n, of in zip((down, across), weights.shape))
        share = np.bincount(rows)[rows][:, None] * np.bincount(columns)[columns][None, :]
        return weights[rows[:, None], columns[None, :]] / share


def by_dots(given, name=""):
    """The parts of a nested dict by their names with dots."""
    for key, part in given.items():
        whole = "%s%s" % (name and name + ".", key)
        if isinstance(part, dict):
            yield from by_dots(part, whole)
        else:
            yield whole, part


