#!/usr/bin/env python3
"""Training tiles from pictures that `plateau needle` draws.

    make_tiles.py --plateau BIN --out DIR [--pictures N] [--colored N] [--photos DIR] [--seed S]

Every picture is resized to its grid as the program does it (Pillow's BICUBIC is what the program's
resampler equals) and cut. Writes into DIR, picture by picture, so a run that was cut short goes on where it stopped:
    tiles.u8    [n, 112, 112, 3] bytes
    labels.u8   [n, 5]: kind, colour, size, number, what it is
    done.json   how many whole pictures and tiles are in them
`what it is`: see WHAT. Classes are indices into vocabulary.KINDS, COLORS, SIZES + "middling"; the
last class of each means none.
"""
import argparse
import functools
import json
import multiprocessing
import os
import pathlib
import subprocess
import tempfile

import numpy as np
from PIL import Image

from tower import TILE
from vocabulary import COLORS, KINDS, SIZES

SIZE_CLASSES = SIZES + [None]  # None: middling, of the usual colour
WHAT = ["background", "numbered", "unnumbered", "number", "card", "thumbnail"]
BYTES_OF_TILE, N_LABELS = TILE * TILE * 3, 5
N_KIND, N_COLOR, N_SIZE, N_NUMBER = len(KINDS) + 1, len(COLORS) + 1, len(SIZE_CLASSES) + 1, 11
# As object_kinds() in src/eval/placement.cc has them; the moon's white is no colour of the others.
USUAL_COLOR = dict(zip(KINDS, COLORS[:-1] + [None]))


def label_of(drawing):
    kind, number = drawing.get("object"), drawing.get("number")
    label = [N_KIND - 1, N_COLOR - 1, N_SIZE - 1, N_NUMBER - 1 if number is None else number, 0]
    if kind is None:
        label[4] = WHAT.index("card" if "words" in drawing else "number")
        return label
    label[0] = KINDS.index(kind)
    color = drawing.get("color", USUAL_COLOR[kind])
    label[1] = N_COLOR - 1 if color is None else COLORS.index(color)
    label[2] = SIZE_CLASSES.index(drawing.get("size"))
    label[4] = WHAT.index("unnumbered" if number is None else "numbered")
    return label


def cut(picture, scene, rng, background_share):
    """Tiles and labels of a picture: every drawing, some cells without one, the thumbnail."""
    n_cols, n_rows = scene["grid"]
    pixels = np.asarray(picture.convert("RGB").resize((n_cols * TILE, n_rows * TILE), Image.BICUBIC))
    labels = {tuple(d["cell"]): label_of(d) for d in scene["drawings"]}
    empty = [(x, y) for y in range(n_rows) for x in range(n_cols) if (x, y) not in labels]
    rng.shuffle(empty)
    nothing = [N_KIND - 1, N_COLOR - 1, N_SIZE - 1, N_NUMBER - 1, WHAT.index("background")]
    for cell in empty[:int(len(labels) * background_share) + 1]:
        labels[cell] = nothing
    tiles = [pixels[y * TILE:(y + 1) * TILE, x * TILE:(x + 1) * TILE] for x, y in labels]
    tiles.append(np.asarray(picture.convert("RGB").resize((TILE, TILE), Image.BICUBIC)))
    return np.stack(tiles), list(labels.values()) + [nothing[:4] + [WHAT.index("thumbnail")]]


def needle_arguments(rng, photos, colored):
    """A random setting: objects in all colours or, fewer to a picture, in their usual ones."""
    n_cols, n_rows = (rng.integers(8, 15, 2) if colored else rng.integers(3, 6, 2))
    # Any size that gives this grid: the resize to it stretches each tile a little.
    width, height = (int(rng.integers(int(n * TILE * 0.97), int(n * TILE / 0.98))) for n in (n_cols, n_rows))
    n_cells = int(n_cols * n_rows)
    n_objects = int(n_cells * 0.62) if colored else min(8, n_cells - 3)
    arguments = ["--width", width, "--height", height, "--objects", n_objects,
                 "--distractors", int(n_cells * 0.22) if colored else 3,
                 "--format", "png" if rng.random() < 0.3 else "jpg"]
    arguments += ["--colors"] if colored else []
    arguments += ["--photos", photos] if photos and rng.random() < 0.5 else []
    return [str(a) for a in arguments]


def tiles_of(i, options):
    """Tiles and labels of picture i."""
    rng = np.random.default_rng([options.seed, i])
    with tempfile.TemporaryDirectory(prefix="pico-needle-") as scratch:
        arguments = needle_arguments(rng, options.photos, i < options.colored)
        subprocess.run([options.plateau, "needle", "--out", scratch, "--seed", str(options.seed * 1000003 + i),
                        *arguments], check=True, stdout=subprocess.DEVNULL)
        scene = json.loads(pathlib.Path(scratch, "scenes.jsonl").read_text())
        tiles, labels = cut(Image.open(pathlib.Path(scratch, scene["image"])), scene, rng, 0.12)
    return tiles.tobytes(), np.array(labels, np.uint8).tobytes()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--plateau", required=True)
    parser.add_argument("--out", required=True, type=pathlib.Path)
    parser.add_argument("--pictures", type=int, default=400)
    parser.add_argument("--colored", type=int, default=320, help="so many of them with objects in all colours")
    parser.add_argument("--photos", help="folder of photographs")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    done_file = options.out / "done.json"
    done = json.loads(done_file.read_text()) if done_file.exists() else dict(pictures=0, tiles=0)
    with open(options.out / "tiles.u8", "ab") as tiles_file, open(options.out / "labels.u8", "ab") as labels_file, \
            multiprocessing.Pool() as pool:
        # Whole pictures only: what a killed run wrote beyond its last mark is cut off.
        tiles_file.truncate(done["tiles"] * BYTES_OF_TILE)
        labels_file.truncate(done["tiles"] * N_LABELS)
        left = range(done["pictures"], options.pictures)
        for tiles, labels in pool.imap(functools.partial(tiles_of, options=options), left):
            for file, data in (tiles_file, tiles), (labels_file, labels):
                file.write(data)
                file.flush()
            done = dict(pictures=done["pictures"] + 1, tiles=done["tiles"] + len(labels) // N_LABELS)
            partial = done_file.with_suffix(".part")
            partial.write_text(json.dumps(done))
            os.replace(partial, done_file)
            if done["pictures"] % 20 == 0 or done["pictures"] == options.pictures:
                print(f"{done['pictures']}/{options.pictures} pictures, {done['tiles']} tiles", flush=True)


if __name__ == "__main__":
    main()
