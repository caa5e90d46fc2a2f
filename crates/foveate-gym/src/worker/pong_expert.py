"""Two experts of Pong, which read where the ball and the paddle are from the console's memory, and go where the ball will come.

They decide for four frames at a time, as agents do that repeat each action four times. They differ in which part of the paddle
the ball should meet, which decides where it flies.

PongExpert looks that up, by the row and the direction in which the ball comes: what it does follows from the last four frames,
so an agent can see it. SearchingPongExpert tries it on the emulator itself. It plays every point alike: it follows the ball until
that is near, then takes the first part of the paddle, in a fixed order, that wins the point with this shot. After a few points
the same few points repeat until the episode ends.

They follow the ball so that an agent can tell its paddle's place: one that sees changes only, as AttentionNeuron's keys do, does
not see a paddle that rests. With FOLLOW and EFFORT as they are, no two states of the searching one that look alike to an agent
that sees patches without their places have different choices.
"""

# Where the console keeps the places: the ball's column and row (0: there is no ball), and the row of our paddle.
BALL_X, BALL_Y, PADDLE_Y = 49, 54, 51
# Rows between which the ball stays, and the column at which it meets our paddle.
TOP, BOTTOM, FACE = 44, 207, 187
# Rows that the paddle can reach, and where it waits for a ball.
HIGHEST, LOWEST, WAIT = 38, 203, 120
# Rows of the paddle minus rows of the ball while it follows it.
FOLLOW = -4
# The paddle moves in every second frame: by half of its last move, and by so much towards the button of the two frames before.
PUSH = 5.8
FRAMES, MOVES = 4, 2
# Decisions that are planned, and what a button costs in rows, so that the paddle rests rather than trembles; for PongExpert also
# what a row costs by which the paddle is off in a decision on its way.
AHEAD, EFFORT = 5, 2.0
HASTY_EFFORT, HASTE = 8.0, 1.0
# Rows of the paddle minus rows of the ball when they meet, in the order in which they are tried. Those come first that win most
# points with few moves.
OFFSETS = [-1, -2, -3, -4, -6, -7, -5, 2, 3, 1, 0, -9, -12, -15, 4, 6]
# The offsets of PongExpert, found by playing: for every move of the ball (its rows in the decision in which they meet: up to each
# of these, or more), and for every band of so many rows in which they meet, the one that won most points, a lost one counting
# as two and a half.
MOVES_APART, BAND = [-6, -2, 1, 5], 9
OFFSET_OF = [
    [-8, -8, -6, -6, -1, -6, -6, -8, -8, -16, -16, -4, -4, -4, -10, -10, -12, -12, -12],
    [-16, -16, -8, -8, -14, -16, -7, -2, -16, -10, -10, -1, -1, -8, -8, -4, -5, -5, -10],
    [-10, -7, -7, -8, -10, -3, -12, -16, -12, -12, -6, -7, -7, -16, -16, -6, -6, -6, -6],
    [-2, 3, 1, 0, -7, -6, -12, -6, 1, 1, 1, 2, 2, 1, -8, -8, -8, -7, -7],
    [-2, 0, -7, -7, 4, -12, -12, -8, 3, 4, 4, 3, 1, -7, -7, -7, 3, 3, 2],
]
# So many decisions before the ball comes the meeting is planned; decisions that a try takes at most.
EARLY, TRY = 8, 75
# A shot whose ball moves by fewer rows in a decision counts as one that does not win; the column from which on it is looked at.
STEEP, SEEN_FROM = 6, 165
# Bytes of the memory that are left out when states are compared, counters of frames and points; the one that counts frames, of
# which the remainder after this division is compared.
COUNTERS, CLOCK, ROUND = [8, 9, 13, 14, 15, 16, 69, 70], 8, 4
NOTHING, UP, DOWN = 0, 2, 3
# Most states whose offsets are remembered.
REMEMBERED = 10_000


