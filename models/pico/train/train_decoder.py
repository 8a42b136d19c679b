#!/usr/bin/env python3
"""Trains the language model and the projector on the features of a trained tower.

    train_decoder.py --tiles DIR --held-out DIR --tower CHECKPOINT --out CHECKPOINT [--family NAME]
                     [--init TEXT.gguf] [--stage TILES,BATCH,QUESTIONS,GAP,RATE,STEPS]... [--scale F]

Pictures are put together from tiles anew at every step (scenes.py). The stages go from few tiles to
many; gaps of random width between the positions of tiles teach it positions far beyond the tokens
it is shown. The learning rate falls to nearly nothing at the end of every stage: a stage that is cut
before is worse than none. Started again with the same --out, it goes on from the checkpoint.
"""
import argparse
import hashlib
import pathlib
import time

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

import gguf_io
import training
from family import FAMILIES, VISUAL
from scenes import Bank, Scene, conversation
from tiles import Tiles
from train_tower import Classifier
from vocabulary import EOT

# tiles, batch, questions, gap (tiles), rate, steps
STAGES = [(6, 32, 4, 300, 1e-3, 2000), (24, 24, 6, 100, 1e-3, 3000), (96, 8, 8, 20, 7e-4, 2000),
          (320, 3, 8, 6, 4e-4, 800), (700, 1, 8, 3, 2e-4, 400)]
MIX = dict(number=0.7, exists=0.15, which=0.15)  # "count" is there too, but was not trained
COLORED = 0.65  # share of pictures whose objects come in all colours and sizes
FILMS = 0.2     # share of batches that are films, each tile a frame; they have a quarter of the tiles


@torch.no_grad()
def features_of(family, tower, tiles, path, device):
    """[n, tokens of a tile, features] f16, computed once for a tower and kept in a file."""
    shape = (len(tiles), family.n_tokens, family.n_features)
    digest = hashlib.sha256()
    for values in tower.state_dict().values():
        digest.update(values.cpu().numpy().tobytes())
    path = path.with_name(f"{path.name}-{digest.hexdigest()[:12]}")
    if not path.exists() or path.stat().st_size != 2 * np.prod(shape):
        partial = path.with_suffix(".part")
        with open(partial, "wb") as file:
            for i in range(0, len(tiles), 200):
                pixels = torch.from_numpy(np.array(tiles.pixels[i:i + 200])).to(device)
                file.write(tower.shuffled(tower.patches(pixels)).cpu().half().numpy().tobytes())
        partial.rename(path)
    return np.memmap(path, np.float16, "r", shape=shape)


