"""What the two pairs differ in, as far as training goes: towers and language models, and how pictures and films
become tokens with positions."""
from typing import NamedTuple

import numpy as np

import qwen25vl
import qwen25vl_gguf
import tower
import tower_gguf
from decoder import N_EMBD, Decoder
from layout import Layout, Place


class Stage(NamedTuple):
    """Of the training of a language model."""
    tiles: int      # the most of them in a prompt
    batch: int
    questions: int  # about each prompt
    gap: int        # the most tiles that are not shown before each that is
    rate: float     # of learning, at most
    steps: int


def gaps(n, most, rng):
    """How many tiles or frames are not shown before each of n that are; in one batch none, in another many."""
    return rng.integers(0, int(most * rng.random() ** 2) + 1, n)


class InternVl:
    name = "internvl"
    width, n_tokens = tower.WIDTH, tower.N_TOKENS
    rope_base = 1e16  # 12 of 16 rotary pairs turn by 1 or less within 10,000 positions: room to match by content
    time_questions = ("when", "second", "first")
    stages = (Stage(12, 32, 4, 300, 1e-3, 1200), Stage(48, 12, 8, 60, 1e-3, 1500), Stage(160, 5, 8, 12, 7e-4, 900),
              Stage(400, 2, 8, 6, 4e-4, 400), Stage(700, 1, 8, 3, 2e-4, 150))
    architecture, write_tower = "qwen3", staticmethod(tower_gguf.write_tower)

    @staticmethod
    def new_tower():
        return tower.Tower(N_EMBD)

    def new_decoder(self):
        return Decoder(self.rope_base)

    def new_layout(self):
        return Layout(1, self.n_tokens)

    def picture(self, layout, n_tiles, gap, rng):
        """Tiles in reading order, and a thumbnail. They tell how far a tile is from the first and the last: its row, as
        good as, but not its column."""
        before = gaps(n_tiles, gap, rng)
        index = np.cumsum(before + 1) - 1
        n_cols = max(1, round((index[-1] + 1) ** 0.5 * np.exp(rng.uniform(-0.5, 0.5))))
        n_rows = -(-(index[-1] + 1) // n_cols)
        layout.text("<img>")
        for hidden, i in zip(before, index):
            layout.hidden(hidden * self.n_tokens)
            layout.tiles([Place(y=(i // n_cols + 0.5) / n_rows)])
        if n_tiles > 1:
            layout.tiles([Place(is_thumbnail=True)])
        layout.text("</img>\n")

    def film(self, layout, n_frames, gap, rng):
        """Frames of one tile, one to a second."""
        layout.is_film = True
        before = gaps(n_frames, gap, rng)
        before[0] = 0
        seconds = np.cumsum(before + 1) - 1
        n_positions = 0  # of a frame
        for hidden, second in zip(before, seconds):
            layout.hidden(hidden * n_positions)
            start = layout.next
            layout.text(f"Frame{second + 1}: <img>")
            layout.tiles([Place(second=int(second), n_seconds=int(seconds[-1]) + 1)])
            layout.text("</img>\n")
            n_positions = layout.next - start


class Qwen25Vl:
    name = "qwen2.5vl"
    width, n_tokens = qwen25vl.WIDTH, qwen25vl.N_TOKENS
    rope_base = 1e8
    sections = (2, 2, 12)  # rotary pairs for time, row, column: columns need fast ones, too, and 10 are left to match
    time_questions = ("when", "first")
    stages = (Stage(12, 24, 4, 20, 1e-3, 1200), Stage(40, 6, 8, 10, 1e-3, 1200), Stage(120, 2, 8, 5, 7e-4, 600),
              Stage(320, 1, 8, 2, 3e-4, 150))
    architecture, write_tower = "qwen2vl", staticmethod(qwen25vl_gguf.write_tower)
    tokens_per_second = 2  # positions on the axis of time

    @staticmethod
    def new_tower():
        return qwen25vl.Tower(N_EMBD)

    def new_decoder(self):
        return Decoder(self.rope_base, self.sections, has_qk_norm=False, has_qkv_bias=True)

    def new_layout(self):
        return Layout(3, self.n_tokens)

    def picture(self, layout, n_tiles, gap, rng):
        """Columns and rows of tiles, n_tiles or a few less together. Tokens come in reading order of the picture,
        whatever tile they lie in; positions are (time, row, column)."""
        side = qwen25vl.SIDE
        n_rows = max(1, round((n_tiles / np.exp(rng.uniform(-0.7, 0.9))) ** 0.5))
        n_cols = max(1, n_tiles // n_rows)
        rows, cols = (np.cumsum(gaps(n, gap, rng) + 1) - 1 for n in (n_rows, n_cols))
        row, col = np.divmod(np.arange(n_rows * n_cols * side * side), n_cols * side)
        order = ((row // side) * n_cols + col // side) * self.n_tokens + row % side * side + col % side
        positions = np.stack([np.zeros_like(row), rows[row // side] * side + row % side,
                              cols[col // side] * side + col % side])
        layout.text("<|vision_start|>")
        layout.tiles([Place(x=(x + 0.5) / (cols[-1] + 1), y=(y + 0.5) / (rows[-1] + 1)) for y in rows for x in cols],
                     order, positions)
        layout.text("<|vision_end|>")

    def film(self, layout, n_frames, gap, rng):
        """Pairs of equal frames of one tile, one pair to a second: films of a picture a second at 2 frames a second."""
        layout.is_film = True
        side = qwen25vl.SIDE
        before = gaps(n_frames, gap, rng)
        before[0] = 0
        seconds = np.cumsum(before + 1) - 1
        time, row, col = np.unravel_index(np.arange(n_frames * side * side), (n_frames, side, side))
        layout.text("<|vision_start|>")
        layout.tiles([Place(second=int(second), n_seconds=int(seconds[-1]) + 1) for second in seconds],
                     positions=np.stack([seconds[time] * self.tokens_per_second, row, col]))
        layout.text("<|vision_end|>")


FAMILIES = {family.name: family for family in (InternVl(), Qwen25Vl())}
