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
MOST_COUNTED = 4
NEAR_THE_MIDDLE = 0.06  # of a picture: which half is not asked there


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
        self.table = np.array(self.objects)

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
        if form == 1 and bank.unnumbered:
            for _ in range(4):
                model, colour = self.pick(chosen), self.rng.integers(len(COLORS))
                look = (model[0], int(colour), int(self.rng.integers(2))) if self.colored else \
                    self.pick(list(bank.unnumbered))
                if look in bank.unnumbered and all(o[:3] != look for o in self.objects):
                    if self.colored or all(o[0] != look[0] for o in self.objects):
                        return self._put(self.pick(bank.unnumbered[look]), place, look)
        return self._put(self.pick(bank.what["number"]), place)

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

    def wording(self, what, **slots):
        text = self.pick(WORDINGS[what])
        for slot, words in slots.items():
            text = text.replace("{" + slot.replace("_", " ") + "}", words)
        return text

    def unique_name(self, row):
        names = [name for name in self.names(row) if self.count(name) == 1]
        return self.words(self.pick(names)) if names else None

    def ask(self, what):
        """(question, answer) or None where this try found nothing to ask."""
        return getattr(self, "ask_" + what)(self.pick(self.objects))

    def ask_number(self, row):
        name = self.unique_name(row)
        if row[3] < 0 or not name:
            return None
        return self.wording("number", object=name), str(row[3])

    def ask_which(self, row):
        if row[3] < 0 or (self.table[:, 3] == row[3]).sum() != 1:
            return None
        return self.wording("which", number=str(row[3])), self.words((row[0], row[1] if self.colored else ANY, ANY))

    def ask_exists(self, row):
        name = list(self.pick(self.names(row)))
        if self.rng.random() < 0.5:
            change = 1 if name[1] != ANY and self.rng.random() < 0.5 else 0
            name[change] = int(self.rng.integers(8))
            if self.count(name):
                return None
        text = self.words(name)
        text = ("an " if text[0] in "aeiou" else "a ") + text
        return (self.wording("exists_in_film" if self.is_film else "exists", an_object=text),
                "yes" if self.count(name) else "no")

    def ask_count(self, _):
        wanted = int(self.rng.integers(MOST_COUNTED + 1))
        kinds = range(len(KINDS))
        names = [(k, ANY, ANY) for k in kinds]
        if self.colored:
            names += [(k, c, ANY) for k in kinds for c in range(len(COLORS))]
        names = [name for name in names if self.count(name) == wanted]
        if not names:
            return None
        return (self.wording("count_in_film" if self.is_film else "count",
                             objects=self.words(self.pick(names), plural=True)), str(wanted))

    def ask_where(self, row):
        place, name = self.places[row[4]], self.unique_name(row)
        ways = [(share, what) for share, what in ((place.x, "left_or_right"), (place.y, "top_or_bottom"))
                if share is not None and abs(share - 0.5) > NEAR_THE_MIDDLE]
        if not name or not ways:
            return None
        share, what = self.pick(ways)
        return self.wording(what, object=name), what.split("_")[0 if share < 0.5 else 2]

    def ask_when(self, row):
        place, name = self.places[row[4]], self.unique_name(row)
        part = 3 * place.second // place.n_seconds
        if not name or 3 * (place.second + 1) > place.n_seconds * (part + 1):
            return None
        return self.wording("when", object=name), ("beginning", "middle", "end")[part]

    def ask_second(self, row):
        name = self.unique_name(row)
        return name and (self.wording("second", object=name), str(self.places[row[4]].second))

    def ask_first(self, row):
        other = self.pick(self.objects)
        names = self.unique_name(row), self.unique_name(other)
        if row[4] == other[4] or not all(names):
            return None
        return self.wording("first", object=names[0], other=names[1]), names[0 if row[4] < other[4] else 1]

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


def earlier_turn(rng):
    """A question and an answer between two pictures. It is the same for a whole batch, so whether the answer is right, no
    picture tells; none learns from it."""
    question = WORDINGS["exists"][rng.integers(3)].replace("{an object}", "a " + KINDS[rng.integers(len(KINDS))])
    answer = "yes" if rng.random() < 0.5 else "no"
    return f"{question}<|im_end|>\n<|im_start|>assistant\n{answer}<|im_end|>\n<|im_start|>user\n"


def conversation(questions):
    """Token ids after the picture, what is to be answered (-100 elsewhere) and, per question, its kind and the place
    and token of the answer's first token."""
    ids, wanted, firsts = [], [], []
    for i, (what, question, answer) in enumerate(questions):
        asked = encode(("" if i == 0 else "\n<|im_start|>user\n") + question
                       + "<|im_end|>\n<|im_start|>assistant\n")
        answered = encode(answer + "<|im_end|>")
        firsts.append((what, len(ids) + len(asked) - 1, answered[0]))
        ids += asked + answered
        wanted += [-100] * len(asked) + answered
    return ids, wanted, firsts
