"""The vision tower of pico-qwen2.5vl: Qwen2.5-VL's, with windows as large as the tiles of which pictures are made.

What happens within a window depends on nothing outside it (rotary positions are relative), so the tower
is trained on single tiles. The layer that attends to the whole picture has an attention of zeros: to learn
not to be led astray by 40,000 patches, it would have to be shown as many.
"""
import torch
import torch.nn as nn
import torch.nn.functional as F

from decoder import RmsNorm, rotated
from tower import MEAN, STD, gelu

PATCH, MERGE, WINDOW = 14, 2, 112          # pixels, patches, pixels
WIDTH, N_LAYER, N_HEAD, N_FF = 96, 4, 3, 224
FULL_EVERY = 4                             # every so many layers, one attends to the whole picture
HEAD = WIDTH // N_HEAD                     # a multiple of 16, which the program asks for
SIDE = WINDOW // (PATCH * MERGE)           # tokens along a side of a tile
N_TOKENS = SIDE * SIDE
N_FEATURES = MERGE * MERGE * WIDTH


def normalized(pixels):
    """[batch, WINDOW, WINDOW, 3] bytes -> [batch, patches, 3 * PATCH * PATCH]: squares of MERGE x MERGE patches in
    reading order."""
    x = (pixels.float() / 255 - torch.tensor(MEAN, device=pixels.device)) / torch.tensor(STD, device=pixels.device)
    x = x.view(-1, SIDE, MERGE, PATCH, SIDE, MERGE, PATCH, 3)
    x = x.permute(0, 1, 4, 2, 5, 7, 3, 6)  # square row, square column, row, column, channel, y, x
    return x.reshape(len(pixels), SIDE * SIDE * MERGE * MERGE, 3 * PATCH * PATCH)


def angles(device):
    """Rotary angles of a tile's patches, [patches, HEAD / 2]: the first half by row, the second by column."""
    index = torch.arange(SIDE * MERGE, device=device)
    grid = torch.stack(torch.meshgrid(index, index, indexing="ij"))
    place = grid.view(2, SIDE, MERGE, SIDE, MERGE).permute(0, 1, 3, 2, 4).reshape(2, -1).float()
    frequency = 10000.0 ** (-torch.arange(HEAD // 4, device=device).float() * 4 / HEAD)
    return torch.cat([place[0][:, None] * frequency, place[1][:, None] * frequency], -1)


class Block(nn.Module):
    def __init__(self, attends):
        super().__init__()
        self.ln1, self.ln2 = RmsNorm(WIDTH), RmsNorm(WIDTH)
        self.attn_q, self.attn_k, self.attn_v, self.attn_out = (nn.Linear(WIDTH, WIDTH) for _ in range(4))
        self.ffn_gate, self.ffn_up = nn.Linear(WIDTH, N_FF), nn.Linear(WIDTH, N_FF)
        self.ffn_down = nn.Linear(N_FF, WIDTH)
        self.attends = attends
        if not attends:
            for part in (self.attn_q, self.attn_k, self.attn_v, self.attn_out):
                for values in part.parameters():
                    nn.init.zeros_(values)
                    values.requires_grad = False

    def forward(self, x, cos, sin):
        if self.attends:
            batch, n, _ = x.shape
            heads = lambda t: t.view(batch, n, N_HEAD, HEAD).transpose(1, 2)
            h = self.ln1(x)
            q, k = rotated(heads(self.attn_q(h)), cos, sin), rotated(heads(self.attn_k(h)), cos, sin)
            weights = torch.softmax(q @ k.transpose(-1, -2) * HEAD ** -0.5, -1)
            x = x + self.attn_out((weights @ heads(self.attn_v(h))).transpose(1, 2).reshape(batch, n, WIDTH))
        h = self.ln2(x)
        return x + self.ffn_down(F.silu(self.ffn_gate(h)) * self.ffn_up(h))


class Merger(nn.Module):
    def __init__(self, n_embd):
        super().__init__()
        self.up, self.down = nn.Linear(N_FEATURES, N_FEATURES), nn.Linear(N_FEATURES, n_embd)

    def forward(self, features):
        """[..., N_FEATURES] -> [..., n_embd]"""
        return self.down(gelu(self.up(features)))


class Tower(nn.Module):
    """With the interface of tower.Tower."""

    def __init__(self, n_embd):
        super().__init__()
        self.patch_embd = nn.Linear(3 * PATCH * PATCH, WIDTH, bias=False)  # of a still picture; see qwen25vl_gguf.py
        self.blocks = nn.ModuleList(Block(attends=(i + 1) % FULL_EVERY != 0) for i in range(N_LAYER))
        self.post_ln = RmsNorm(WIDTH)
        self.projector = Merger(n_embd)

    def patches(self, pixels):
        """[batch, WINDOW, WINDOW, 3] bytes -> [batch, patches, WIDTH]"""
        angle = angles(pixels.device)
        cos, sin = angle.cos(), angle.sin()
        x = self.patch_embd(normalized(pixels))
        for block in self.blocks:
            x = block(x, cos, sin)
        return self.post_ln(x)

    @staticmethod
    def shuffled(x):
        """[batch, patches, WIDTH] -> [batch, N_TOKENS, N_FEATURES]"""
        return x.reshape(len(x), N_TOKENS, N_FEATURES)

    def forward(self, pixels):
        return self.projector(self.shuffled(self.patches(pixels)))
