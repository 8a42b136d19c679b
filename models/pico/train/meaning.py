"""What a tile shows, as a fixed vector that both towers learn to say.

Every kind, colour, size and number has a vector, all at right angles; a tile means the sum of its four. The towers
learn to say it in each of a tile's tokens, whatever their number.
"""
import torch
import torch.nn as nn
import torch.nn.functional as F

from decoder import N_EMBD
from make_tiles import N_COLOR, N_KIND, N_NUMBER, N_SIZE

CLASSES = (N_KIND, N_COLOR, N_SIZE, N_NUMBER)
SHARPNESS = 10.0  # of the logits: those of a token that says it exactly are 10 and 0
EXACTNESS = 2.0   # weight of the squared distance beside four cross entropies


def hadamard(n):
    """[n, n] of 1 and -1, rows at right angles (Sylvester); n is a power of 2."""
    rows = torch.ones(1, 1)
    while len(rows) < n:
        rows = torch.cat([torch.cat([rows, rows], 1), torch.cat([rows, -rows], 1)])
    return rows


class Meaning(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("rows", hadamard(N_EMBD)[1:1 + sum(CLASSES)] * N_EMBD ** -0.5, persistent=False)
        self.firsts = [sum(CLASSES[:i]) for i in range(len(CLASSES))]

    def vector(self, attribute, index):
        return self.rows[self.firsts[attribute] + index]

    def of(self, labels):
        """[n, 4] classes -> [n, N_EMBD]"""
        return sum(self.vector(i, labels[:, i]) for i in range(len(CLASSES)))

    def logits(self, tokens):
        """[n, tokens, N_EMBD] -> [n, tokens, classes] of each attribute"""
        return (SHARPNESS * tokens @ self.rows.T).split(CLASSES, -1)

    def loss(self, tokens, labels):
        """How far each token is from what the tile means."""
        named = sum(F.cross_entropy(logits.flatten(0, 1), labels[:, i, None].expand(logits.shape[:2]).flatten())
                    for i, logits in enumerate(self.logits(tokens)))
        meant = self.of(labels)[:, None]
        return named + EXACTNESS * F.mse_loss(tokens, meant.expand_as(tokens)) / meant.pow(2).mean()
