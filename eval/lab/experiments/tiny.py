"""A random two-layer model and a word tokenizer, so that no download is needed."""

from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast, Qwen2Config, Qwen2ForCausalLM

WORDS = "what is the sum of one two three four five six seven eight nine ten and answer question please think step by user assistant".split()


def tokenizer(template=True):
    vocab = {w: i for i, w in enumerate(["<unk>", "<pad>", "<eos>", *WORDS, *map(str, range(64)), *"?+=:.,"])}
    raw = Tokenizer(models.WordLevel(vocab, unk_token="<unk>"))
    raw.pre_tokenizer = pre_tokenizers.Whitespace()
    tok = PreTrainedTokenizerFast(tokenizer_object=raw, unk_token="<unk>", pad_token="<pad>", eos_token="<eos>")
    if template:
        tok.chat_template = "{% for m in messages %}{{ m['role'] }} : {{ m['content'] }} <eos> {% endfor %}"
    return tok


def model(vocab_size=128):
    cfg = Qwen2Config(
        vocab_size=vocab_size,
        hidden_size=64,
        intermediate_size=128,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=128,
        bos_token_id=2,
        eos_token_id=2,
        pad_token_id=1,
    )
    return Qwen2ForCausalLM(cfg)


def save(path, template=True):
    model().save_pretrained(path)
    tokenizer(template).save_pretrained(path)
