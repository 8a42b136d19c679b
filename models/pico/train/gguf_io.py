"""GGUF files in the published layouts: what both pairs write, and pico-internvl's weights to and from its two files."""
import os
import pathlib
import sys

import numpy as np
import torch

import decoder as D
import tower as T
import vocabulary as V

ROOT = pathlib.Path(__file__).resolve().parents[3]


def gguf_module():
    """The gguf package: an installed one, or that of the pinned llama.cpp."""
    try:
        import gguf
    except ImportError:
        cache = pathlib.Path(os.environ.get("PLATEAU_CACHE_DIR", pathlib.Path.home() / ".cache/plateau"))
        found = sorted(cache.glob("llama.cpp-*-source/gguf-py"))
        if not found:
            sys.exit("gguf-py not found: run `make llama-cpp` first, or install the Python package gguf")
        sys.path.insert(0, str(found[-1]))
        import gguf
    return gguf


CHAT_TEMPLATE = ("{% for message in messages %}{{'<|im_start|>' + message['role'] + '\\n' + message['content']"
                 " + '<|im_end|>' + '\\n'}}{% endfor %}{% if add_generation_prompt %}"
                 "{{ '<|im_start|>assistant\\n' }}{% endif %}")


def _decoder_names():
    """GGUF name -> (name in decoder.py, kept in f32)"""
    names = {"token_embd.weight": ("token_embd.weight", False), "output.weight": ("output.weight", False),
             "output_norm.weight": ("output_norm.weight", True)}
    for i in range(D.N_LAYER):
        for part in ("attn_norm", "ffn_norm", "attn_q_norm", "attn_k_norm"):
            names[f"blk.{i}.{part}.weight"] = (f"layers.{i}.{part}.weight", True)
        for part in ("attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up", "ffn_down"):
            names[f"blk.{i}.{part}.weight"] = (f"layers.{i}.{part}.weight", False)
    return names


def _tower_names():
    names = {"v.patch_embd.weight": ("patch_embd.weight", False), "v.patch_embd.bias": ("patch_embd.bias", True),
             "v.class_embd": ("class_embd", True), "v.position_embd.weight": ("position_embd", True)}
    for i in range(T.N_LAYER):
        for part in ("attn_q", "attn_k", "attn_v", "attn_out", "ffn_up", "ffn_down"):
            names[f"v.blk.{i}.{part}.weight"] = (f"blocks.{i}.{part}.weight", False)
            names[f"v.blk.{i}.{part}.bias"] = (f"blocks.{i}.{part}.bias", True)
        for part in ("ln1", "ln2"):
            names[f"v.blk.{i}.{part}.weight"] = (f"blocks.{i}.{part}.weight", True)
            names[f"v.blk.{i}.{part}.bias"] = (f"blocks.{i}.{part}.bias", True)
        for part in ("ls1", "ls2"):
            names[f"v.blk.{i}.{part}.weight"] = (f"blocks.{i}.{part}", True)
    for number, part in (("0", "norm"), ("1", "up"), ("3", "down")):
        names[f"mm.model.mlp.{number}.weight"] = (f"projector.{part}.weight", part == "norm")
        names[f"mm.model.mlp.{number}.bias"] = (f"projector.{part}.bias", True)
    return names


def add_tokenizer(writer):
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("qwen2")
    writer.add_token_list(V.TOKENS)
    normal, control, unused = 1, 3, 5
    writer.add_token_types([control if token in V.SPECIAL else unused if i >= V.N_USED else normal
                            for i, token in enumerate(V.TOKENS)])
    writer.add_token_merges([" ".join(pair) for pair in V.MERGES])
    writer.add_eos_token_id(V.IM_END)
    writer.add_bos_token_id(V.EOT)
    writer.add_pad_token_id(V.EOT)
    writer.add_add_bos_token(False)
    writer.add_chat_template(CHAT_TEMPLATE)


def finish(writer):
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def _add_tensors(writer, names, state):
    for name, (ours, keep_f32) in names.items():
        values = state[ours].detach().cpu().numpy()
        if name == "v.patch_embd.weight":
            values = values.reshape(T.WIDTH, 3, T.PATCH, T.PATCH)
        writer.add_tensor(name, np.ascontiguousarray(values, np.float32 if keep_f32 else np.float16))
    finish(writer)


