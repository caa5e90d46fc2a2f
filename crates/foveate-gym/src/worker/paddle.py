"""A paddle of the console, which goes on moving when its button is let go: where it will be, and which button to press."""


class Paddle:
    """In each of its moves it goes half as far as in the last one, and `push` towards the button. A decision is so many moves,
    of which the first one still has the button of the decision before. `ahead` decisions are planned at most, and a button
    costs `effort`, in the unit of the places, so that the paddle rests rather than trembles. With `haste` 0 it moves as late as
    it can; else how far it is from its target in each decision on the way counts so much, and what it does is easier to see."""

    def __init__(self, np, push, moves, ahead, effort, haste=0.0):
        self.np, self.push, self.moves, self.ahead, self.effort = np, push, moves, ahead, effort
        self.haste = haste
        self.plans, self.effects = [], []
        for decisions in range(1, ahead + 1):
            plans = np.array(np.meshgrid(*[[0, -1, 1]] * decisions, indexing="ij")).reshape(decisions, -1).T
            one_press = np.eye(decisions, dtype=int)
            # The paddle's way is linear in the presses. `[decisions, decisions]`: of each press, by the end of each decision.
            self.effects.append(np.array([self.way(press, 0.0, 0.0) for press in one_press]))
            self.plans.append(plans)

    def way(self, presses, move, push):
        """How far it goes by the end of each decision: what is pressed (-1, 0 or 1), its last move, the push under way."""
        place, places = 0.0, []
        for press in presses:
            for number in range(self.moves):
                if number == 1:
                    push = self.push * press
                move = move / 2 + push
                place += move
            places.append(place)
        return places

    def press(self, target, left, place, move, button):
        """What to press (-1, 0 or 1) to be at `target` in `left` decisions (None: some time): from `place`, after the last move
        `move`, with `button` pressed."""
        decisions, part = self.ahead, 1.0
        if left is not None:
            whole = max(int(self.np.ceil(left)), 1)
            if whole <= self.ahead:
                decisions, part = whole, left - (whole - 1)
        plans, effects = self.plans[decisions - 1], self.effects[decisions - 1]
        rest = self.np.array(self.way([0] * decisions, move, self.push * button))
        places = rest + plans @ effects + place
        end = places[:, -1]
        before = places[:, -2] if decisions > 1 else place
        # Where it is at that time, between two decisions.
        there = before + (end - before) * part
        cost = abs(there - target) + 0.25 * abs(end - target) + self.effort * abs(plans).sum(axis=1)
        if self.haste:
            cost += self.haste * abs(places - target).sum(axis=1)
        return int(plans[int(self.np.argmin(cost))][0])


