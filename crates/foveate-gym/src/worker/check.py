"""Looks for promises of Gymnasium that an environment does not keep; runs in place of the worker's host.

Everything is played with actions drawn from the action space, which is seeded, so that two runs do the same.
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


class Check:
    """Its `hello` holds the findings: name, verdict (`fine`, `fault` or `note`), and words."""

    def __init__(self, control, memory, request):
        if request.get("path"):
            sys.path.insert(0, os.path.abspath(request["path"]))
        gymnasium, np = toolbox()
        warnings.simplefilter("ignore")
        self.gymnasium, self.np, self.request = gymnasium, np, request
        self.findings = []
        # Without a number, the first episode goes on as long as there is time for, and no other any longer.
        self.most = request.get("steps") or MOST_STEPS
        self.deadline = None if request.get("steps") else SECONDS / PLAYS
        self.env = self.made()
        self.space, self.actions = self.env.observation_space, self.env.action_space
        self.faults = {}
        self.prints = os.fstat(2).st_size
        digest = ""
        try:
            digest = self.run()
        except Refusal:
            raise
        except Exception as error:
            self.say("plays", "fault", "it raised " + story(error).strip().splitlines()[-1], story(error))
        self.hello = {"findings": self.findings, "digest": digest, "steps": self.most}

    def serve(self):
        pass

    def made(self):
        return make(self.gymnasium, self.request["id"], self.request["args"], True, self.request.get("wrapper"))

    def say(self, name, verdict, words, more=""):
        self.findings.append({"name": name, "verdict": verdict, "words": words, "more": more})

    def judge(self, name, fault, fine):
        """A finding that is a fault if there are words for it."""
        self.say(name, "fault" if fault else "fine", fault or fine)

    def run(self):
        np = self.np
        first = [self.episode(self.env, seed) for seed in range(1, EPISODES + 1)]
        digest = hashlib.sha256("".join(step["digest"] for episode in first for step in episode).encode()).hexdigest()
        if self.request["brief"]:
            return digest
        drew = self.common() != self.undrawn
        again = self.episode(self.env, 1)
        fresh = self.made()
        others = [self.episode(fresh, seed) for seed in (1, 2)]
        fresh.close()

        for name, fine in [
            ("reset", "gives an observation and a dict"),
            ("step", "gives five values, the last a dict"),
            ("flags", "terminated and truncated are booleans"),
            ("reward", "is a finite number"),
            ("finite", "no NaN and no infinity in observations"),
            ("space", "every observation lies in the observation space"),
            ("copies", "an observation stays as it is when the next one comes"),
            ("action", "the action stays as it was given"),
        ]:
            self.judge(name, self.faults.get(name), fine)
        self.judge("repeats", differ(first[0], again), "the same seed and actions give the same episode again")
        where = differ(first[0], others[0]) or differ(first[1], others[1])
        self.judge("fresh", where and "in an environment made anew: " + where, "also in an environment made anew")
        scribbled = self.episode(self.env, 1, scribble=True)
        self.judge(
            "aliases",
            differ(first[0], scribbled) and "after observation and action were overwritten: " + differ(first[0], scribbled),
            "overwriting an observation or an action later changes nothing",
        )
        if getattr(self.env, "render_mode", None) == "rgb_array":
            drawn = self.episode(self.env, 1, render=True)
            where = differ(first[0], drawn)
            fault = self.faults.get("render") or (where and "drawing changes the episode: " + where)
            self.judge("render", fault, "draws pictures, and changes nothing by it")
        else:
            self.say("render", "note", "no render mode rgb_array: films show what the agent sees")
        self.endings(first)
        if all(differ(first[0], other) for other in first[1:]):
            self.say("seeds", "fine", "different seeds give different episodes")
        else:
            self.say("seeds", "note", "different seeds give the same episode")
        self.growth()
        if drew:
            self.say("common generators", "note", "it draws from Python's or numpy's common generator; Foveate seeds them")
        if os.fstat(2).st_size > self.prints + 1000:
            self.say("prints", "note", "it prints %d bytes" % (os.fstat(2).st_size - self.prints))
        eyes = Eyes(self.gymnasium, np, self.space, self.request.get("image"))
        seen = ", ".join("%s (%s)" % (name, words) for name, _, words in eyes.parts)
        self.say("sees", "note" if eyes.parts else "fault", "agents see: " + (seen or "nothing"))
        if eyes.size is None and getattr(self.env, "render_mode", None) == "rgb_array":
            self.say("no picture", "note", "with --picture render, train, eval and watch show agents what render() draws")
        for name, kind in eyes.left_out:
            self.say("left out", "note", "agents do not see %s (%s)" % (name, kind))
        Hands(self.gymnasium, np, self.actions, False)
        return digest

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
        elif len(ended) > 1 and len(set(lengths)) == 1 and lengths[0] > 1 and all(
            end["terminated"] and not end["truncated"] for end in last
        ):
            fault = (
                "every episode is terminated after %d steps whatever happens: a time limit is to be told as truncated"
                % lengths[0]
            )
        self.judge("endings", fault, "%d of %d episodes ended" % (len(ended), len(episodes)))
        fault = self.faults.get("final")
        for seed, episode in enumerate(episodes, 1):
            if fault or not episode[-1]["over"] or len(episode) < 3:
                continue
            start, final, between = episode[0]["sight"], episode[-1]["sight"], episode[1:-1]
            # How an episode begins if it begins after the last step but one.
            self.episode(self.env, seed, most=len(episode) - 2)
            after = self.note(self.env.reset()[0], 0.0, False, False)["sight"]
            if final in (start, after) and all(step["sight"] not in (start, after) for step in between):
                fault = "the last step shows the beginning of a new episode instead of the final observation"
        self.judge("final observation", fault, "the last step shows where the episode ended")

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

    def episode(self, env, seed, scribble=False, render=False, most=None):
        """Plays an episode; gives what each step showed and told, the reset first."""
        np = self.np
        random.seed(seed)
        np.random.seed(seed)
        self.actions.seed(seed)
        # What is drawn here must not be what the environment draws.
        random.seed(seed)
        np.random.seed(seed)
        self.undrawn = self.common()
        got = env.reset(seed=seed)
        if not (isinstance(got, tuple) and len(got) == 2 and isinstance(got[1], dict)):
            self.fault("reset", "reset() gives no pair of observation and dict")
            got = got if isinstance(got, tuple) and len(got) == 2 else (got, {})
        observation = got[0]
        self.look("reset", observation)
        record = [self.note(observation, 0.0, False, False)]
        kept = (observation, self.bytes(observation))
        start = time.monotonic()
        for t in range(1, min(most or self.most, self.most) + 1):
            action = self.actions.sample()
            given = self.bytes(action)
            if scribble:
                self.overwrite(observation)
            got = env.step(action)
            if not (isinstance(got, tuple) and len(got) == 5 and isinstance(got[4], dict)):
                self.fault("step", "step() gives no five values of which the last is a dict")
                raise ValueError("step() gave %s" % (type(got).__name__,))
            observation, reward, terminated, truncated, _ = got
            place = "in step %d of seed %d" % (t, seed)
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
                    reward = np.asarray(reward).reshape(-1)[0]
                number = float(reward)
                if not np.isfinite(number):
                    self.fault("reward", "the reward is %s %s" % (number, place))
            except (TypeError, ValueError):
                number = 0.0
                self.fault("reward", "the reward is %r %s" % (reward, place))
            over = bool(terminated) or bool(truncated)
            if over and observation is None:
                self.fault("final", "the last step gives no observation")
                observation = kept[0]
            self.look(place, observation)
            record.append(self.note(observation, number, bool(terminated), bool(truncated)))
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
        sight = hashlib.sha256(self.bytes(observation)).hexdigest()[:16]
        digest = "%s %r %d %d" % (sight, reward, terminated, truncated)
        over = terminated or truncated
        return {
            "sight": sight,
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
            what = "observation" if a["sight"] != b["sight"] else "reward" if a["reward"] != b["reward"] else "end"
            return "another %s in step %d" % (what, t)
    if len(one) != len(other):
        return "another end: %d steps instead of %d" % (len(other) - 1, len(one) - 1)
    return None


JOBS["check"] = Check
