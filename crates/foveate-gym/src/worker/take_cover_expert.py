"""An expert of DoomTakeCover: it knows where every fireball is and where it flies, and steps aside in time.

It looks ahead for as long as a fireball takes to cross the corridor, tries a few plans (hold one button for so many tics,
then none) against a model of how the player slides, and begins the one that leaves most room.
"""

FIREBALL = "DoomImpBall"
# How the player moves, by Doom's own numbers: what a button adds to the speed in a tic, what is left of it after one.
THRUST, FRICTION = 24 * 2048 / 65536, 0xE800 / 0x10000
# Where the player's middle can be.
LEFTMOST, RIGHTMOST = 752.0, 16.0
AHEAD = 56
# Half the width of the player and of a fireball along its way, and a little more.
REACH = 26.0
# More room than this is of no use, and the middle of the corridor has more ways out.
ROOM, MIDDLE = 60.0, 384.0
# Which button (1 is left, towards larger y, -1 is right) for how many tics.
PLANS = [(0, 0)] + [(side, tics) for side in (1, -1) for tics in (3, 6, 10, 16, 24, 36, 48)]


# Where the middle of the screen's view is, above the status bar, as a share of the height; the vertical scale; how far a
# fireball's middle is above its position.
HORIZON, VERTICAL, RAISED = 0.42, 0.8, 4.0
# Nearer fireballs matter more: up to five times as much at this distance and below.
NEAR = 80.0
# The corners of the far end, along x and y. One of them is always in view, and where it is on the screen tells where the
# player stands, without which nobody can know where a fireball is that has left the view.
CORNERS = [(128.0, 768.0), (128.0, 0.0)]


def gaze(eye, fireballs):
    """Where an eye at (x, y, z) that looks along x has fireballs `(x, y, z)`, and the corners, on its screen:
    [(across, down, weight)]."""

    def look(x, y, z, weight):
        ahead = x - eye[0]
        if ahead > 1.0:
            across, down = 0.5 + 0.5 * (eye[1] - y) / ahead, HORIZON - VERTICAL * (z - eye[2]) / ahead
            if 0.0 <= across <= 1.0 and 0.0 <= down <= 1.0:
                points.append((across, down, weight(ahead)))

    points = []
    for x, y, z in fireballs:
        look(x, y, z + RAISED, lambda ahead: 1.0 + 4.0 * min(1.0, NEAR / ahead))
    for x, y in CORNERS:
        look(x, y, eye[2], lambda ahead: 1.0)
    return points


class Expert:
    """Its advice is a score for each choice: nothing, right, left."""

    def __init__(self, np):
        self.np = np
        self.times = np.arange(1, AHEAD + 1)
        self.slide = np.array(self.path(1.0, 0, 0))
        self.plans = np.array([self.path(0.0, side, tics) for side, tics in PLANS])
        self.effort = np.array([0.02 * tics for _, tics in PLANS])

    @staticmethod
    def path(speed, side, tics):
        """Where a player at rest at 0, but for this speed, is after each tic."""
        place, places = 0.0, []
        for tic in range(AHEAD):
            if tic < tics:
                speed += side * THRUST
            place += speed
            speed *= FRICTION
            places.append(place)
        return places

    def worth(self, x, y, speed, fireballs):
        """What each plan is worth at (x, y) with this speed along y, among fireballs `[n, 4]`: places and speeds along x and y."""
        np = self.np
        paths = np.clip(y + speed * self.slide + self.plans, RIGHTMOST, LEFTMOST)
        room = np.full(len(PLANS), ROOM)
        if len(fireballs):
            flight = fireballs[:, :2, None] + fireballs[:, 2:, None] * self.times
            here = np.abs(flight[:, 0] - x) < REACH
            # Elsewhere it does no harm.
            across = np.where(here, flight[:, 1], 1e9)
            room = np.minimum(np.abs(across[:, None] - paths).min(axis=(0, 2)), ROOM)
        return room - self.effort - 0.01 * np.abs(paths[:, -1] - MIDDLE)

    def advise(self, *state):
        """What to do in this state."""
        side = PLANS[int(self.np.argmax(self.worth(*state)))][0]
        return [1.0, 0.0, 0.0] if side == 0 else [0.0, 0.0, 1.0] if side > 0 else [0.0, 1.0, 0.0]



    def costs(self, *state):
        """What each choice costs in this state, of the room that the best plan leaves: nothing, right, left."""
        worth = self.worth(*state)
        best = [max(worth[i] for i, (begins, _) in enumerate(PLANS) if begins == side) for side in (0, -1, 1)]
        return [(max(best) - plan) / ROOM for plan in best]
