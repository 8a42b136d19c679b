"""What both training programs share: checkpoints, the learning rate, threads and seeds."""
import os
import pathlib
import time

import numpy as np
import torch


def set_up(threads, seed):
    """Returns the device: a GPU where there is one."""
    torch.manual_seed(seed)
    if threads:
        torch.set_num_threads(threads)
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


def rng_of(seed, step):
    """Each step draws from a stream of its own, so a resumed run draws what an uncut one would."""
    return np.random.default_rng([seed, step])


def rate_at(progress, warm_up=0.02, floor=0.02):
    """Factor of the learning rate at a part of the run in [0, 1): linear warm-up, cosine decay."""
    if progress < warm_up:
        return (progress + 1e-3) / (warm_up + 1e-3)
    return floor + (1 - floor) * 0.5 * (1 + np.cos(np.pi * min(1.0, progress)))


class Checkpoint:
    """A file that always holds a whole state; `elapsed` counts the seconds of all runs."""

    def __init__(self, path, every_s=120):
        self.path = pathlib.Path(path)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.every_s = every_s
        self.before = 0.0
        self.start = self.saved = time.time()

    def load(self):
        if not self.path.exists():
            return None
        state = torch.load(self.path, map_location="cpu")
        self.before = state["elapsed"]
        return state

    def elapsed(self):
        return self.before + time.time() - self.start

    def due(self):
        return time.time() - self.saved > self.every_s

    def save(self, **state):
        partial = self.path.with_suffix(".part")
        torch.save(dict(state, elapsed=self.elapsed()), partial)
        os.replace(partial, self.path)
        self.saved = time.time()
