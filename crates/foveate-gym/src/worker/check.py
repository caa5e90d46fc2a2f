"""Looks for promises of Gymnasium that an environment does not keep; runs in place of the worker's host.

Everything is played with actions drawn from the action space, which is seeded, so that two runs do the same.

Each finding is sent as soon as it is made. In between the parent is told how long it may have to wait for the next word,
and the memory file says what is being done: should the environment hang, the parent knows where.
"""

import hashlib
import time
import warnings

MOST_STEPS = 1000
FEWEST_STEPS = 50
# What a check plays comes to about this many whole episodes, and shall take so many seconds.
PLAYS = 15
SECONDS = 40
EPISODES = 3
# How many seeds are compared with the first.
SEEDS = 4
# Most bytes of what is being done.
PLACE = 200
# Least seconds between two signs of life.
SIGN_S = 0.5


class Check:
    """Sends its findings: name, verdict (`fine`, `fault` or `note`), and words. `hello` holds what two runs must agree on."""

    def __init__(self, control, memory, request):
        if request.get("path"):
            sys.path.insert(0, os.path.abspath(request["path"]))
        gymnasium, np = toolbox()
        warnings.simplefilter("ignore")
        self.gymnasium, self.np, self.request = gymnasium, np, request
        self.control = control
        os.ftruncate(memory, PLACE)
        self.place = mmap.mmap(memory, PLACE)
        self.sign, self.wait = 0.0, None
        self.faults = {}
        # Without a number, the first episode goes on as long as there is time for, and no other any longer.
        self.most = request.get("steps") or MOST_STEPS
        self.deadline = None if request.get("steps") else SECONDS / PLAYS
        self.env = self.made()
        self.space, self.actions = self.env.observation_space, self.env.action_space
        self.prints = self.printed()
        self.hello = {"digest": "", "steps": self.most}
        try:
            self.hello["digest"] = self.run()
        except Refusal:
            raise
        except (ImportError, gymnasium.error.DependencyNotInstalled) as error:
            raise Refusal("it was not checked: it needs a package that is not installed: %s" % one_line(error))
        except Exception as error:
            where = bytes(self.place).rstrip(b"\0").decode("utf-8", "replace")
            words = "it raised %s in %s" % (story(error).strip().splitlines()[-1], where)
            self.say("plays", "fault", words, story(error))
        self.hello["steps"] = self.most

    def serve(self):
        pass

    def made(self):
        self.at("making the environment", "start_timeout")
        return make(self.gymnasium, self.request["id"], self.request["args"], True, self.request.get("wrapper"))

    def at(self, place, limit="timeout"):
        """Says what is done next, and now and then that it is."""
        text = place.encode()[:PLACE]
        self.place[:] = text + b"\0" * (PLACE - len(text))
        now = time.monotonic()
        if limit != self.wait or now - self.sign > SIGN_S:
            self.sign, self.wait = now, limit
            send({"limit": limit})

    def say(self, name, verdict, words, more=""):
        send({"finding": {"name": name, "verdict": verdict, "words": words, "more": more}})

    def judge(self, name, fault, fine):
        """A finding that is a fault if there are words for it."""
        self.say(name, "fault" if fault else "fine", fault or fine)

    def printed(self):
        """Bytes that were printed so far; the keeper counts them."""
        sys.stdout.flush()
        before = None
        for _ in range(20):
            now = struct.unpack("<Q", PRINTED)[0]
            if now == before:
                break
            before = now
            time.sleep(0.02)
        return now

    def run(self):
        np = self.np
        first = [self.episode(self.env, seed) for seed in range(1, EPISODES + 1)]
        drew = self.common() != self.undrawn
        digest = hashlib.sha256("".join(step["digest"] for episode in first for step in episode).encode()).hexdigest()
        if self.request["brief"]:
            return digest
        promises = [
            ("reset", "gives an observation and a dict"),
            ("step", "gives five values, the last a dict"),
            ("flags", "terminated and truncated are booleans"),
            ("reward", "is a finite number"),
            ("finite", "no NaN and no infinity in observations"),
            ("space", "every observation lies in the observation space"),
            ("copies", "an observation stays as it is when the next one comes"),
            ("action", "the action stays as it was given"),
        ]
        for name, fine in promises:
            self.judge(name, self.faults.get(name), fine)
        told = set(self.faults)
        again = self.episode(self.env, 1)
        repeats = not differ(first[0], again)
        self.judge("repeats", differ(first[0], again), "the same seed and actions give the same episode again")
        fresh = self.made()
        others = [self.episode(fresh, seed) for seed in (1, 2)]
        MADE.remove(fresh)
        self.closed(fresh)
        where = differ(first[0], others[0]) or differ(first[1], others[1])
        self.judge("fresh", where and "in an environment made anew: " + where, "also in an environment made anew")
        scribbled = self.episode(self.env, 1, scribble=True)
        self.judge(
            "aliases",
            differ(first[0], scribbled) and "after observation and action were overwritten: " + differ(first[0], scribbled),
            "overwriting an observation or an action later changes nothing",
        )
        if getattr(self.env, "render_mode", None) == "rgb_array":
            self.draws(first[0])
        else:
            self.say("render", "note", "no render mode rgb_array: films show what the agent sees")
        self.endings(first)
        if repeats:
            self.seeds()
        else:
            self.say("seeds", "note", "not checked: an episode does not repeat")
        self.growth()
        if drew:
            self.say("common generators", "note", "it draws from Python's or numpy's common generator; Foveate seeds them")
        prints = self.printed() - self.prints
        if prints > 1000:
            self.say("prints", "note", "it prints %d bytes" % prints)
        eyes = Eyes(self.gymnasium, np, self.space, self.request.get("image"))
        seen = ", ".join("%s (%s)" % (name, words) for name, _, words in eyes.parts)
        if eyes.parts:
            self.say("sees", "note", "agents see: " + seen)
        else:
            words = "not supported by Foveate: nothing in its observation is a picture or a number, but it is no fault"
            self.say("sees", "note", words)
        if eyes.size is None and getattr(self.env, "render_mode", None) == "rgb_array":
            self.say("no picture", "note", "with the setting `picture render`, agents see what render() draws")
        for name, kind in eyes.left_out:
            self.say("left out", "note", "agents do not see %s (%s)" % (name, kind))
        try:
            Hands(self.gymnasium, np, self.actions, False)
        except Refusal as error:
            self.say("acts", "note", "not supported by Foveate: %s; it is no fault" % error)
        # What was broken later than in the first episodes.
        for name, _ in promises:
            if name in self.faults and name not in told:
                self.say(name, "fault", self.faults[name])
        return digest

    def closed(self, env):
        self.at("close()")
        try:
            env.close()
        except Exception as error:
            self.say("close", "fault", "close() raised " + story(error).strip().splitlines()[-1], story(error))
            return
        self.say("close", "fine", "close() ends it")

    def draws(self, expect):
        try:
            where = differ(expect, self.episode(self.env, 1, render=True))
        except (ImportError, self.gymnasium.error.DependencyNotInstalled) as error:
            words = "not checked: drawing needs a package that is not installed: %s" % one_line(error)
            self.say("render", "note", words)
            return
        fault = self.faults.get("render") or (where and "drawing changes the episode: " + where)
        self.judge("render", fault, "draws pictures, and changes nothing by it")

    def seeds(self):
        """Whether seeds make a difference while all else stays the same; and if not, whether anything else does."""

        def other(seed, common):
            return self.episode(self.env, seed, actions=1, common=common, until=one) is None

        one = self.episode(self.env, 1, actions=1, common=1)
        if any(other(seed, 1) for seed in range(2, 2 + SEEDS)):
            self.say("seeds", "fine", "different seeds give different episodes")
        elif other(None, 1) or other(None, 1):
            words = "all seeds give the same episode, but reset() without a seed gives another: it ignores its seed"
            self.say("seeds", "fault", words)
        elif other(1, 2) or other(1, 3):
            words = "its seed changes nothing: all that it draws is from Python's or numpy's common generator, which Foveate seeds"
            self.say("seeds", "note", words)
        else:
            words = "all seeds give the same episode: where that is meant, several episodes say no more than one"
            self.say("seeds", "note", words)

    def endings(self, episodes):
        limit = getattr(self.env.spec, "max_episode_steps", None)
        ended = [episode for episode in episodes if episode[-1]["over"]]
        if not ended:
            words = "no episode ended within %d steps; `limit` is a wrapper that ends them" % self.most
            self.say("endings", "note", words)
            return
        lengths = [len(episode) - 1 for episode in ended]
        last = [episode[-1] for episode in ended]
        fault = None
        if limit and any(length > limit for length in lengths):
            fault = "an episode goes on after its time limit of %d steps" % limit
        self.judge("endings", fault, "%d of %d episodes ended" % (len(ended), len(episodes)))
        same = len(ended) > 1 and len(set(lengths)) == 1 and lengths[0] > 1
        if same and all(end["terminated"] and not end["truncated"] for end in last):
            words = "every episode was terminated after %d steps: should that be a time limit, it is to be told as truncated"
            self.say("time limit", "note", words % lengths[0])
        fault = self.faults.get("final")
        for seed, episode in enumerate(episodes, 1):
            if fault or not episode[-1]["over"] or len(episode) < 3:
                continue
            start, final, between = episode[0]["seen"], episode[-1]["seen"], episode[1:-1]
            after = self.begun_after(seed, len(episode) - 2)
            # Where every observation is drawn anew, any step may show what a beginning there would show.
            middle = len(episode) // 2
            if (
                final in (start, after)
                and all(step["seen"] not in (start, after) for step in between)
                and self.begun_after(seed, middle - 1) != episode[middle]["seen"]
            ):
                fault = "the last step shows the beginning of a new episode instead of the final observation"
        self.judge("final observation", fault, "the last step shows where the episode ended")

    def begun_after(self, seed, steps):
        """How an episode begins that begins after so many steps of another."""
        self.episode(self.env, seed, most=steps)
        self.at("reset() without a seed")
        return self.note(self.env.reset()[0], 0.0, False, False)["seen"]

    def growth(self):
        """Memory after many short episodes."""
        for round in range(2):
            for seed in range(10):
                self.episode(self.env, seed, most=100)
            if round == 0:
                gc.collect()
                before = megabytes()
        gc.collect()
        more = megabytes() - before
        fault = "ten short episodes cost %.0f MB that do not come back" % more if more > 20 else None
        self.judge("memory", fault, "does not grow from episode to episode")

    def fault(self, name, words):
        self.faults.setdefault(name, words)

    def episode(self, env, seed, scribble=False, render=False, most=None, actions=None, common=None, until=None):
        """Plays an episode; gives what each step showed and told, the reset first. None if it is another than `until`,
        as soon as that is seen.

        `actions` seeds the actions, and `common` the common generators; by themselves all have the episode's seed."""
        np = self.np
        common = seed if common is None else common
        self.actions.seed(seed if actions is None else actions)
        # What is drawn for the actions must not be what the environment draws.
        random.seed(common)
        np.random.seed(common)
        self.undrawn = self.common()
        self.at("reset(seed=%s)" % seed)
        got = env.reset(seed=seed)
        if not (isinstance(got, tuple) and len(got) == 2 and isinstance(got[1], dict)):
            self.fault("reset", "reset() gives no pair of observation and dict")
            got = got if isinstance(got, tuple) and len(got) == 2 else (got, {})
        observation = got[0]
        self.look("reset", observation)
        record = [self.note(observation, 0.0, False, False)]
        if until and differ(until[:1], record):
            return None
        kept = (observation, self.bytes(observation))
        start = time.monotonic()
        for t in range(1, min(self.most if most is None else most, self.most) + 1):
            action = self.actions.sample()
            given = self.bytes(action)
            if scribble:
                self.overwrite(observation)
            place = "step %d of seed %s" % (t, seed)
            self.at(place)
            place = "in " + place
            got = env.step(action)
            if not (isinstance(got, tuple) and len(got) == 5 and isinstance(got[4], dict)):
                self.fault("step", "step() gives no five values of which the last is a dict")
                raise ValueError("step() gave %s" % (type(got).__name__,))
            observation, reward, terminated, truncated, _ = got
            if not scribble and self.bytes(kept[0]) != kept[1]:
                self.fault("copies", "the observation before changed %s: all are the same array" % place)
            if self.bytes(action) != given:
                self.fault("action", "the action was changed %s" % place)
            if scribble:
                self.overwrite(action)
            for name, flag in (("terminated", terminated), ("truncated", truncated)):
                if not isinstance(flag, (bool, np.bool_)):
                    self.fault("flags", "%s is %r %s, no boolean" % (name, flag, place))
            try:
                if np.ndim(reward) != 0:
                    self.fault("reward", "the reward is an array of shape %s %s" % (np.shape(reward), place))
                number = as_number(reward)
                if not np.isfinite(number):
                    self.fault("reward", "the reward is %s %s" % (number, place))
            except (Refusal, TypeError, ValueError):
                number = 0.0
                self.fault("reward", "the reward is %s %s" % (described(reward), place))
            over = bool(terminated) or bool(truncated)
            if over and observation is None:
                self.fault("final", "the last step gives no observation")
                observation = kept[0]
            self.look(place, observation)
            record.append(self.note(observation, number, bool(terminated), bool(truncated)))
            if until and differ(until[t : t + 1], record[t:]):
                return None
            kept = (observation, self.bytes(observation))
            if render and not self.picture(env):
                render = False
            if over:
                break
            if self.deadline and t >= FEWEST_STEPS and time.monotonic() - start > self.deadline:
                self.most = t
                break
        self.deadline = None
        return record

    def common(self):
        """Where Python's and numpy's common generators are."""
        _, words, at = self.np.random.get_state()[:3]
        return random.getstate(), words.tobytes(), at

    def picture(self, env):
        self.at("render()")
        frame = env.render()
        good = getattr(frame, "ndim", 0) == 3 and frame.shape[2] == 3 and frame.dtype == self.np.uint8
        if not good:
            self.fault("render", "render() gives no array of bytes, height x width x 3")
        return good

    def overwrite(self, value):
        """Fills arrays that a caller may do with what it likes."""
        if isinstance(value, self.np.ndarray) and value.flags.writeable:
            value.fill(1 if value.dtype != self.np.bool_ else True)
        elif isinstance(value, dict):
            for part in value.values():
                self.overwrite(part)
        elif isinstance(value, (tuple, list)):
            for part in value:
                self.overwrite(part)

    def bytes(self, value):
        np = self.np
        if isinstance(value, dict):
            return b"".join(str(key).encode() + self.bytes(part) for key, part in value.items())
        if isinstance(value, (tuple, list)):
            return b"".join(self.bytes(part) for part in value)
        if isinstance(value, (np.ndarray, np.generic, int, float, bool)):
            array = np.asarray(value)
            return str(array.dtype).encode() + array.tobytes()
        return repr(value).encode()

    def note(self, observation, reward, terminated, truncated):
        seen = hashlib.sha256(self.bytes(observation)).hexdigest()[:16]
        digest = "%s %r %d %d" % (seen, reward, terminated, truncated)
        over = terminated or truncated
        return {
            "seen": seen,
            "reward": reward,
            "terminated": terminated,
            "truncated": truncated,
            "over": over,
            "digest": digest,
        }

    def look(self, place, observation):
        self.parts(place, observation, self.space, "observation")

    def parts(self, place, value, space, name):
        np, spaces = self.np, self.gymnasium.spaces
        if isinstance(space, spaces.Dict) and isinstance(value, dict):
            if set(value) != set(space.spaces):
                self.fault("space", "%s has the keys %s %s; its space says %s" % (name, sorted(value), place, sorted(space.spaces)))
                return
            for key, part in space.spaces.items():
                self.parts(place, value[key], part, "%s.%s" % (name, key))
        elif isinstance(space, spaces.Box):
            if not isinstance(value, np.ndarray):
                self.fault("space", "%s is a %s %s, no array" % (name, type(value).__name__, place))
                return
            if value.dtype.kind == "f" and not np.isfinite(value).all():
                self.fault("finite", "%s has a NaN or an infinity %s" % (name, place))
            if value.shape != space.shape:
                self.fault("space", "%s has shape %s %s; its space says %s" % (name, value.shape, place, space.shape))
            elif not np.can_cast(value.dtype, space.dtype):
                self.fault("space", "%s is %s %s; its space says %s" % (name, value.dtype, place, space.dtype))
            elif (value < space.low).any() or (value > space.high).any():
                out = np.argwhere((value < space.low) | (value > space.high))[0]
                at = tuple(int(i) for i in out)
                words = "%s%s is %s %s; its space says %s to %s"
                self.fault("space", words % (name, list(at), value[at], place, space.low[at], space.high[at]))
        elif not space.contains(value):
            self.fault("space", "%s is %r %s, which is not in %s" % (name, value, place, space))


def differ(one, other):
    """Where two episodes part, in words; None if they do not."""
    for t, (a, b) in enumerate(zip(one, other)):
        if a["digest"] != b["digest"]:
            what = "observation" if a["seen"] != b["seen"] else "reward" if a["reward"] != b["reward"] else "end"
            return "another %s in step %d" % (what, t)
    if len(one) != len(other):
        return "another end: %d steps instead of %d" % (len(other) - 1, len(one) - 1)
    return None


JOBS["check"] = Check
