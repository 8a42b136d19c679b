"""Reads what make_tiles.py wrote."""
import json
import pathlib

import numpy as np

from make_tiles import N_LABELS
from tower import TILE


class Tiles:
    """pixels [n, 112, 112, 3] (mapped from the file), labels [n, 5]: see make_tiles.py."""

    def __init__(self, folder):
        folder = pathlib.Path(folder)
        n = json.loads((folder / "done.json").read_text())["tiles"]
        self.pixels = np.memmap(folder / "tiles.u8", np.uint8, "r", shape=(n, TILE, TILE, 3))
        self.labels = np.fromfile(folder / "labels.u8", np.uint8, n * N_LABELS).reshape(n, N_LABELS).astype(np.int64)

    def __len__(self):
        return len(self.labels)
