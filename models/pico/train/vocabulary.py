"""The byte-level vocabulary of the pico models: 256 bytes, special tokens, a few whole words.

Tokenising follows GPT-2's byte-pair merges with the `qwen2` pre-tokeniser for the plain English that
the questions are made of. A word becomes whole by a chain of merges from its first letter on.
"""
import re

SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<img>", "</img>", "<IMG_CONTEXT>",
           "<|vision_start|>", "<|vision_end|>", "<|image_pad|>", "<|video_pad|>"]
KINDS = ["cat", "dog", "star", "ring", "tree", "fish", "car", "moon"]
COLORS = ["orange", "brown", "yellow", "purple", "green", "blue", "red", "grey"]
SIZES = ["small", "large"]
# Those of the questions and of their answers, which begin without a space; in the order of their merges: words with a
# leading space first, so that a chain for a word without one never cuts into them.
WORDS = (["user", "assistant", "What", "Which", " number", " is", " on", " the", " in"]
         + [" " + kind for kind in KINDS] + [" " + color for color in COLORS]
         + [" " + size for size in SIZES]
         + [" does", " carry", " carries", " object", " with", " many", " are", " there", " picture",
            " you", " see", " a", " an", " left", " right", " top", " bottom", " half", " at", " or"]
         + [" which", " film", " appear", " appears", " comes", " first", " second", " seconds", " after",
            " start", " part", " beginning", " middle", " end"]
         + ["How", "Is", "Can", "Read", "Name", "Count", "In", "At", "When", "Does", "Frame"]
         + KINDS + COLORS + ["yes", "no", "beginning", "middle", "end", "left", "right", "bottom", "top"])
SIZE_OF_TABLE = 576


def _byte_characters():
    """GPT-2's printable stand-ins for the 256 bytes."""
    printable = list(range(33, 127)) + list(range(0xA1, 0xAD)) + list(range(0xAE, 0x100))
    stand_in = {b: chr(b) for b in printable}
    others = [b for b in range(256) if b not in stand_in]
    stand_in.update({b: chr(256 + i) for i, b in enumerate(others)})
    return [stand_in[b] for b in range(256)]


BYTES = _byte_characters()
TOKENS = BYTES + SPECIAL
MERGES = []


def _spelled(word):
    return [BYTES[b] for b in word.encode()]


for _word in WORDS:
    _letters = _spelled(_word)
    _prefix = _letters[0]
    for _letter in _letters[1:]:
        if (_prefix, _letter) not in MERGES:
            MERGES.append((_prefix, _letter))
        _prefix += _letter
        if _prefix not in TOKENS:
            TOKENS.append(_prefix)
assert len(TOKENS) <= SIZE_OF_TABLE, len(TOKENS)
N_USED = len(TOKENS)
TOKENS += [f"<|unused{i}|>" for i in range(len(TOKENS), SIZE_OF_TABLE)]

ID = {token: i for i, token in enumerate(TOKENS)}
RANK = {pair: i for i, pair in enumerate(MERGES)}
EOT, IM_END = ID["<|endoftext|>"], ID["<|im_end|>"]
_SPECIAL = re.compile("(" + "|".join(re.escape(s) for s in SPECIAL) + ")")
_PIECES = re.compile(r"[^\r\n\w]?[^\W\d_]+|\d|[^\s\w]+|\s")


def _merged(piece):
    parts = _spelled(piece)
    while len(parts) > 1:
        rank, i = min((RANK.get((a, b), len(RANK)), i) for i, (a, b) in enumerate(zip(parts, parts[1:])))
        if rank == len(RANK):
            break
        parts[i:i + 2] = [parts[i] + parts[i + 1]]
    return [ID[part] for part in parts]


_cache = {}


def encode(text):
    """Token ids; special tokens are recognised wherever they stand."""
    ids = []
    for part in _SPECIAL.split(text):
        if part in SPECIAL:
            ids.append(ID[part])
            continue
        for piece in _PIECES.findall(part):
            if piece not in _cache:
                _cache[piece] = _merged(piece)
            ids += _cache[piece]
    return ids


for _word in WORDS:
    assert encode(_word) == [ID["".join(_spelled(_word))]], f"'{_word}' is cut by another word's merges"
