"""Writes pico-qwen2.5vl's tower and projector: `clip` with a `qwen2.5vl_merger`."""
import decoder as D
import qwen25vl as Q
from gguf_io import add_layer, f16, f32, finish, vision_writer


def write_tower(path, tower):
    writer = vision_writer(path, "plateau-pico-qwen2.5vl", "qwen2.5vl_merger",
                           dict(embedding_length=Q.WIDTH, feed_forward_length=Q.N_FF, block_count=Q.N_LAYER,
                                projection_dim=D.N_EMBD, image_size=560, patch_size=Q.PATCH, n_wa_pattern=Q.FULL_EVERY,
                                spatial_merge_size=Q.MERGE, window_size=Q.WINDOW), Q.N_HEAD, D.RMS_EPS)
    writer.add_bool("clip.use_silu", True)
    # A still picture is shown twice; of two frames, the tower sees the mean.
    patch = tower.patch_embd.weight.view(Q.WIDTH, 3, Q.PATCH, Q.PATCH) / 2
    for name in ("v.patch_embd.weight", "v.patch_embd.weight.1"):
        writer.add_tensor(name, f16(patch))
    for i, block in enumerate(tower.blocks):
        add_layer(writer, f"v.blk.{i}", block)
    writer.add_tensor("v.post_ln.weight", f32(tower.post_ln.weight))
    for number, part in (("0", tower.projector.up), ("2", tower.projector.down)):
        writer.add_tensor(f"mm.{number}.weight", f16(part.weight))
        writer.add_tensor(f"mm.{number}.bias", f32(part.bias))
    finish(writer)