class Batch:
    """`batch` pictures of one grid of tiles, or films. ids [batch, n_text] and wanted likewise are what follows the
    layout, positions [batch, axes, n] of all."""

    def __init__(self, family, bank, rng, batch, n_tiles, n_questions, gap):
        rows, self.tiles, self.firsts, positions = [], [], [], []
        self.as_film = as_film = family.has_films and rng.random() < FILMS
        grid = family.grid(max(1, n_tiles // 4) if as_film else n_tiles, rng)
        layout = None
        while len(rows) < batch:
            scene = Scene(bank, grid[0] * grid[1], rng, rng.random() < COLORED, family.has_thumbnail and not as_film)
            questions = scene.questions(n_questions, MIX)
            if not questions:
                continue
            ids, wanted, firsts = conversation(questions)
            self.firsts += [(len(rows), what, scene.colored, place, token, i)
                            for i, (what, place, token) in enumerate(firsts)]
            rows.append((ids, wanted))
            self.tiles.append(scene.tiles)
            layout = layout or family.layout(len(scene.tiles), as_film)
            positions.append(family.positions(layout, grid, gap, rng))
        self.layout = torch.tensor(layout)
        self.order = torch.from_numpy(family.order(len(self.tiles[0]), grid))
        n_text = max(len(ids) for ids, _ in rows)
        self.ids = torch.full((batch, n_text), EOT)
        self.wanted = torch.full((batch, n_text), -100)
        for i, (ids, wanted) in enumerate(rows):
            self.ids[i, :len(ids)] = torch.tensor(ids)
            self.wanted[i, :len(ids)] = torch.tensor(wanted)
        self.positions = torch.from_numpy(np.stack(
            [np.concatenate([p, np.tile(p.max() + 1 + np.arange(n_text), (len(p), 1))], 1) for p in positions]))


def states(decoder, projector, features, batch, device):
    """Normed states of the text after the picture, [batch, n_text, N_EMBD]."""
    chosen = torch.from_numpy(features[np.array(batch.tiles)].astype(np.float32)).to(device)
    seen = projector(chosen).flatten(1, 2)[:, batch.order]
    layout = batch.layout.to(device)
    prompt = decoder.token_embd(layout.clamp(min=0)).repeat(len(seen), 1, 1)
    prompt[:, layout == VISUAL] = seen
    x = torch.cat([prompt, decoder.token_embd(batch.ids.to(device))], 1)
    return decoder(x, batch.positions.to(device), first=len(layout))


@torch.no_grad()
def first_token_accuracy(family, decoder, projector, features, bank, rng, n_pictures, n_tiles, device, gap=0):
    """Right answers to the first questions of held-out pictures, by kind of question and of picture."""
    tally = {}
    per_batch = max(1, min(8, 256 // n_tiles))
    for _ in range(-(-n_pictures // per_batch)):
        batch = Batch(family, bank, rng, per_batch, n_tiles, 4, gap)
        h = states(decoder, projector, features, batch, device)
        for row, what, colored, place, token, _ in batch.firsts:
            right = decoder.output(h[row, place]).argmax().item() == token
            kind = ("film " if batch.as_film else "") + what + ("+" if colored else "")
            tally.setdefault(kind, []).append(right)
    return {what: (float(np.mean(rights)), len(rights)) for what, rights in sorted(tally.items())}


def show(tally):
    return " ".join(f"{what} {rate:.2f} ({n})" for what, (rate, n) in tally.items())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tiles", required=True)
    parser.add_argument("--held-out", required=True)
    parser.add_argument("--tower", required=True, help="checkpoint of train_tower.py")
    parser.add_argument("--out", required=True)
    parser.add_argument("--family", choices=FAMILIES, default="internvl")
    parser.add_argument("--init", help="text GGUF of pico-internvl, or checkpoint (*.pt) of either family, whose "
                                       "projector is taken too if it is of the same")
    parser.add_argument("--most-tiles", type=int, default=0, help="use only the first tiles (0: all)")
    parser.add_argument("--stage", action="append", help="in place of the built-in stages")
    parser.add_argument("--scale", type=float, default=1, help="factor of all numbers of steps")
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--report", type=int, default=100, help="steps between reports")
    options = parser.parse_args()
    device = training.set_up(options.threads, options.seed)
    stages = [tuple(float(v) for v in text.split(",")) for text in options.stage or []] or STAGES

    family = FAMILIES[options.family]
    classifier = Classifier(family)
    classifier.load_state_dict(torch.load(options.tower, map_location="cpu")["model"])
    tower = classifier.tower.to(device)
    stem = pathlib.Path(options.out)
    tiles, held_out = Tiles(options.tiles, options.most_tiles), Tiles(options.held_out)
    features = features_of(family, tower, tiles, stem.with_suffix(".features"), device)
    held_features = features_of(family, tower, held_out, stem.with_suffix(".held-out"), device)
    bank, held_bank = Bank(tiles.labels), Bank(held_out.labels)
    print("features are there", flush=True)

    decoder, projector = family.new_decoder(), tower.projector
    if options.init and options.init.endswith(".pt"):
        earlier = torch.load(options.init, map_location="cpu")
        if earlier["family"] == family.name:
            decoder.load_state_dict(earlier["decoder"])
            projector.load_state_dict(earlier["projector"])
        else:
            print("not taken over:", *decoder.load_state_dict(earlier["decoder"], strict=False))
    elif options.init:
        print("not taken over:", gguf_io.load_decoder(options.init, decoder))
    decoder.to(device)
    parameters = [*decoder.parameters(), *projector.parameters()]
    optimizer = torch.optim.AdamW(parameters, 1e-3, betas=(0.9, 0.98), weight_decay=0.02)
    checkpoint = training.Checkpoint(options.out)
    stage_0 = step_0 = 0
    state = checkpoint.load()
    if state:
        decoder.load_state_dict(state["decoder"])
        projector.load_state_dict(state["projector"])
        optimizer.load_state_dict(state["optimizer"])
        stage_0, step_0 = state["stage"], state["step"]
    print(f"{sum(p.numel() for p in parameters)} parameters, from stage {stage_0} step {step_0}", flush=True)

    for stage in range(stage_0, len(stages)):
        n_tiles, n_batch, n_questions, gap = (int(v) for v in stages[stage][:4])
        rate, n_steps = stages[stage][4], max(1, int(stages[stage][5] * options.scale))
        losses, start = [], time.time()
        for step in range(step_0, n_steps):
            rng = training.rng_of(options.seed, stage * 1_000_000 + step)
            for group in optimizer.param_groups:
                group["lr"] = rate * training.rate_at(step / n_steps)
            batch = Batch(family, bank, rng, n_batch, int(rng.integers(max(1, n_tiles // 3), n_tiles + 1)), n_questions,
                          gap)
            h = states(decoder, projector, features, batch, device)[:, :-1]
            wanted = batch.wanted[:, 1:].to(device)
            answers = wanted >= 0
            loss = F.cross_entropy(decoder.output(h[answers]), wanted[answers])
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(parameters, 1.0)
            optimizer.step()
            losses.append(loss.item())
            if (step + 1) % options.report == 0 or step + 1 == n_steps:
                tally = first_token_accuracy(family, decoder, projector, held_features, held_bank,
                                             training.rng_of(options.seed, 10**9 + step), 24, n_tiles, device)
                print(f"stage {stage} ({n_tiles} tiles) step {step + 1}/{n_steps} loss {np.mean(losses):.3f} "
                      f"held-out {show(tally)}; {(time.time() - start) / len(losses):.2f} s/step", flush=True)
                losses, start = [], time.time()
            if checkpoint.due() or step + 1 == n_steps:
                last = step + 1 == n_steps
                checkpoint.save(decoder=decoder.state_dict(), projector=projector.state_dict(),
                                tower=tower.state_dict(), optimizer=optimizer.state_dict(),
                                stage=stage + last, step=0 if last else step + 1, family=family.name)
        step_0 = 0


if __name__ == "__main__":
    main()
