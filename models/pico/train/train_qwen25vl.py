#!/usr/bin/env python3
"""Trains pico-qwen2.5vl, tower and language model together, on small pictures put together from tiles.

    train_qwen25vl.py --tiles DIR --out CHECKPOINT --export DIR [--steps N] [--grid COLSxROWS]

A first step only: it shows that the model learns and that its files load. Pictures beyond some tens of tiles
need the stages of train_decoder.py on features of whole pictures.
"""
import argparse
import pathlib

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

import qwen25vl as Q
import qwen25vl_gguf
import training
from scenes import Bank, Scene, conversation
from tiles import Tiles
from tower import TILE
from vocabulary import encode

BEFORE = encode("<|im_start|>user\n<|vision_start|>")


def picture_of(tiles, indices, n_cols):
    pixels = np.array(tiles.pixels[indices])
    rows = [np.concatenate(list(pixels[i:i + n_cols]), 1) for i in range(0, len(pixels), n_cols)]
    return torch.from_numpy(np.concatenate(rows, 0))


def logits_and_wanted(tower, decoder, tiles, bank, rng, n_cols, n_rows, n_questions):
    scene = Scene(bank, n_cols * n_rows, rng, rng.random() < 0.5)
    picture = picture_of(tiles, scene.tiles[:n_cols * n_rows], n_cols)
    asked = scene.questions(n_questions, dict(number=1))
    if not asked:
        return None
    ids, wanted, _ = conversation(asked, after="<|vision_end|>")
    seen = tower(torch.stack([picture, picture]))
    x = torch.cat([decoder.token_embd(torch.tensor(BEFORE)), seen, decoder.token_embd(torch.tensor(ids))])
    grid = (n_rows * TILE // (Q.PATCH * Q.MERGE), n_cols * TILE // (Q.PATCH * Q.MERGE))
    logits = decoder(x, Q.positions_of(len(BEFORE), grid, len(ids)))[-len(ids):-1]
    wanted = torch.tensor(wanted[1:])
    return logits[wanted >= 0], wanted[wanted >= 0]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tiles", required=True)
    parser.add_argument("--out", required=True)
    parser.add_argument("--export", required=True, type=pathlib.Path)
    parser.add_argument("--steps", type=int, default=2000)
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--grid", default="2x1")
    parser.add_argument("--rate", type=float, default=1e-3)
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--report", type=int, default=50)
    options = parser.parse_args()
    training.set_up(options.threads, options.seed)
    n_cols, n_rows = (int(n) for n in options.grid.split("x"))
    tiles = Tiles(options.tiles)
    bank = Bank(tiles.labels)
    tower, decoder = Q.Tower(), Q.Decoder()
    parameters = [*tower.parameters(), *decoder.parameters()]
    print(f"{sum(p.numel() for p in parameters)} parameters", flush=True)
    optimizer = torch.optim.AdamW(parameters, options.rate, betas=(0.9, 0.98), weight_decay=0.02)
    checkpoint = training.Checkpoint(options.out)
    step, state = 0, checkpoint.load()
    if state:
        tower.load_state_dict(state["tower"])
        decoder.load_state_dict(state["decoder"])
        optimizer.load_state_dict(state["optimizer"])
        step = state["step"]
    losses = []
    while step < options.steps:
        for group in optimizer.param_groups:
            group["lr"] = options.rate * training.rate_at(step / options.steps)
        rng = training.rng_of(options.seed, step)
        made = [logits_and_wanted(tower, decoder, tiles, bank, rng, n_cols, n_rows, 4) for _ in range(options.batch)]
        made = [pair for pair in made if pair]
        loss = F.cross_entropy(torch.cat([logits for logits, _ in made]), torch.cat([wanted for _, wanted in made]))
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(parameters, 1.0)
        optimizer.step()
        losses.append(loss.item())
        step += 1
        if step % options.report == 0 or step == options.steps:
            print(f"step {step}/{options.steps} loss {np.mean(losses):.3f}", flush=True)
            losses = []
        if checkpoint.due() or step == options.steps:
            checkpoint.save(tower=tower.state_dict(), decoder=decoder.state_dict(), optimizer=optimizer.state_dict(),
                            step=step)
    options.export.mkdir(parents=True, exist_ok=True)
    qwen25vl_gguf.write_decoder(options.export / "pico-qwen2.5vl-text.gguf", decoder)
    qwen25vl_gguf.write_tower(options.export / "pico-qwen2.5vl-mmproj.gguf", tower)


if __name__ == "__main__":
    main()
