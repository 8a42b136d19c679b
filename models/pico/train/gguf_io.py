"""GGUF files in the published layouts: language models, and what the files of both towers have in common."""
import os
import pathlib
import sys

import numpy as np

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


def f16(values):
    return np.ascontiguousarray(values.detach().cpu().numpy(), np.float16)


def f32(values):
    return np.ascontiguousarray(values.detach().cpu().numpy(), np.float32)


def add_layer(writer, prefix, layer):
    """Weights of norms and all biases in f32, as published files have them."""
    for name, part in layer.named_children():
        is_norm = "norm" in name or name.startswith("ln")
        writer.add_tensor(f"{prefix}.{name}.weight", (f32 if is_norm else f16)(part.weight))
        if getattr(part, "bias", None) is not None:
            writer.add_tensor(f"{prefix}.{name}.bias", f32(part.bias))


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


def write_decoder(path, architecture, name, decoder):
    writer = gguf_module().GGUFWriter(str(path), architecture)
    writer.add_name(name)
    writer.add_license("MIT")
    writer.add_context_length(65536)
    writer.add_embedding_length(D.N_EMBD)
    writer.add_block_count(D.N_LAYER)
    writer.add_feed_forward_length(D.N_FF)
    writer.add_head_count(D.N_HEAD)
    writer.add_head_count_kv(D.N_HEAD_KV)
    writer.add_key_length(D.HEAD_DIM)
    writer.add_value_length(D.HEAD_DIM)
    writer.add_rope_freq_base(decoder.rope_base)
    if len(decoder.sections) > 1:
        writer.add_rope_dimension_sections([*decoder.sections, 0])
    writer.add_layer_norm_rms_eps(D.RMS_EPS)
    add_tokenizer(writer)
    writer.add_tensor("token_embd.weight", f16(decoder.token_embd.weight))
    writer.add_tensor("output_norm.weight", f32(decoder.output_norm.weight))
    writer.add_tensor("output.weight", f16(decoder.output.weight))
    for i, layer in enumerate(decoder.layers):
        add_layer(writer, f"blk.{i}", layer)
    finish(writer)


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
