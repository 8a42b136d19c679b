#!/usr/bin/env python3
"""Training tiles from pictures that `plateau needle` draws.

    make_tiles.py --plateau BIN --out DIR [--pictures N] [--colored SHARE] [--photos DIR] [--seed S]

Every picture is resized to its grid as the program does it (Pillow's BICUBIC is what the program's
resampler equals) and cut. Writes into DIR, appending picture by picture, so a run that was cut
short goes on where it stopped:
    tiles.u8    [n, 112, 112, 3] bytes
    labels.u8   [n, 6]: kind, colour, size, number, what it is, picture number modulo 256
`what it is`: see WHAT. Classes are indices into vocabulary.KINDS, COLORS, SIZES + "middling"; the
last class of each means none.
"""
import argparse
import json
import pathlib
import shutil
import subprocess
import tempfile

import numpy as np
from PIL import Image

from tower import TILE
from vocabulary import COLORS, KINDS, SIZES

SIZE_CLASSES = SIZES + [None]  # None: middling, of the usual colour
WHAT = ["background", "numbered", "unnumbered", "number", "card", "thumbnail"]
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
    colors = rng.random() < colored
    n_cols, n_rows = (rng.integers(8, 15, 2) if colors else rng.integers(3, 6, 2))
    # Any size that gives this grid: the resize to it stretches each tile a little.
    width, height = (int(rng.integers(int(n * TILE * 0.97), int(n * TILE / 0.98))) for n in (n_cols, n_rows))
    n_cells = (-(-width * 98 // (100 * TILE))) * (-(-height * 98 // (100 * TILE)))
    n_objects = int(n_cells * 0.62) if colors else min(8, n_cells - 3)
    arguments = ["--width", width, "--height", height, "--objects", n_objects,
                 "--distractors", int(n_cells * 0.22) if colors else 3,
                 "--format", "png" if rng.random() < 0.3 else "jpg"]
    arguments += ["--colors"] if colors else []
    arguments += ["--photos", photos] if photos and rng.random() < 0.5 else []
    return [str(a) for a in arguments]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--plateau", required=True)
    parser.add_argument("--out", required=True, type=pathlib.Path)
    parser.add_argument("--pictures", type=int, default=400)
    parser.add_argument("--colored", type=float, default=0.8, help="share of pictures with objects in all colours")
    parser.add_argument("--photos", help="folder of photographs")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    done_file = options.out / "pictures_done"
    done = int(done_file.read_text()) if done_file.exists() else 0
    n_tiles = 0
    folder = options.out
    with open(folder / "tiles.u8", "ab") as tiles_file, open(folder / "labels.u8", "ab") as labels_file:
        # Whole pictures only: what a killed run wrote beyond its last mark is cut off.
        whole = int((options.out / "tiles_done").read_text()) if done else 0
        tiles_file.truncate(whole * TILE * TILE * 3)
        labels_file.truncate(whole * 6)
        n_tiles = whole
        for i in range(done, options.pictures):
            rng = np.random.default_rng([options.seed, i])
            scratch = tempfile.mkdtemp(prefix="pico-needle-")
            arguments = needle_arguments(rng, options.photos, options.colored)
            subprocess.run([options.plateau, "needle", "--out", scratch, "--seed", str(options.seed * 1000003 + i),
                            *arguments], check=True, stdout=subprocess.DEVNULL)
            scene = json.loads(pathlib.Path(scratch, "scenes.jsonl").read_text())
            tiles, labels = cut(Image.open(pathlib.Path(scratch, scene["image"])), scene, rng, 0.12)
            shutil.rmtree(scratch)
            tiles_file.write(tiles.tobytes())
            labels_file.write(np.array([label + [i % 256] for label in labels], np.uint8).tobytes())
            tiles_file.flush()
            labels_file.flush()
            n_tiles += len(tiles)
            (options.out / "tiles_done").write_text(str(n_tiles))
            done_file.write_text(str(i + 1))
            if i % 20 == 19 or i + 1 == options.pictures:
                print(f"{i + 1}/{options.pictures} pictures, {n_tiles} tiles", flush=True)


if __name__ == "__main__":
    main()
