"""Where everything in a prompt stands, up to where the text after its pictures begins."""
import numpy as np

from vocabulary import encode

VISUAL = -1


class Place:
    """Where a tile is: x and y in its picture, from 0 to 1 (None: not to be asked about), or the second of its film,
    which has n_seconds; or it is a thumbnail."""

    def __init__(self, x=None, y=None, second=None, n_seconds=None, is_thumbnail=False):
        self.x, self.y, self.second, self.n_seconds, self.is_thumbnail = x, y, second, n_seconds, is_thumbnail


class Layout:
    """`tokens`: of text, and VISUAL for each visual one. `order`: index of each visual token among those of all tiles,
    which are in the order of `places`. `positions`: [axes] of each token."""

    def __init__(self, n_axes, n_tokens):
        self.n_axes, self.n_tokens = n_axes, n_tokens
        self.tokens, self.order, self.positions, self.places = [], [], [], []
        self.next = 0  # position of the next token
        self.is_film = False

    def text(self, text):
        for token in encode(text):
            self.tokens.append(token)
            self.positions.append([self.next] * self.n_axes)
            self.next += 1

    def hidden(self, n):
        """Positions of what is not shown, to learn positions far beyond the number of tokens that are."""
        self.next += n

    def tiles(self, places, order=None, positions=None):
        """Tokens of some tiles. `order`, of their tokens and `positions` [axes, n], from 0 on: one after the other, if
        not said otherwise."""
        n = len(places) * self.n_tokens
        first = len(self.places) * self.n_tokens
        self.order += [first + int(i) for i in (range(n) if order is None else order)]
        positions = np.tile(np.arange(n), (self.n_axes, 1)) if positions is None else positions
        self.positions += (self.next + positions).T.tolist()
        self.tokens += [VISUAL] * n
        self.places += places
        self.next += int(positions.max()) + 1
