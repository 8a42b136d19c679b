"""What the two pairs differ in, as far as training goes.

A family says how a tile becomes tokens, what stands before and between them, and where they are to
the language model. `layout` is a prompt up to the end of its pictures: tokens, and VISUAL for each of
the visual ones, whose order `order` tells.
"""
import numpy as np

import gguf_io
import qwen25vl
import qwen25vl_gguf
import tower
from decoder import N_EMBD, Decoder
from vocabulary import encode

VISUAL = -1


class InternVl:
    name = "internvl"
    width, n_tokens, n_features = tower.WIDTH, tower.N_TOKENS, tower.N_FEATURES
    has_thumbnail = has_films = True

    @staticmethod
    def new_tower():
        return tower.Tower(N_EMBD)

    @staticmethod
    def new_decoder():
        return Decoder()

    @staticmethod
    def grid(n_tiles, rng):
        """Only the number of tiles counts: their tokens follow each other."""
        return n_tiles, 1

    def layout(self, n_tiles, as_film):
        visual = [VISUAL] * self.n_tokens
        if not as_film:
            return encode("<|im_start|>user\n<img>") + visual * n_tiles + encode("</img>")
        tokens = encode("<|im_start|>user\n")
        for i in range(n_tiles):
            tokens += encode(f"{chr(10) if i else ''}Frame{i + 1}: <img>") + visual + encode("</img>")
        return tokens

    def order(self, n_tiles, grid):
        """Index of each visual token among those of the tiles (the thumbnail's included)."""
        return np.arange(n_tiles * self.n_tokens)

    def positions(self, layout, grid, gap, rng):
        """[1, n]: random gaps between the tiles stand for tiles that are not shown."""
        steps = np.ones(len(layout), int)
        firsts = np.flatnonzero(np.array(layout) == VISUAL)[::self.n_tokens]
        steps[firsts] += rng.integers(0, gap + 1, len(firsts)) * self.n_tokens
        return (np.cumsum(steps) - 1)[None]

    write_decoder, write_tower = staticmethod(gguf_io.write_decoder), staticmethod(gguf_io.write_tower)


class Qwen25Vl:
    name = "qwen2.5vl"
    width, n_tokens, n_features = qwen25vl.WIDTH, qwen25vl.N_TOKENS, qwen25vl.N_FEATURES
    has_thumbnail = has_films = False

    @staticmethod
    def new_tower():
        return qwen25vl.Tower(N_EMBD)

    @staticmethod
    def new_decoder():
        return Decoder(qwen25vl.SECTIONS, has_qk_norm=False, has_qkv_bias=True)

    @staticmethod
    def grid(n_tiles, rng):
        """Columns and rows of tiles, n_tiles or a little fewer together."""
        n_rows = max(1, round((n_tiles / np.exp(rng.uniform(-0.7, 0.9))) ** 0.5))
        return max(1, n_tiles // n_rows), n_rows

    def layout(self, n_tiles, as_film):
        return (encode("<|im_start|>user\n<|vision_start|>") + [VISUAL] * (n_tiles * self.n_tokens)
                + encode("<|vision_end|>"))

    def order(self, n_tiles, grid):
        """Tokens come in reading order of the picture, whatever tile they lie in."""
        side = qwen25vl.SIDE
        row, col = self._places(grid)
        return ((row // side) * grid[0] + col // side) * self.n_tokens + row % side * side + col % side

    def positions(self, layout, grid, gap, rng):
        """[3, n] (time, row, column): gaps between rows and columns of tiles; text goes on behind the largest."""
        side = qwen25vl.SIDE
        row, col = self._places(grid)
        gaps = [np.cumsum(rng.integers(0, gap + 1, n)) * side for n in grid]
        seen = np.stack([np.zeros_like(row), row + gaps[1][row // side], col + gaps[0][col // side]])
        n_before = layout.index(VISUAL)
        before = np.tile(np.arange(n_before), (3, 1))
        after = np.tile(n_before + seen.max() + 1 + np.arange(len(layout) - n_before - len(row)), (3, 1))
        return np.concatenate([before, n_before + seen, after], 1)

    @staticmethod
    def _places(grid):
        n_cols = grid[0] * qwen25vl.SIDE
        return np.divmod(np.arange(n_cols * grid[1] * qwen25vl.SIDE), n_cols)

    write_decoder, write_tower = staticmethod(qwen25vl_gguf.write_decoder), staticmethod(qwen25vl_gguf.write_tower)


FAMILIES = {family.name: family for family in (InternVl(), Qwen25Vl())}
