"""Pictures put together from tiles, and questions about them, worded as `plateau needle` words them."""
import json
import pathlib

import numpy as np

from make_tiles import SIZE_CLASSES, WHAT
from vocabulary import COLORS, KINDS, SIZES, encode

WORDINGS = json.loads((pathlib.Path(__file__).resolve().parent.parent / "assets/questions.json").read_text())
PLURAL = {kind: kind if kind == "fish" else kind + "s" for kind in KINDS}
MIDDLING = SIZE_CLASSES.index(None)
ANY = -1


class Bank:
    """Tiles by what they show."""

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


class Scene:
    """`tiles`: indices in reading order, the thumbnail last if there is one; `objects`: (kind, colour, size, number)
    rows, number -1 for objects without one."""

    def __init__(self, bank, n_tiles, rng, colored, has_thumbnail):
        colored = bool(bank.looks) and (colored or not bank.usual)
        self.rng, self.colored = rng, colored
        looks = bank.looks if colored else bank.usual
        most = min(n_tiles, 200 if colored else len(looks))
        n_objects = most if not colored and rng.random() < 0.5 else int(round(np.exp(rng.uniform(0, np.log(most)))))
        chosen = self._choose_looks(looks, n_objects)
        tiles = [int(rng.choice(bank.numbered[look])) for look in chosen]
        self.objects = [(*look, int(bank.labels[tile, 3])) for look, tile in zip(chosen, tiles)]
        n_decoys = int(rng.integers(0, (n_tiles - n_objects) // 2 + 1)) if rng.random() < 0.7 else 0
        for _ in range(n_decoys):
            tiles.append(self._decoy(bank, chosen))
        rest = n_tiles - len(tiles)
        tiles += [int(t) for t in rng.choice(bank.what["background"], rest)]
        self.tiles = [tiles[i] for i in rng.permutation(n_tiles)]
        if has_thumbnail and n_tiles > 1:
            self.tiles.append(int(rng.choice(bank.what["thumbnail"])))
        self.table = np.array(self.objects)

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

    def _decoy(self, bank, chosen):
        form = self.rng.integers(3)
        if form == 0:
            return int(self.rng.choice(bank.what["card"]))
        if form == 1 and bank.unnumbered:
            for _ in range(4):
                model, colour = chosen[self.rng.integers(len(chosen))], self.rng.integers(len(COLORS))
                look = (model[0], int(colour), int(self.rng.integers(2))) if self.colored else \
                    list(bank.unnumbered)[self.rng.integers(len(bank.unnumbered))]
                if look in bank.unnumbered and all(o[:3] != look for o in self.objects):
                    if self.colored or all(o[0] != look[0] for o in self.objects):
                        self.objects.append((*look, -1))
                        return int(self.rng.choice(bank.unnumbered[look]))
        return int(self.rng.choice(bank.what["number"]))

    def count(self, name):
        fits = np.ones(len(self.table), bool)
        for i in range(3):
            if name[i] != ANY:
                fits &= self.table[:, i] == name[i]
        return int(fits.sum())

    def names(self, look):
        names = [(look[0], ANY, ANY)]
        if self.colored:
            names += [(look[0], look[1], ANY), (look[0], look[1], look[2])]
        return names

    @staticmethod
    def words(name, plural=False):
        kind = KINDS[name[0]]
        words = [SIZES[name[2]]] if name[2] != ANY else []
        words += [COLORS[name[1]]] if name[1] != ANY else []
        return " ".join(words + [PLURAL[kind] if plural else kind])

    def pick(self, items):
        return items[self.rng.integers(len(items))]

    def ask(self, what):
        """(question, answer) or None where this try found nothing to ask."""
        row = self.pick(self.objects)
        wording = self.pick(WORDINGS[what])
        if what == "number":
            names = [name for name in self.names(row) if self.count(name) == 1]
            if row[3] < 0 or not names:
                return None
            return wording.replace("{object}", self.words(self.pick(names))), str(row[3])
        if what == "which":
            if row[3] < 0 or (self.table[:, 3] == row[3]).sum() != 1:
                return None
            name = (row[0], row[1] if self.colored else ANY, ANY)
            return wording.replace("{number}", str(row[3])), self.words(name)
        if what == "exists":
            name = list(self.pick(self.names(row)))
            if self.rng.random() < 0.5:
                change = 1 if name[1] != ANY and self.rng.random() < 0.5 else 0
                name[change] = int(self.rng.integers(8))
                if self.count(name):
                    return None
            text = self.words(name)
            text = ("an " if text[0] in "aeiou" else "a ") + text
            return wording.replace("{an object}", text), "yes" if self.count(name) else "no"
        wanted = int(self.rng.integers(5))
        kinds = range(len(KINDS))
        names = [(k, ANY, ANY) for k in kinds]
        if self.colored:
            names += [(k, c, ANY) for k in kinds for c in range(len(COLORS))]
        names = [name for name in names if self.count(name) == wanted]
        if not names:
            return None
        return wording.replace("{objects}", self.words(self.pick(names), plural=True)), str(wanted)

    def questions(self, n, mix):
        """Up to n different ones of (kind of question, question, answer)."""
        found, kinds, share = {}, list(mix), np.array(list(mix.values()))
        for _ in range(6 * n):
            what = kinds[self.rng.choice(len(kinds), p=share / share.sum())]
            asked = self.ask(what)
            if asked and asked[0] not in found:
                found[asked[0]] = (what, *asked)
            if len(found) == n:
                break
        return list(found.values())


def conversation(questions):
    """Token ids after the picture, what is to be answered (-100 elsewhere) and, per question, its kind and the place
    and token of the answer's first token."""
    ids, wanted, firsts = [], [], []
    for i, (what, question, answer) in enumerate(questions):
        asked = encode(("\n" if i == 0 else "\n<|im_start|>user\n") + question
                       + "<|im_end|>\n<|im_start|>assistant\n")
        answered = encode(answer + "<|im_end|>")
        firsts.append((what, len(ids) + len(asked) - 1, answered[0]))
        ids += asked + answered
        wanted += [-100] * len(asked) + answered
    return ids, wanted, firsts
