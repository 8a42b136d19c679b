"""Reads what make_tiles.py wrote."""
import pathlib

import numpy as np

from tower import TILE


class Tiles:
    """pixels [n, 112, 112, 3] (mapped from the file), labels [n, 5]: see make_tiles.py. `most`: only the first."""

    def __init__(self, folder, most=0):
        folder = pathlib.Path(folder)
        n = int((folder / "tiles_done").read_text())
        n = min(n, most) if most else n
        self.pixels = np.memmap(folder / "tiles.u8", np.uint8, "r", shape=(n, TILE, TILE, 3))
        self.labels = np.fromfile(folder / "labels.u8", np.uint8)[:n * 6].reshape(n, 6)[:, :5].astype(np.int64)

    def __len__(self):
        return len(self.labels)
