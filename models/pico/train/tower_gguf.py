"""Writes pico-internvl's tower and projector: `clip` with an `internvl` projector."""
import torch

import decoder as D
import tower as T
from gguf_io import add_layer, f16, f32, finish, vision_writer


def write_tower(path, tower, class_token_last=False):
    """class_token_last: the table of positions in the order that llama.cpp's graph puts its tokens."""
    writer = vision_writer(path, "plateau-pico-internvl", "internvl",
                           dict(embedding_length=T.WIDTH, feed_forward_length=T.N_FF, block_count=T.N_LAYER,
                                projection_dim=D.N_EMBD, image_size=T.TILE, patch_size=T.PATCH, preproc_min_tiles=1,
                                preproc_max_tiles=4096), T.N_HEAD, 1e-6)
    writer.add_bool("clip.use_gelu", True)
    writer.add_uint32("clip.vision.projector.scale_factor", T.SHUFFLE)
    writer.add_tensor("v.patch_embd.weight", f16(tower.patch_embd.weight.view(T.WIDTH, 3, T.PATCH, T.PATCH)))
    writer.add_tensor("v.patch_embd.bias", f32(tower.patch_embd.bias))
    writer.add_tensor("v.class_embd", f32(tower.class_embd))
    positions = tower.position_embd
    if class_token_last:
        positions = torch.cat([positions[1:], positions[:1]])
    writer.add_tensor("v.position_embd.weight", f32(positions))
    for i, block in enumerate(tower.blocks):
        add_layer(writer, f"v.blk.{i}", block)
        writer.add_tensor(f"v.blk.{i}.ls1.weight", f32(block.ls1))
        writer.add_tensor(f"v.blk.{i}.ls2.weight", f32(block.ls2))
    for number, part in (("0", tower.projector.norm), ("1", tower.projector.up), ("3", tower.projector.down)):
        writer.add_tensor(f"mm.model.mlp.{number}.weight", (f32 if part is tower.projector.norm else f16)(part.weight))
        writer.add_tensor(f"mm.model.mlp.{number}.bias", f32(part.bias))
    finish(writer)
