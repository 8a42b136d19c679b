"""Questions about a scene and their answers, worded as `plateau needle` words them."""
import json
import pathlib

import numpy as np

from vocabulary import COLORS, KINDS, SIZES

WORDINGS = json.loads((pathlib.Path(__file__).resolve().parent.parent / "assets/questions.json").read_text())
PLURAL = {kind: kind if kind == "fish" else kind + "s" for kind in KINDS}
ANY = -1
MOST_COUNTED = 4
NEAR_THE_MIDDLE = 0.06  # of a picture: which half is not asked there


class Questions:
    """Names of objects are (kind, colour, size), ANY where they do not say. Each `ask_` takes an object's row of the
    scene and returns (question, answer), or None where nothing can be asked of it."""

    def __init__(self, scene):
        self.scene, self.rng, self.pick = scene, scene.rng, scene.pick
        self.table = np.array(scene.objects)

    def count(self, name):
        """How many objects have this name."""
        fits = np.ones(len(self.table), bool)
        for i in range(3):
            if name[i] != ANY:
                fits &= self.table[:, i] == name[i]
        return int(fits.sum())

    def names(self, look):
        names = [(look[0], ANY, ANY)]
        if self.scene.colored:
            names += [(look[0], look[1], ANY), (look[0], look[1], look[2])]
        return names

    @staticmethod
    def words(name, plural=False):
        kind = KINDS[name[0]]
        words = [SIZES[name[2]]] if name[2] != ANY else []
        words += [COLORS[name[1]]] if name[1] != ANY else []
        return " ".join(words + [PLURAL[kind] if plural else kind])

    def wording(self, what, **slots):
        text = self.pick(WORDINGS[what])
        for slot, words in slots.items():
            text = text.replace("{" + slot.replace("_", " ") + "}", words)
        return text

    def unique_name(self, row):
        names = [name for name in self.names(row) if self.count(name) == 1]
        return self.words(self.pick(names)) if names else None

    def ask_number(self, row):
        name = self.unique_name(row)
        if row[3] < 0 or not name:
            return None
        return self.wording("number", object=name), str(row[3])

    def ask_which(self, row):
        if row[3] < 0 or (self.table[:, 3] == row[3]).sum() != 1:
            return None
        name = (row[0], row[1] if self.scene.colored else ANY, ANY)
        return self.wording("which", number=str(row[3])), self.words(name)

    def ask_exists(self, row):
        name = list(self.pick(self.names(row)))
        if self.rng.random() < 0.5:
            change = 1 if name[1] != ANY and self.rng.random() < 0.5 else 0
            name[change] = int(self.rng.integers(8))
            if self.count(name):
                return None
        text = self.words(name)
        text = ("an " if text[0] in "aeiou" else "a ") + text
        return (self.wording("exists_in_film" if self.scene.is_film else "exists", an_object=text),
                "yes" if self.count(name) else "no")

    def ask_count(self, _):
        wanted = int(self.rng.integers(MOST_COUNTED + 1))
        kinds = range(len(KINDS))
        names = [(k, ANY, ANY) for k in kinds]
        if self.scene.colored:
            names += [(k, c, ANY) for k in kinds for c in range(len(COLORS))]
        names = [name for name in names if self.count(name) == wanted]
        if not names:
            return None
        return (self.wording("count_in_film" if self.scene.is_film else "count",
                             objects=self.words(self.pick(names), plural=True)), str(wanted))

    def ask_where(self, row):
        place, name = self.scene.places[row[4]], self.unique_name(row)
        ways = [(share, what) for share, what in ((place.x, "left_or_right"), (place.y, "top_or_bottom"))
                if share is not None and abs(share - 0.5) > NEAR_THE_MIDDLE]
        if not name or not ways:
            return None
        share, what = self.pick(ways)
        return self.wording(what, object=name), what.split("_")[0 if share < 0.5 else 2]

    def ask_when(self, row):
        place, name = self.scene.places[row[4]], self.unique_name(row)
        part = 3 * place.second // place.n_seconds
        if not name or 3 * (place.second + 1) > place.n_seconds * (part + 1):
            return None
        return self.wording("when", object=name), ("beginning", "middle", "end")[part]

    def ask_second(self, row):
        name = self.unique_name(row)
        return name and (self.wording("second", object=name), str(self.scene.places[row[4]].second))

    def ask_first(self, row):
        other = self.pick(self.scene.objects)
        names = self.unique_name(row), self.unique_name(other)
        if row[4] == other[4] or not all(names):
            return None
        return self.wording("first", object=names[0], other=names[1]), names[0 if row[4] < other[4] else 1]

    def draw(self, n, mix):
        """Up to n different ones, (kind of question, question, answer); `mix`: the share of each kind."""
        found, kinds, share = {}, list(mix), np.array(list(mix.values()))
        for _ in range(6 * n):
            what = kinds[self.rng.choice(len(kinds), p=share / share.sum())]
            asked = getattr(self, "ask_" + what)(self.pick(self.scene.objects))
            if asked and asked[0] not in found:
                found[asked[0]] = (what, *asked)
            if len(found) == n:
                break
        return list(found.values())
