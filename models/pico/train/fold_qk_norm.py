#!/usr/bin/env python3
"""Makes a start for pico-qwen2.5vl's language model of pico-internvl's, which knows the questions already.

    fold_qk_norm.py --checkpoint DECODER_CHECKPOINT --tiles DIR --out CHECKPOINT

Qwen2 has no norm of queries and keys. What the norm divides by hardly differs from token to token, so its
mean over some pictures, head by head, goes into the weights. The result is for `train_decoder.py --init`.
"""
import argparse

import numpy as np
import torch

import training
from decoder import HEAD_DIM, N_EMBD, N_HEAD, N_HEAD_KV, N_LAYER
from family import FAMILIES
from scenes import Bank
from tiles import Tiles
from train_decoder import Batch, states

N_BATCHES, N_PICTURES, N_TILES = 4, 4, 24


@torch.no_grad()
def root_mean_squares(family, state, tiles):
    """(layer, "q" or "k") -> [heads]"""
    tower, decoder = family.new_tower(), family.new_decoder()
    tower.load_state_dict(state["tower"])
    tower.projector.load_state_dict(state["projector"])
    decoder.load_state_dict(state["decoder"])
    seen = {}

    def watch(key):
        def hook(_, inputs, __):
            seen.setdefault(key, []).append(inputs[0].pow(2).mean(-1).sqrt().mean((0, 1)))
        return hook

    for i, layer in enumerate(decoder.layers):
        layer.attn_q_norm.register_forward_hook(watch((i, "q")))
        layer.attn_k_norm.register_forward_hook(watch((i, "k")))
    bank, rng = Bank(tiles.labels), training.rng_of(0, 0)
    for _ in range(N_BATCHES):
        batch = Batch(family, bank, rng, N_PICTURES, N_TILES, n_questions=4, gap=5)
        pixels = torch.from_numpy(np.array(tiles.pixels[np.array(batch.tiles).flatten()]))
        features = tower.shuffled(tower.patches(pixels)).numpy()
        batch.tiles = np.arange(len(pixels)).reshape(N_PICTURES, -1)
        states(decoder, tower.projector, features, batch, "cpu")
    return {key: torch.stack(values).mean(0) for key, values in seen.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--checkpoint", required=True)
    parser.add_argument("--tiles", required=True)
    parser.add_argument("--out", required=True)
    options = parser.parse_args()
    state = torch.load(options.checkpoint, map_location="cpu")
    divisors = root_mean_squares(FAMILIES[state["family"]], state, Tiles(options.tiles))
    decoder = dict(state["decoder"])
    for i in range(N_LAYER):
        for what, n_head in (("q", N_HEAD), ("k", N_HEAD_KV)):
            gain = decoder.pop(f"layers.{i}.attn_{what}_norm.weight")[None] / divisors[i, what][:, None]
            weight = decoder[f"layers.{i}.attn_{what}.weight"].view(n_head, HEAD_DIM, N_EMBD)
            decoder[f"layers.{i}.attn_{what}.weight"] = (weight * gain[..., None]).reshape(-1, N_EMBD)
    torch.save(dict(decoder=decoder, family=state["family"]), options.out)


if __name__ == "__main__":
    main()
