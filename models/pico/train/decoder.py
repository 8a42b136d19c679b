"""The language models: Qwen3 (QK norm, rotary positions) of pico-internvl and Qwen2 (biases, M-RoPE) of
pico-qwen2.5vl; both with RMS norm and a gated MLP."""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F

from vocabulary import SIZE_OF_TABLE

N_EMBD, N_LAYER, N_HEAD, N_HEAD_KV, HEAD_DIM, N_FF = 128, 4, 4, 2, 32, 384
QUERIES_AT_ONCE = 256  # in training: what is behind the last of them is not computed
RMS_EPS = 1e-6


class RmsNorm(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + RMS_EPS) * self.weight


def rotated(x, cos, sin):
    a, b = x.chunk(2, -1)
    return torch.cat([a * cos - b * sin, b * cos + a * sin], -1)


def attended(q, k, v):
    """Causal attention of the last rows, q [batch, heads, n_q, HEAD_DIM], to all: k, v [batch, heads, n, HEAD_DIM]."""
    n_q, first = q.shape[2], k.shape[2] - q.shape[2]
    parts = []
    for begin in range(0, n_q, QUERIES_AT_ONCE):
        end = min(begin + QUERIES_AT_ONCE, n_q)
        n_k = first + end
        later = torch.full((end - begin, n_k), -1e9, device=q.device).triu(1 + first + begin)
        weights = torch.softmax(q[:, :, begin:end] @ k[:, :, :n_k].transpose(-1, -2) * HEAD_DIM ** -0.5 + later, -1)
        parts.append(weights @ v[:, :, :n_k])
    return torch.cat(parts, 2)


class Layer(nn.Module):
    def __init__(self, has_qk_norm, has_qkv_bias):
        super().__init__()
        self.attn_norm, self.ffn_norm = RmsNorm(N_EMBD), RmsNorm(N_EMBD)
        if has_qk_norm:
            self.attn_q_norm, self.attn_k_norm = RmsNorm(HEAD_DIM), RmsNorm(HEAD_DIM)
        else:
            self.attn_q_norm = self.attn_k_norm = lambda x: x
        self.attn_q = nn.Linear(N_EMBD, N_HEAD * HEAD_DIM, has_qkv_bias)
        self.attn_k = nn.Linear(N_EMBD, N_HEAD_KV * HEAD_DIM, has_qkv_bias)
        self.attn_v = nn.Linear(N_EMBD, N_HEAD_KV * HEAD_DIM, has_qkv_bias)
        self.attn_output = nn.Linear(N_HEAD * HEAD_DIM, N_EMBD, False)
        self.ffn_gate, self.ffn_up = nn.Linear(N_EMBD, N_FF, False), nn.Linear(N_EMBD, N_FF, False)
        self.ffn_down = nn.Linear(N_FF, N_EMBD, False)

    def forward(self, x, cos, sin, first=0):
        """`first`: only the rows from there on are queries (and come back)."""
        batch, n, _ = x.shape
        h = self.attn_norm(x)
        x, hq = x[:, first:], h[:, first:]
        q = self.attn_q_norm(self.attn_q(hq).view(batch, n - first, N_HEAD, HEAD_DIM)).transpose(1, 2)
        k = self.attn_k_norm(self.attn_k(h).view(batch, n, N_HEAD_KV, HEAD_DIM)).transpose(1, 2)
        v = self.attn_v(h).view(batch, n, N_HEAD_KV, HEAD_DIM).transpose(1, 2)
        q, k = rotated(q, cos[first:], sin[first:]), rotated(k, cos, sin)
        group = N_HEAD // N_HEAD_KV
        seen = attended(q, k.repeat_interleave(group, 1), v.repeat_interleave(group, 1))
        x = x + self.attn_output(seen.transpose(1, 2).reshape(batch, n - first, -1))
        h = self.ffn_norm(x)
        return x + self.ffn_down(F.silu(self.ffn_gate(h)) * self.ffn_up(h))


class Decoder(nn.Module):
    """`sections`: rotary pairs per axis of the positions."""

    def __init__(self, rope_base, sections=(HEAD_DIM // 2,), has_qk_norm=True, has_qkv_bias=False):
        super().__init__()
        self.rope_base, self.sections = rope_base, sections
        self.frequency = rope_base ** (-torch.arange(HEAD_DIM // 2).double() * 2 / HEAD_DIM)
        self.axis = torch.repeat_interleave(torch.arange(len(sections)), torch.tensor(sections))
        self.token_embd = nn.Embedding(SIZE_OF_TABLE, N_EMBD)
        self.layers = nn.ModuleList(Layer(has_qk_norm, has_qkv_bias) for _ in range(N_LAYER))
        self.output_norm = RmsNorm(N_EMBD)
        self.output = nn.Linear(N_EMBD, SIZE_OF_TABLE, False)
        nn.init.normal_(self.token_embd.weight, std=0.05)
        for module in self.modules():
            if isinstance(module, nn.Linear):
                nn.init.normal_(module.weight, std=1 / math.sqrt(module.in_features))
                if module.bias is not None:
                    nn.init.zeros_(module.bias)
        for layer in self.layers:
            layer.attn_output.weight.data *= 0.4
            layer.ffn_down.weight.data *= 0.4

    def forward(self, x, positions, first=0):
        """x [batch, n, N_EMBD], positions [axes, n] on the CPU -> normed states of the rows from `first` on."""
        angle = positions[self.axis].T.double() * self.frequency
        cos, sin = angle.cos().float().to(x.device), angle.sin().float().to(x.device)
        for layer in self.layers[:-1]:
            x = layer(x, cos, sin)
        return self.output_norm(self.layers[-1](x, cos, sin, first))
