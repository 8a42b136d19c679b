#!/usr/bin/env python3
"""Writes the two GGUF files of a pair, text and mmproj, from a checkpoint of train_decoder.py.

    export.py --checkpoint FILE --out DIR [--class-token-last]

--class-token-last also writes pico-internvl-mmproj-class-last.gguf, whose table of positions is in the
order of llama.cpp's graph, for comparing the two.
"""
import argparse
import pathlib

import torch

import gguf_io
from family import FAMILIES


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--checkpoint", required=True)
    parser.add_argument("--out", required=True, type=pathlib.Path)
    parser.add_argument("--class-token-last", action="store_true")
    options = parser.parse_args()
    state = torch.load(options.checkpoint, map_location="cpu")
    family = FAMILIES[state["family"]]
    if options.class_token_last and family.name != "internvl":
        parser.error(f"--class-token-last: expected a checkpoint of internvl, got one of {family.name}")
    tower, decoder = family.new_tower(), family.new_decoder()
    tower.load_state_dict(state["tower"])
    decoder.load_state_dict(state["decoder"])
    options.out.mkdir(parents=True, exist_ok=True)
    stem = f"pico-{family.name}"
    written = [options.out / f"{stem}-text.gguf", options.out / f"{stem}-mmproj.gguf"]
    gguf_io.write_decoder(written[0], family.architecture, f"plateau-{stem}", decoder)
    family.write_tower(written[1], tower)
    if options.class_token_last:
        written.append(options.out / f"{stem}-mmproj-class-last.gguf")
        family.write_tower(written[-1], tower, class_token_last=True)
    for path in written:
        print(f"{path}: {path.stat().st_size} bytes")


if __name__ == "__main__":
    main()