class PongExpert:
    """Its advice is a score for each of the six choices."""

    # Decisions before the ball comes by which the paddle should be where it meets it, so that there is time to correct it.
    READY = 1

    def __init__(self, np, ale, actions):
        self.np, self.ale, self.actions = np, ale, actions
        self.paddle = Paddle(np, PUSH, MOVES, AHEAD, HASTY_EFFORT, HASTE)
        self.begin()

    def begin(self):
        """An episode begins."""
        # (ball's column, its row, paddle's row, button) after each of the last frames.
        self.past = []
        self.offset = None

    def see(self, action):
        """A frame went by, with this choice."""
        ram = self.ale.getRAM()
        button = {UP: -1, DOWN: 1, 4: -1, 5: 1}.get(action, 0)
        self.past.append((int(ram[BALL_X]), int(ram[BALL_Y]), int(ram[PADDLE_Y]), button))
        del self.past[: -FRAMES - 1]

    def comes(self):
        """How the ball moved in the last decision, if it comes towards us; else None."""
        if len(self.past) <= FRAMES:
            return None
        before, now = self.past[0], self.past[-1]
        if before[1] == 0 or now[1] == 0 or now[0] <= before[0]:
            return None
        return now[0] - before[0], now[1] - before[1]

    def left(self):
        """Decisions until the ball meets our paddle, if it comes and is near; else None."""
        speed, x = self.comes(), self.past[-1][0] if self.past else FACE
        if speed is None or x >= FACE or (FACE - x) / speed[0] > EARLY:
            return None
        return (FACE - x) / speed[0]

    def meeting(self):
        """The row at which the ball will come, and its move in that decision; its way is unfolded at the walls."""
        height, move = BOTTOM - TOP, self.comes()[1]
        row = (self.past[-1][1] + move * self.left() - TOP) % (2 * height)
        return (TOP + row, move) if row <= height else (TOP + 2 * height - row, -move)

    def advise(self):
        """A score for each choice."""
        if self.comes() is None:
            self.offset = None
        elif self.offset is None and self.left() is not None:
            self.offset = self.best_offset()
        scores = [0.0] * len(self.actions)
        scores[self.choose(self.offset or 0)] = 1.0
        return scores

    def choose(self, offset):
        """What to do to meet the ball with this part of the paddle."""
        if len(self.past) <= FRAMES:
            return NOTHING
        _, y, paddle, _ = self.past[-1]
        left = self.left()
        target = WAIT
        if left is None and y > 0:
            target = min(max(y + FOLLOW, HIGHEST), LOWEST)
        if left is not None:
            target = min(max(self.meeting()[0] + offset, HIGHEST), LOWEST)
            left = max(left - self.READY, 0.5) if self.READY else left
        press = self.paddle.press(target, left, paddle, paddle - self.past[-3][2], self.past[-1][3])
        return UP if press < 0 else DOWN if press > 0 else NOTHING

    def best_offset(self):
        """That of the table."""
        row, move = self.meeting()
        flight = sum(move > limit for limit in MOVES_APART)
        return OFFSET_OF[flight][min(max(int((row - TOP) // BAND), 0), len(OFFSET_OF[0]) - 1)]


class SearchingPongExpert(PongExpert):
    """It remembers what its tries on the emulator led to, so it cannot play where actions stick."""

    READY = 0

    def __init__(self, np, ale, actions):
        super().__init__(np, ale, actions)
        self.paddle = Paddle(np, PUSH, MOVES, AHEAD, EFFORT)
        # What was found in a state is the same in every episode.
        self.found = {}

    def begin(self):
        """An episode begins."""
        super().begin()
        # Shots of this point.
        self.shots = 0

    def see(self, action):
        """A frame went by, with this choice."""
        super().see(action)
        if self.past[-1][1] == 0:
            self.shots = 0

    def best_offset(self):
        """The first offset that wins the point; without one, those that lose no point take turns, so that rallies end."""
        ram = self.ale.getRAM()
        clock = int(ram[CLOCK]) % ROUND
        ram[COUNTERS] = 0
        state = (ram.tobytes(), clock, tuple(self.past))
        if state not in self.found:
            if len(self.found) == REMEMBERED:
                self.found.clear()
            self.found[state] = self.good_offsets()
        good = self.found[state]
        self.shots += 1
        return good[(self.shots - 1) % len(good)]

    def good_offsets(self):
        """Tries one offset after the other until somebody scores or the ball comes back, and goes back to this moment."""
        state, past, shots = self.ale.cloneState(), list(self.past), self.shots
        safe = []
        for offset in OFFSETS:
            value, shot = 0.0, False
            for _ in range(TRY):
                # What the paddle does behind the shot changes nothing about it.
                action = NOTHING if shot else self.choose(offset)
                for _ in range(FRAMES):
                    value += self.ale.act(self.actions[action])
                    self.see(action)
                comes, (x, y) = self.comes(), self.past[-1][:2]
                shot = shot or (comes is None and x < SEEN_FROM)
                flat = abs(y - self.past[0][1]) < STEEP and TOP + 8 < y < BOTTOM - 8
                if value or (shot and (comes or flat)):
                    break
            self.ale.restoreState(state)
            self.past, self.shots = list(past), shots
            if value > 0:
                return [offset]
            if value == 0:
                safe.append(offset)
        return safe or OFFSETS[:1]


