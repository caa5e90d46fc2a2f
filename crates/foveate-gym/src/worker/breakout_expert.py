"""An expert of Breakout: it reads where the ball and the paddle are from the console's memory, and goes where the ball will come.

It decides for four frames at a time, as agents do that repeat each action four times. What it does follows from the last four
frames, so an agent can see it. It makes no plan which bricks to hit, so it can play without end once few of them are left.
"""


class BreakoutExpert:
    """Its advice is a score for each of the four choices."""

    # Where the console keeps the places: columns of the ball and the paddle, and the ball's row (0: there is no ball).
    BALL_X, BALL_Y, PADDLE_X = 99, 101, 72
    # Columns between which the ball stays, the row at which it meets the paddle, and that below which it is lost.
    LEFT, RIGHT, FACE, LOST = 57, 199, 175, 181
    # Columns that the paddle can reach, and the ball's column minus the paddle's when they meet: 8 are the paddle's middle.
    FIRST, LAST, MIDDLE = 55, 191, 8
    FRAMES = 4
    NOTHING, FIRE, RIGHTWARDS, LEFTWARDS = 0, 1, 2, 3

    def __init__(self, np, ale, actions):
        self.ale, self.actions = ale, actions
        # It moves in every frame.
        self.paddle = Paddle(np, push=2.9, moves=self.FRAMES, ahead=4, effort=2.0)
        self.begin()

    def begin(self):
        """An episode begins."""
        # (ball's column, its row, paddle's column, button) after each of the last frames.
        self.past = []

    def see(self, action):
        """A frame went by, with this choice."""
        ram = self.ale.getRAM()
        button = {self.LEFTWARDS: -1, self.RIGHTWARDS: 1}.get(action, 0)
        self.past.append((int(ram[self.BALL_X]), int(ram[self.BALL_Y]), int(ram[self.PADDLE_X]), button))
        del self.past[: -self.FRAMES - 1]

    def advise(self):
        """A score for each choice."""
        scores = [0.0] * len(self.actions)
        scores[self.choose()] = 1.0
        return scores

    def choose(self):
        if len(self.past) <= self.FRAMES or self.past[-1][1] == 0:
            return self.FIRE
        (before_x, before_y, _, _), (x, y, paddle, button) = self.past[0], self.past[-1]
        if before_y == 0:
            return self.NOTHING
        across, down = x - before_x, y - before_y
        left, target = None, x + across
        if down > 0 and y < self.LOST:
            left = max((self.FACE - y) / down, 0.25)
            # The ball's way, unfolded at the walls.
            width = self.RIGHT - self.LEFT
            at = (x + across * left - self.LEFT) % (2 * width)
            target = self.LEFT + min(at, 2 * width - at)
        target = min(max(target - self.MIDDLE, self.FIRST), self.LAST)
        press = self.paddle.press(target, left, paddle, paddle - self.past[-2][2], button)
        return self.LEFTWARDS if press < 0 else self.RIGHTWARDS if press > 0 else self.NOTHING


