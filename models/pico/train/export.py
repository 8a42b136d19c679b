#!/usr/bin/env python3
"""Writes the two GGUF files of a pair, text and mmproj, from a checkpoint of train_decoder.py.

    export.py --checkpoint FILE --out DIR [--class-token-last]

--class-token-last also writes pico-internvl-mmproj-class-last.gguf, whose table of positions is in the
order of llama.cpp's graph, for comparing the two.
"""
import argparse

import torch

from family import FAMILIES, export


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--checkpoint", required=True)
    parser.add_argument("--out", required=True)
    parser.add_argument("--class-token-last", action="store_true")
    options = parser.parse_args()
    state = torch.load(options.checkpoint, map_location="cpu")
    family = FAMILIES[state["family"]]
    tower, decoder = family.new_tower(), family.new_decoder()
    tower.load_state_dict(state["tower"])
    tower.projector.load_state_dict(state["projector"])
    decoder.load_state_dict(state["decoder"])
    for path in export(family.name, options.out, tower, decoder, options.class_token_last):
        print(f"{path}: {path.stat().st_size} bytes")


if __name__ == "__main__":
    main()
