"""Writes pico-qwen2.5vl as two GGUF files: `qwen2vl` and `clip` with a `qwen2.5vl_merger`."""
import numpy as np

import decoder as D
import qwen25vl as Q
from gguf_io import finish, text_writer, vision_writer


def _f16(values):
    return np.ascontiguousarray(values.detach().cpu().numpy(), np.float16)


def _f32(values):
    return np.ascontiguousarray(values.detach().cpu().numpy(), np.float32)


def write_decoder(path, decoder):
    writer = text_writer(path, "qwen2vl", "plateau-pico-qwen2.5vl", D.ROPE_BASE)
    writer.add_rope_dimension_sections([*Q.SECTIONS, 0])
    writer.add_tensor("token_embd.weight", _f16(decoder.token_embd.weight))
    writer.add_tensor("output_norm.weight", _f32(decoder.output_norm.weight))
    writer.add_tensor("output.weight", _f16(decoder.output.weight))
    for i, layer in enumerate(decoder.layers):
        for name, part in layer.named_children():
            writer.add_tensor(f"blk.{i}.{name}.weight", (_f32 if name.endswith("norm") else _f16)(part.weight))
            if getattr(part, "bias", None) is not None:
                writer.add_tensor(f"blk.{i}.{name}.bias", _f32(part.bias))
    finish(writer)


def write_tower(path, tower):
    writer = vision_writer(path, "plateau-pico-qwen2.5vl", "qwen2.5vl_merger",
                           dict(embedding_length=Q.WIDTH, feed_forward_length=Q.N_FF, block_count=Q.N_LAYER,
                                projection_dim=D.N_EMBD, image_size=560, patch_size=Q.PATCH, n_wa_pattern=Q.FULL_EVERY,
                                spatial_merge_size=Q.MERGE, window_size=Q.WINDOW), Q.N_HEAD, D.RMS_EPS)
    writer.add_bool("clip.use_silu", True)
    # A still picture is shown twice; of two frames, the tower sees the mean.
    patch = tower.patch_embd.weight.view(Q.WIDTH, 3, Q.PATCH, Q.PATCH) / 2
    for name in ("v.patch_embd.weight", "v.patch_embd.weight.1"):
        writer.add_tensor(name, _f16(patch))
    for i, block in enumerate(tower.blocks):
        for name, part in block.named_children():
            writer.add_tensor(f"v.blk.{i}.{name}.weight", (_f32 if name.startswith("ln") else _f16)(part.weight))
            if getattr(part, "bias", None) is not None:
                writer.add_tensor(f"v.blk.{i}.{name}.bias", _f32(part.bias))
    writer.add_tensor("v.post_ln.weight", _f32(tower.post_ln.weight))
    for number, part in (("0", tower.projector.up), ("2", tower.projector.down)):
        writer.add_tensor(f"mm.{number}.weight", _f16(part.weight))
        writer.add_tensor(f"mm.{number}.bias", _f32(part.bias))
    finish(writer)
