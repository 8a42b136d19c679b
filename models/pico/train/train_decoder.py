#!/usr/bin/env python3
"""Trains the language model on the tokens of a trained tower.

    train_decoder.py --tiles DIR --held-out DIR --tower CHECKPOINT --out CHECKPOINT [--family NAME]
                     [--stage TILES,BATCH,QUESTIONS,GAP,RATE,STEPS]... [--scale F]

Pictures and films are put together from tiles anew at every step (scenes.py). The stages go from few tiles to
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

import training
from bank import Bank
from conversation import conversation, earlier_turn
from family import FAMILIES, Stage
from layout import VISUAL
from questions import Questions
from scenes import Scene
from tiles import Tiles
from train_tower import Classifier
from vocabulary import EOT

TOKEN_SCALE = 40.0  # factor of the tower's tokens
COLORED = 0.65    # share of pictures whose objects come in all colours and sizes
FILMS = 0.2       # share of batches that are films, each tile a frame; they have a quarter of the tiles
TWO_PICTURES = 0.15  # share of the other batches
OF_PICTURES = dict(number=0.55, exists=0.12, which=0.12, count=0.11, where=0.1)
OF_FILMS = dict(number=0.4, exists=0.08, which=0.1, count=0.07)
OF_TIME = 0.35    # of the questions about films


@torch.no_grad()
def tokens_of(tower, tiles, path, device):
    """[n, tokens of a tile, N_EMBD] f16, computed once for a tower and a set of tiles and kept in a file."""
    digest = hashlib.sha256()
    for values in tower.state_dict().values():
        digest.update(values.cpu().numpy().tobytes())
    digest.update(tiles.labels.tobytes())
    path = path.with_name(f"{path.name}-{digest.hexdigest()[:12]}.npy")
    if not path.exists():
        tokens = [tower(torch.from_numpy(np.array(tiles.pixels[i:i + 200])).to(device)).cpu().half().numpy()
                  for i in range(0, len(tiles), 200)]
        partial = path.with_suffix(".part.npy")
        np.save(partial, np.concatenate(tokens))
        partial.rename(path)
    return np.load(path, mmap_mode="r")


def scale_tokens(tower):
    """Beside what layers with random weights add to them, tokens of a norm of 2 would not be heard."""
    for values in tower.projector.down.parameters():
        values.data *= TOKEN_SCALE


class Batch:
    """`batch` prompts of one layout. ids [batch, n_text] and wanted likewise are what follows it, positions [axes, n]
    those of all."""

    def __init__(self, family, bank, rng, batch, n_tiles, n_questions, gap):
        rows, self.tiles, self.firsts = [], [], []
        as_film = rng.random() < FILMS
        self.layout = layout = family.new_layout()
        layout.text("<|im_start|>user\n")
        if as_film:
            family.film(layout, max(2, n_tiles // 4), 4 * gap, rng)
        elif n_tiles > 3 and rng.random() < TWO_PICTURES:
            n_first = int(rng.integers(1, n_tiles))
            family.picture(layout, n_first, gap, rng)
            if rng.random() < 0.5:
                layout.text(earlier_turn(rng))
            family.picture(layout, n_tiles - n_first, gap, rng)
        else:
            family.picture(layout, n_tiles, gap, rng)
        mix = dict(OF_FILMS, **dict.fromkeys(family.time_questions, OF_TIME / len(family.time_questions))) \
            if as_film else OF_PICTURES
        while len(rows) < batch:
            scene = Scene(bank, layout, rng, rng.random() < COLORED)
            questions = Questions(scene).draw(n_questions, mix)
            if not questions:
                continue
            ids, wanted, firsts = conversation(questions)
            self.firsts += [(len(rows), what, scene.colored, place, token) for what, place, token in firsts]
            rows.append((ids, wanted))
            self.tiles.append(scene.tiles)
        n_text = max(len(ids) for ids, _ in rows)
        self.ids = torch.full((batch, n_text), EOT)
        self.wanted = torch.full((batch, n_text), -100)
        for i, (ids, wanted) in enumerate(rows):
            self.ids[i, :len(ids)] = torch.tensor(ids)
            self.wanted[i, :len(ids)] = torch.tensor(wanted)
        after = np.tile(layout.next + np.arange(n_text), (layout.n_axes, 1))
        self.positions = torch.from_numpy(np.concatenate([np.array(layout.positions).T, after], 1))


def states(decoder, tokens, batch, device):
    """Normed states of the text after the picture, [batch, n_text, N_EMBD]."""
    seen = torch.from_numpy(tokens[np.array(batch.tiles)].astype(np.float32)).to(device)
    layout = torch.tensor(batch.layout.tokens, device=device)
    prompt = decoder.token_embd(layout.clamp(min=0)).repeat(len(seen), 1, 1)
    prompt[:, layout == VISUAL] = seen.flatten(1, 2)[:, batch.layout.order]
    x = torch.cat([prompt, decoder.token_embd(batch.ids.to(device))], 1)
    return decoder(x, batch.positions, first=len(layout))


@torch.no_grad()
def note_right(tally, decoder, h, batch):
    """Adds to `tally` which answers begin with the right token, by kind of question and of picture."""
    for row, what, colored, place, token in batch.firsts:
        kind = ("film " if batch.layout.is_film else "") + what + ("+" if colored else "")
        tally.setdefault(kind, []).append(decoder.output(h[row, place]).argmax().item() == token)


@torch.no_grad()
def held_out_tally(family, decoder, tokens, bank, rng, n_pictures, n_tiles, device):
    tally = {}
    per_batch = max(1, min(8, 256 // n_tiles))
    for _ in range(-(-n_pictures // per_batch)):
        batch = Batch(family, bank, rng, per_batch, n_tiles, 4, gap=0)
        note_right(tally, decoder, states(decoder, tokens, batch, device), batch)
    return tally


def stage_of(text):
    return Stage(*(kind(value) for kind, value in zip(Stage.__annotations__.values(), text.split(","), strict=True)))


def show(tally):
    return ", ".join(f"{what} {np.mean(rights):.2f} ({len(rights)})" for what, rights in sorted(tally.items()))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tiles", required=True)
    parser.add_argument("--held-out", required=True)
    parser.add_argument("--tower", required=True, help="checkpoint of train_tower.py")
    parser.add_argument("--out", required=True)
    parser.add_argument("--family", choices=FAMILIES, default="internvl")
    parser.add_argument("--stage", action="append", type=stage_of, help="in place of the family's")
    parser.add_argument("--scale", type=float, default=1, help="factor of all numbers of steps")
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--report", type=int, default=100, help="steps between reports")
    options = parser.parse_args()
    device = training.set_up(options.threads, options.seed)
    family = FAMILIES[options.family]
    stages = options.stage or family.stages
    classifier = Classifier(family)
    classifier.load_state_dict(torch.load(options.tower, map_location="cpu")["model"])
    tower = classifier.tower.to(device)
    scale_tokens(tower)
    stem = pathlib.Path(options.out)
    tiles, held_out = Tiles(options.tiles), Tiles(options.held_out)
    tokens = tokens_of(tower, tiles, stem.with_suffix(".tokens"), device)
    held_tokens = tokens_of(tower, held_out, stem.with_suffix(".held-out"), device)
    bank, held_bank = Bank(tiles.labels), Bank(held_out.labels)
    print("tokens are there", flush=True)

    decoder = family.new_decoder()
    decoder.to(device)
    optimizer = torch.optim.AdamW(decoder.parameters(), 1e-3, betas=(0.9, 0.98), weight_decay=0.02)
    checkpoint = training.Checkpoint(options.out)
    stage_0 = step_0 = 0
    state = checkpoint.load()
    if state:
        decoder.load_state_dict(state["decoder"])
        optimizer.load_state_dict(state["optimizer"])
        stage_0, step_0 = state["stage"], state["step"]
    print(f"{sum(p.numel() for p in decoder.parameters())} parameters, from stage {stage_0} step {step_0}", flush=True)

    for stage in range(stage_0, len(stages)):
        n_tiles, n_batch, n_questions, gap, rate, n_steps = stages[stage]
        n_steps = max(1, int(n_steps * options.scale))
        losses, learned, start = [], {}, time.time()
        for step in range(step_0, n_steps):
            rng = training.rng_of(options.seed, stage * 1_000_000 + step)
            for group in optimizer.param_groups:
                group["lr"] = rate * training.rate_at(step / n_steps)
            batch = Batch(family, bank, rng, n_batch, int(rng.integers(max(1, n_tiles // 3), n_tiles + 1)), n_questions,
                          gap)
            h = states(decoder, tokens, batch, device)[:, :-1]
            wanted = batch.wanted[:, 1:].to(device)
            answers = wanted >= 0
            loss = F.cross_entropy(decoder.output(h[answers]), wanted[answers])
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(decoder.parameters(), 1.0)
            optimizer.step()
            losses.append(loss.item())
            note_right(learned, decoder, h, batch)
            if (step + 1) % options.report == 0 or step + 1 == n_steps:
                tally = held_out_tally(family, decoder, held_tokens, held_bank,
                                       training.rng_of(options.seed, 10**9 + step), 24, n_tiles, device)
                print(f"stage {stage} ({n_tiles} tiles) step {step + 1}/{n_steps} loss {np.mean(losses):.3f} "
                      f"first tokens right {show(learned)}; held-out {show(tally)}; "
                      f"{(time.time() - start) / len(losses):.2f} s/step", flush=True)
                losses, learned, start = [], {}, time.time()
            if checkpoint.due() or step + 1 == n_steps:
                last = step + 1 == n_steps
                checkpoint.save(decoder=decoder.state_dict(), tower=tower.state_dict(), family=family.name,
                                optimizer=optimizer.state_dict(), stage=stage + last, step=0 if last else step + 1)
        step_0 = 0


if __name__ == "__main__":
    main()
