#!/usr/bin/env python3
"""Trains the vision tower to name what is on a tile: kind, colour, size and number.

    train_tower.py --tiles DIR --held-out DIR --out CHECKPOINT [--family NAME] [--steps N]

Each projected token learns to say what the tile means (meaning.py). Heads that read attention-pooled patches help:
from the projected tokens alone the digits are not learned. Started again with the same --out, it goes on from the
checkpoint.
"""
import argparse

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

import training
from family import FAMILIES
from make_tiles import SIZE_CLASSES, WHAT
from meaning import CLASSES, Meaning
from tiles import Tiles

MOST_SHIFT = 5  # pixels
USUAL_SHARE = 0.25  # of a batch: tiles with objects in their usual colours, which are few in a set


class PooledHeads(nn.Module):
    """One learned query per attribute pools the tokens, one linear layer names the class."""

    def __init__(self, width):
        super().__init__()
        self.query = nn.Parameter(torch.randn(len(CLASSES), width) * 0.1)
        self.norm = nn.LayerNorm(width)
        self.name = nn.ModuleList(nn.Linear(width, n) for n in CLASSES)

    def forward(self, tokens):
        tokens = self.norm(tokens)
        weights = torch.softmax(torch.einsum("qe,bne->bqn", self.query, tokens), -1)
        pooled = weights @ tokens
        return [name(pooled[:, i]) for i, name in enumerate(self.name)]


class Classifier(nn.Module):
    def __init__(self, family):
        super().__init__()
        self.tower = family.new_tower()
        self.on_patches, self.meaning = PooledHeads(family.width), Meaning()

    def forward(self, pixels):
        """Patches [n, patches, width] and tokens [n, tokens, N_EMBD]."""
        patches = self.tower.patches(pixels)
        return patches, self.tower.projector(self.tower.shuffled(patches))

    def loss(self, pixels, labels):
        patches, tokens = self(pixels)
        pooled = sum(F.cross_entropy(logits, labels[:, i]) for i, logits in enumerate(self.on_patches(patches)))
        return pooled + self.meaning.loss(tokens, labels)


def augmented(pixels, rng):
    """Place, brightness and contrast of each tile, a little."""
    n, height, width, _ = pixels.shape
    padded = np.pad(pixels, ((0, 0), (MOST_SHIFT, MOST_SHIFT), (MOST_SHIFT, MOST_SHIFT), (0, 0)), "edge")
    pixels = torch.from_numpy(np.stack([tile[y:y + height, x:x + width]
                                        for tile, (y, x) in zip(padded, rng.integers(0, 2 * MOST_SHIFT + 1, (n, 2)))]))
    gain = torch.from_numpy(rng.uniform(0.85, 1.15, (n, 1, 1, 1)).astype(np.float32))
    shift = torch.from_numpy(rng.uniform(-12, 12, (n, 1, 1, 1)).astype(np.float32))
    return (pixels.float() * gain + shift).clamp(0, 255)


@torch.no_grad()
def accuracy(model, tiles, device, limit):
    """Per attribute, from the tokens, over numbered tiles; then all four at once; then over all tiles."""
    right = []
    for i in range(0, min(limit, len(tiles)), 200):
        tokens = model(torch.from_numpy(np.array(tiles.pixels[i:i + 200])).to(device))[1]
        named = np.stack([l.mean(1).argmax(1).cpu().numpy() for l in model.meaning.logits(tokens)], 1)
        right.append(named == tiles.labels[i:i + 200, :4])
    right = np.concatenate(right)
    numbered = right[tiles.labels[:len(right), 4] == WHAT.index("numbered")]
    return [*numbered.mean(0), numbered.all(1).mean(), right.all(1).mean()]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tiles", required=True)
    parser.add_argument("--held-out", required=True)
    parser.add_argument("--out", required=True)
    parser.add_argument("--family", choices=FAMILIES, default="internvl")
    parser.add_argument("--steps", type=int, default=8000)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--rate", type=float, default=1.5e-3)
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--report", type=int, default=500, help="steps between reports")
    options = parser.parse_args()
    device = training.set_up(options.threads, options.seed)
    tiles, held_out = Tiles(options.tiles), Tiles(options.held_out)
    usual = np.flatnonzero(tiles.labels[:, 2] == SIZE_CLASSES.index(None))
    model = Classifier(FAMILIES[options.family])
    model.to(device)
    optimizer = torch.optim.AdamW(model.parameters(), options.rate, weight_decay=0.05)
    checkpoint = training.Checkpoint(options.out)
    step, state = 0, checkpoint.load()
    if state:
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        step = state["step"]
    print(f"{sum(p.numel() for p in model.tower.parameters())} parameters, {len(tiles)} tiles, from step {step}",
          flush=True)

    losses = []
    while step < options.steps:
        for group in optimizer.param_groups:
            group["lr"] = options.rate * training.rate_at(step / options.steps)
        rng = training.rng_of(options.seed, step)
        n_usual = int(options.batch * USUAL_SHARE) if len(usual) else 0
        chosen = np.sort(np.concatenate([rng.integers(0, len(tiles), options.batch - n_usual),
                                         rng.choice(usual, n_usual)]))
        pixels = augmented(tiles.pixels[chosen], rng).to(device)
        wanted = torch.from_numpy(tiles.labels[chosen]).to(device)
        loss = model.loss(pixels, wanted)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses.append(loss.item())
        step += 1
        if step % options.report == 0 or step == options.steps:
            rates = accuracy(model, held_out, device, 2000)
            print(f"step {step} loss {np.mean(losses):.3f} held-out kind {rates[0]:.3f} colour {rates[1]:.3f} "
                  f"size {rates[2]:.3f} number {rates[3]:.3f} all four {rates[4]:.3f}; all tiles {rates[5]:.3f}; "
                  f"{checkpoint.elapsed():.0f} s", flush=True)
            losses = []
        if checkpoint.due() or step == options.steps:
            checkpoint.save(model=model.state_dict(), optimizer=optimizer.state_dict(), step=step)


if __name__ == "__main__":
    main()
