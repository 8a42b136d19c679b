"""pico-qwen2.5vl in PyTorch: the vision tower of Qwen2.5-VL (window and full attention, 2-D rotary positions, two
frames to a patch) and its language model, Qwen2 with M-RoPE. Widths are pico's.

A picture is [height, width] pixels, both multiples of 2 * PATCH; its patches come in squares of 2 x 2, square by
square in reading order, and so do the tokens, one to a square.
"""
import math

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

from decoder import RmsNorm
from tower import MEAN, STD, gelu
from vocabulary import SIZE_OF_TABLE

PATCH, MERGE, WINDOW = 14, 2, 112          # pixels, patches, pixels
WIDTH, N_LAYER, N_HEAD, N_FF = 96, 4, 3, 224
FULL_EVERY = 4                             # every so many layers, one attends to the whole picture
HEAD = WIDTH // N_HEAD                     # a multiple of 16, which the program asks for
N_EMBD, LM_LAYER, LM_HEAD, LM_HEAD_KV, HEAD_DIM, LM_FF = 128, 4, 4, 2, 32, 384
SECTIONS = (4, 6, 6)                       # rotary pairs for time, row and column
ROPE_BASE = 1e6
RMS_EPS = 1e-6


def patches_of(frames):
    """[2, height, width, 3] bytes -> [n_patches, 2 * 3 * PATCH * PATCH]: for each frame, its channels."""
    x = (frames.float() / 255 - torch.tensor(MEAN)) / torch.tensor(STD)
    _, height, width, _ = x.shape
    rows, cols = height // PATCH, width // PATCH
    x = x.view(2, rows // 2, 2, PATCH, cols // 2, 2, PATCH, 3)
    x = x.permute(1, 4, 2, 5, 0, 7, 3, 6)  # square row, square column, row, column, frame, channel, y, x
    return x.reshape(rows * cols, -1)


def places_of(height, width):
    """Row and column of every patch, and the number of the window that it lies in."""
    rows, cols = height // PATCH, width // PATCH
    order = np.arange(rows * cols).reshape(rows // 2, 2, cols // 2, 2).transpose(0, 2, 1, 3).reshape(-1)
    row, col = order // cols, order % cols
    side = WINDOW // PATCH
    return torch.from_numpy(row), torch.from_numpy(col), torch.from_numpy(row // side * (-(-cols // side)) + col // side)


def turned(x, cos, sin):
    """Rotates the pairs (i, i + half) of the last dimension."""
    half = x.shape[-1] // 2
    a, b = x[..., :half], x[..., half:]
    return torch.cat([a * cos - b * sin, b * cos + a * sin], -1)


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.ln1, self.ln2 = RmsNorm(WIDTH), RmsNorm(WIDTH)
        self.attn_q, self.attn_k, self.attn_v, self.attn_out = (nn.Linear(WIDTH, WIDTH) for _ in range(4))
        self.ffn_gate, self.ffn_up, self.ffn_down = nn.Linear(WIDTH, N_FF), nn.Linear(WIDTH, N_FF), nn.Linear(N_FF, WIDTH)

    def forward(self, x, cos, sin, mask):
        n = len(x)
        heads = lambda t: t.view(n, N_HEAD, HEAD).transpose(0, 1)
        h = self.ln1(x)
        q, k, v = turned(heads(self.attn_q(h)), cos, sin), turned(heads(self.attn_k(h)), cos, sin), heads(self.attn_v(h))
        scores = q @ k.transpose(-1, -2) * HEAD ** -0.5
        weights = torch.softmax(scores if mask is None else scores + mask, -1)
        x = x + self.attn_out((weights @ v).transpose(0, 1).reshape(n, WIDTH))
        h = self.ln2(x)
        return x + self.ffn_down(F.silu(self.ffn_gate(h)) * self.ffn_up(h))


class Tower(nn.Module):
    def __init__(self):
        super().__init__()
        self.patch_embd = nn.Linear(2 * 3 * PATCH * PATCH, WIDTH, bias=False)
        self.blocks = nn.ModuleList(Block() for _ in range(N_LAYER))
        self.post_ln = RmsNorm(WIDTH)
        merged = MERGE * MERGE * WIDTH
        self.up, self.down = nn.Linear(merged, merged), nn.Linear(merged, N_EMBD)

    def forward(self, frames):
        """[2, height, width, 3] bytes (a still picture twice) -> [n_tokens, N_EMBD]"""
        row, col, window = places_of(*frames.shape[1:3])
        frequency = 10000.0 ** (-torch.arange(HEAD // 4).float() * 4 / HEAD)
        angle = torch.cat([row[:, None] * frequency, col[:, None] * frequency], -1)
        cos, sin = angle.cos(), angle.sin()
        mask = torch.where(window[:, None] == window[None, :], 0.0, -1e9)
        x = self.patch_embd(patches_of(frames))
        for i, block in enumerate(self.blocks):
            x = block(x, cos, sin, None if (i + 1) % FULL_EVERY == 0 else mask)
        x = self.post_ln(x).view(-1, MERGE * MERGE * WIDTH)
        return self.down(gelu(self.up(x)))


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.attn_norm, self.ffn_norm = RmsNorm(N_EMBD), RmsNorm(N_EMBD)
        self.attn_q = nn.Linear(N_EMBD, LM_HEAD * HEAD_DIM)
        self.attn_k, self.attn_v = (nn.Linear(N_EMBD, LM_HEAD_KV * HEAD_DIM) for _ in range(2))
        self.attn_output = nn.Linear(LM_HEAD * HEAD_DIM, N_EMBD, False)
        self.ffn_gate, self.ffn_up = nn.Linear(N_EMBD, LM_FF, False), nn.Linear(N_EMBD, LM_FF, False)
        self.ffn_down = nn.Linear(LM_FF, N_EMBD, False)

    def forward(self, x, cos, sin, mask):
        n = len(x)
        h = self.attn_norm(x)
        q = turned(self.attn_q(h).view(n, LM_HEAD, HEAD_DIM).transpose(0, 1), cos, sin)
        k = turned(self.attn_k(h).view(n, LM_HEAD_KV, HEAD_DIM).transpose(0, 1), cos, sin)
        v = self.attn_v(h).view(n, LM_HEAD_KV, HEAD_DIM).transpose(0, 1)
        k, v = (t.repeat_interleave(LM_HEAD // LM_HEAD_KV, 0) for t in (k, v))
        weights = torch.softmax(q @ k.transpose(-1, -2) * HEAD_DIM ** -0.5 + mask, -1)
        x = x + self.attn_output((weights @ v).transpose(0, 1).reshape(n, -1))
        h = self.ffn_norm(x)
        return x + self.ffn_down(F.silu(self.ffn_gate(h)) * self.ffn_up(h))


class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.token_embd = nn.Embedding(SIZE_OF_TABLE, N_EMBD)
        self.layers = nn.ModuleList(Layer() for _ in range(LM_LAYER))
        self.output_norm = RmsNorm(N_EMBD)
        self.output = nn.Linear(N_EMBD, SIZE_OF_TABLE, False)
        nn.init.normal_(self.token_embd.weight, std=0.05)
        for module in self.modules():
            if isinstance(module, nn.Linear):
                nn.init.normal_(module.weight, std=1 / math.sqrt(module.in_features))

    def forward(self, x, positions):
        """x [n, N_EMBD], positions [3, n] (time, row, column) -> logits [n, SIZE_OF_TABLE]"""
        frequency = ROPE_BASE ** (-torch.arange(HEAD_DIM // 2).float() * 2 / HEAD_DIM)
        axis = torch.repeat_interleave(torch.arange(3), torch.tensor(SECTIONS))
        angle = positions.float()[axis].T * frequency
        mask = torch.full((len(x), len(x)), -1e9).triu(1)
        for layer in self.layers:
            x = layer(x, angle.cos(), angle.sin(), mask)
        return self.output(self.output_norm(x))


def positions_of(n_before, grid, n_after):
    """M-RoPE: text counts on all three axes; a picture's tokens share its start in time and count rows and columns
    from it; the text goes on after the largest. -> [3, n]"""
    rows, cols = grid
    before = np.tile(np.arange(n_before), (3, 1))
    row, col = np.divmod(np.arange(rows * cols), cols)
    picture = n_before + np.stack([np.zeros(rows * cols, int), row, col])
    after = np.tile(n_before + max(rows, cols) + np.arange(n_after), (3, 1))
    return torch.from_numpy(np.concatenate([before, picture, after], 1))
