"""The vision tower and projector of pico-internvl: InternViT with a pixel-shuffle MLP projector.

Tensors are [batch, tokens, width]; the class token comes first, as in the published models.
"""
import torch
import torch.nn as nn
import torch.nn.functional as F

TILE, PATCH, WIDTH, N_LAYER, N_HEAD, N_FF = 112, 14, 96, 3, 4, 256
SIDE = TILE // PATCH  # patches along a side
SHUFFLE = 4           # patches along a side that become one token
N_TOKENS = (SIDE // SHUFFLE) ** 2
N_FEATURES = SHUFFLE * SHUFFLE * WIDTH
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


def gelu(x):
    return F.gelu(x, approximate="tanh")  # ggml's


def normalized(pixels):
    """[batch, TILE, TILE, 3] bytes -> [batch, SIDE * SIDE, 3 * PATCH * PATCH] patches."""
    x = (pixels.float() / 255 - torch.tensor(MEAN, device=pixels.device)) / torch.tensor(STD, device=pixels.device)
    x = x.view(-1, SIDE, PATCH, SIDE, PATCH, 3).permute(0, 1, 3, 5, 2, 4)
    return x.reshape(-1, SIDE * SIDE, 3 * PATCH * PATCH)


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.ln1, self.ln2 = nn.LayerNorm(WIDTH, eps=1e-6), nn.LayerNorm(WIDTH, eps=1e-6)
        self.attn_q, self.attn_k, self.attn_v, self.attn_out = (nn.Linear(WIDTH, WIDTH) for _ in range(4))
        self.ffn_up, self.ffn_down = nn.Linear(WIDTH, N_FF), nn.Linear(N_FF, WIDTH)
        self.ls1, self.ls2 = nn.Parameter(torch.ones(WIDTH)), nn.Parameter(torch.ones(WIDTH))

    def forward(self, x):
        batch, n, _ = x.shape
        heads = lambda t: t.view(batch, n, N_HEAD, WIDTH // N_HEAD).transpose(1, 2)
        h = self.ln1(x)
        q, k, v = heads(self.attn_q(h)), heads(self.attn_k(h)), heads(self.attn_v(h))
        weights = torch.softmax(q @ k.transpose(-1, -2) * (WIDTH // N_HEAD) ** -0.5, -1)
        x = x + self.ls1 * self.attn_out((weights @ v).transpose(1, 2).reshape(batch, n, WIDTH))
        return x + self.ls2 * self.ffn_down(gelu(self.ffn_up(self.ln2(x))))


class Projector(nn.Module):
    def __init__(self, n_embd):
        super().__init__()
        self.norm = nn.LayerNorm(N_FEATURES)  # eps 1e-5, as InternVL's
        self.up, self.down = nn.Linear(N_FEATURES, n_embd), nn.Linear(n_embd, n_embd)

    def forward(self, features):
        """[..., N_FEATURES] -> [..., n_embd]"""
        return self.down(gelu(self.up(self.norm(features))))


class Tower(nn.Module):
    def __init__(self, n_embd):
        super().__init__()
        self.patch_embd = nn.Linear(3 * PATCH * PATCH, WIDTH)
        self.class_embd = nn.Parameter(torch.randn(WIDTH) * 0.02)
        self.position_embd = nn.Parameter(torch.randn(SIDE * SIDE + 1, WIDTH) * 0.02)
        self.blocks = nn.ModuleList(Block() for _ in range(N_LAYER))
        self.projector = Projector(n_embd)

    def patches(self, pixels):
        """[batch, TILE, TILE, 3] bytes -> [batch, SIDE * SIDE, WIDTH], the class token dropped."""
        x = self.patch_embd(normalized(pixels))
        x = torch.cat([self.class_embd.expand(len(x), 1, -1), x], 1) + self.position_embd
        for block in self.blocks:
            x = block(x)
        return x[:, 1:]

    @staticmethod
    def shuffled(x):
        """[batch, SIDE * SIDE, WIDTH] -> [batch, N_TOKENS, N_FEATURES]: squares of patches, row by row."""
        n = SIDE // SHUFFLE
        x = x.view(-1, n, SHUFFLE, n, SHUFFLE, WIDTH).permute(0, 1, 3, 2, 4, 5)
        return x.reshape(-1, n * n, N_FEATURES)

    def forward(self, pixels):
        return self.projector(self.shuffled(self.patches(pixels)))
