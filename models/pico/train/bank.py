"""Tiles by what they show."""
import numpy as np

from make_tiles import SIZE_CLASSES, WHAT

MIDDLING = SIZE_CLASSES.index(None)


class Bank:
    """`what`: indices of tiles by name. `numbered`, `unnumbered`: by look, (kind, colour, size). `usual`, `looks`: those
    of numbered objects in their usual colours, and in all colours and sizes."""

    def __init__(self, labels):
        self.labels = labels
        self.what = {name: np.flatnonzero(labels[:, 4] == i) for i, name in enumerate(WHAT)}
        self.numbered, self.unnumbered = self._by_look("numbered"), self._by_look("unnumbered")
        self.usual = [look for look in self.numbered if look[2] == MIDDLING]
        self.looks = [look for look in self.numbered if look[2] != MIDDLING]

    def _by_look(self, what):
        looks = {}
        for i in self.what[what]:
            looks.setdefault(tuple(self.labels[i, :3]), []).append(i)
        return looks
