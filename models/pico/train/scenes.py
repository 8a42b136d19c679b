"""Pictures and films put together from tiles, as `plateau needle` draws them."""
import numpy as np

from vocabulary import COLORS, SIZES


class Scene:
    """`tiles`: indices for the places of a layout; `objects`: (kind, colour, size, number, place) rows, number -1 for
    objects without one."""

    def __init__(self, bank, layout, rng, colored):
        colored = bool(bank.looks) and (colored or not bank.usual)
        self.rng, self.colored, self.places, self.is_film = rng, colored, layout.places, layout.is_film
        shown = [i for i, place in enumerate(layout.places) if not place.is_thumbnail]
        free = [shown[i] for i in rng.permutation(len(shown))]
        looks = bank.looks if colored else bank.usual
        most = min(len(free), 200 if colored else len(looks))
        n_objects = most if not colored and rng.random() < 0.5 else int(round(np.exp(rng.uniform(0, np.log(most)))))
        self.tiles, self.objects = [0] * len(layout.places), []
        chosen = self._choose_looks(looks, n_objects)
        for look in chosen:
            tile = self.pick(bank.numbered[look])
            self._put(tile, free.pop(), look, int(bank.labels[tile, 3]))
        n_decoys = int(rng.integers(0, len(free) // 2 + 1)) if rng.random() < 0.7 else 0
        for _ in range(n_decoys):
            self._put_decoy(bank, chosen, free.pop())
        for place in free:
            self.tiles[place] = self.pick(bank.what["background"])
        for place in set(range(len(layout.places))) - set(shown):
            self.tiles[place] = self.pick(bank.what["thumbnail"])

    def _put(self, tile, place, look=None, number=-1):
        self.tiles[place] = tile
        if look:
            self.objects.append((*look, number, place))

    def _choose_looks(self, looks, n):
        if not self.colored or n > len(looks) // 2:
            order = list(self.rng.permutation(len(looks)))
            while len(order) < n:
                order += list(self.rng.permutation(len(looks)))
            return [looks[i] for i in order[:n]]
        # Half of the objects share a colour or a kind with one before.
        chosen = []
        while len(chosen) < n:
            look = looks[self.rng.integers(len(looks))]
            if chosen and self.rng.random() < 0.5:
                model, keep = chosen[self.rng.integers(len(chosen))], self.rng.integers(3)
                look = tuple(look[i] if i == keep else model[i] for i in range(3))
            if look in looks and look not in chosen:
                chosen.append(look)
        return chosen

    def _put_decoy(self, bank, chosen, place):
        form = self.rng.integers(3)
        if form == 0:
            return self._put(self.pick(bank.what["card"]), place)
        look = self._look_alike(bank, chosen) if form == 1 else None
        if look:
            return self._put(self.pick(bank.unnumbered[look]), place, look)
        return self._put(self.pick(bank.what["number"]), place)

    def _look_alike(self, bank, chosen):
        """Another colour or size of one of the objects; of usual ones, a kind that is not among them."""
        for _ in range(4):
            if self.colored:
                look = (self.pick(chosen)[0], int(self.rng.integers(len(COLORS))), int(self.rng.integers(len(SIZES))))
            else:
                look = self.pick(bank.usual)
            if look in bank.unnumbered and look not in chosen:
                return look
        return None

    def pick(self, items):
        return items[self.rng.integers(len(items))]