def text_writer(path, architecture, name, rope_base):
    """With everything about the language model but its tensors and what one architecture alone has."""
    writer = gguf_module().GGUFWriter(str(path), architecture)
    writer.add_name(name)
    writer.add_license("MIT")
    writer.add_context_length(32768)
    writer.add_embedding_length(D.N_EMBD)
    writer.add_block_count(D.N_LAYER)
    writer.add_feed_forward_length(D.N_FF)
    writer.add_head_count(D.N_HEAD)
    writer.add_head_count_kv(D.N_HEAD_KV)
    writer.add_rope_freq_base(rope_base)
    writer.add_layer_norm_rms_eps(D.RMS_EPS)
    add_tokenizer(writer)
    return writer


def vision_writer(path, name, projector, numbers, n_head, eps):
    """`numbers`: of clip.vision, by key."""
    writer = gguf_module().GGUFWriter(str(path), "clip")
    writer.add_name(name)
    writer.add_string("general.type", "mmproj")
    writer.add_file_type(1)
    writer.add_license("MIT")
    writer.add_bool("clip.has_vision_encoder", True)
    writer.add_string("clip.projector_type", projector)
    for key, value in numbers.items():
        writer.add_uint32(f"clip.vision.{key}", value)
    writer.add_uint32("clip.vision.attention.head_count", n_head)
    writer.add_float32("clip.vision.attention.layer_norm_epsilon", eps)
    writer.add_array("clip.vision.image_mean", list(T.MEAN))
    writer.add_array("clip.vision.image_std", list(T.STD))
    return writer


def write_decoder(path, decoder):
    writer = text_writer(path, "qwen3", "plateau-pico-internvl", D.ROPE_BASE)
    writer.add_key_length(D.HEAD_DIM)
    writer.add_value_length(D.HEAD_DIM)
    _add_tensors(writer, _decoder_names(), decoder.state_dict())


def write_tower(path, tower, class_token_last=False):
    """class_token_last: the table of positions in the order that llama.cpp's graph puts its tokens."""
    writer = vision_writer(path, "plateau-pico-internvl", "internvl",
                           dict(embedding_length=T.WIDTH, feed_forward_length=T.N_FF, block_count=T.N_LAYER,
                                projection_dim=D.N_EMBD, image_size=T.TILE, patch_size=T.PATCH, preproc_min_tiles=1,
                                preproc_max_tiles=4096), T.N_HEAD, 1e-6)
    writer.add_bool("clip.use_gelu", True)
    writer.add_uint32("clip.vision.projector.scale_factor", T.SHUFFLE)
    state = dict(tower.state_dict())
    if class_token_last:
        positions = state["position_embd"]
        state["position_embd"] = torch.cat([positions[1:], positions[:1]])
    _add_tensors(writer, _tower_names(), state)


def _tensors(path):
    reader = gguf_module().GGUFReader(str(path))
    return reader, {t.name: torch.from_numpy(np.array(t.data, np.float32)) for t in reader.tensors}


def load_tower(path, tower):
    """Tensors of equal size are taken over; returns the names of the others."""
    _, tensors = _tensors(path)
    return _take_over(tower, _tower_names(), tensors)


def load_decoder(path, decoder):
    """As load_tower; rows of the token tables are matched by the token's text."""
    reader, tensors = _tensors(path)
    field = reader.get_field("tokenizer.ggml.tokens")
    theirs = [bytes(field.parts[i]).decode() for i in field.data]
    for name in ("token_embd.weight", "output.weight"):
        table = decoder.state_dict()[_decoder_names()[name][0]].clone()
        for row, token in enumerate(theirs):
            if token in V.ID and not token.startswith("<|unused"):
                table[V.ID[token]] = tensors[name].view(len(theirs), -1)[row]
        tensors[name] = table
    return _take_over(decoder, _decoder_names(), tensors)


def _take_over(module, names, tensors):
    state, missing = module.state_dict(), []
    for name, (ours, _) in names.items():
        if name in tensors and tensors[name].numel() == state[ours].numel():
            state[ours].copy_(tensors[name].reshape(state[ours].shape))
        else:
            missing.append(name)
    return missing
