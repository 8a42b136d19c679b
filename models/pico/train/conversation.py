"""What follows the pictures of a prompt: questions and answers, turn by turn."""
from questions import WORDINGS
from vocabulary import KINDS, encode


def earlier_turn(rng):
    """A question and an answer between two pictures. It is the same for a whole batch, so whether the answer is right,
    no picture tells; none learns from it."""
    question = WORDINGS["exists"][rng.integers(3)].replace("{an object}", "a " + KINDS[rng.integers(len(KINDS))])
    answer = "yes" if rng.random() < 0.5 else "no"
    return f"{question}<|im_end|>\n<|im_start|>assistant\n{answer}<|im_end|>\n<|im_start|>user\n"


def conversation(questions):
    """Token ids after the picture, what is to be answered (-100 elsewhere) and, per question, its kind and the place
    and token of the answer's first token."""
    ids, wanted, firsts = [], [], []
    for i, (what, question, answer) in enumerate(questions):
        asked = encode(("" if i == 0 else "\n<|im_start|>user\n") + question
                       + "<|im_end|>\n<|im_start|>assistant\n")
        answered = encode(answer + "<|im_end|>")
        firsts.append((what, len(ids) + len(asked) - 1, answered[0]))
        ids += asked + answered
        wanted += [-100] * len(asked) + answered
    return ids, wanted, firsts
