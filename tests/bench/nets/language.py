"""Small configurations of the families of transformers: encoders, decoders, both,
speech, vision and mixtures of experts."""

import functools

import torch
import transformers as hf
from bench.nets.net import Net, images, signals, tokens
from torch import nn

VOCABULARY = 1024
TOKENS = 128
WIDTH, LAYERS, HEADS = 256, 4, 4
# By the names that most configurations share, and without dropouts.
SIZES = {
    "vocab_size": VOCABULARY,
    "hidden_size": WIDTH,
    "num_hidden_layers": LAYERS,
    "num_attention_heads": HEADS,
    "intermediate_size": 4 * WIDTH,
    "max_position_embeddings": 2 * TOKENS,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
DRY = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}


class Field(nn.Module):
    """One tensor of what a model of transformers returns, by names of its inputs."""

    def __init__(self, module, field, *names, **others):
        super().__init__()
        self.module, self.field, self.names, self.others = module, field, names, others

    def forward(self, *inputs):
        named = dict(zip(self.names, inputs, strict=True))
        return getattr(self.module(**named, **self.others), self.field)


def encoder(family, **sizes):
    """Logits of each place's token."""
    config = getattr(hf, family + "Config")(**(SIZES | DRY | sizes))
    return Field(getattr(hf, family + "ForMaskedLM")(config), "logits", "input_ids")


def decoder(family, **sizes):
    config = getattr(hf, family + "Config")(**(SIZES | sizes))
    model = getattr(hf, family + "ForCausalLM")(config)
    return Field(model, "logits", "input_ids", use_cache=False)


def mixtral():
    """Small, for what exports copies the chosen experts' weights for each token."""
    return decoder(
        "Mixtral", num_key_value_heads=2, num_local_experts=4, intermediate_size=WIDTH,
        experts_implementation="batched_mm",
    )  # fmt: skip


def gpt2():
    rates = dict.fromkeys(("resid_pdrop", "embd_pdrop", "attn_pdrop"), 0.0)
    config = hf.GPT2Config(
        vocab_size=VOCABULARY, n_positions=2 * TOKENS, n_embd=WIDTH, n_layer=LAYERS,
        n_head=HEADS, bos_token_id=1, eos_token_id=2, **rates,
    )  # fmt: skip
    return Field(hf.GPT2LMHeadModel(config), "logits", "input_ids", use_cache=False)


def distilbert():
    config = hf.DistilBertConfig(
        vocab_size=VOCABULARY, dim=WIDTH, n_layers=LAYERS, n_heads=HEADS, hidden_dim=4 * WIDTH,
        dropout=0.0, attention_dropout=0.0, pad_token_id=0,
    )  # fmt: skip
    return Field(hf.DistilBertForMaskedLM(config), "logits", "input_ids")


BOTH = {"decoder_start_token_id": 1, "pad_token_id": 0, "eos_token_id": 2}


def t5():
    config = hf.T5Config(
        vocab_size=VOCABULARY, d_model=WIDTH, d_kv=WIDTH // HEADS, d_ff=4 * WIDTH,
        num_layers=LAYERS, num_heads=HEADS, dropout_rate=0.0, attn_implementation="eager", **BOTH,
    )  # fmt: skip
    names = "input_ids", "decoder_input_ids"
    return Field(hf.T5ForConditionalGeneration(config), "logits", *names, use_cache=False)


def layered(**others):
    """Sizes of what has an encoder and a decoder in BART's style."""
    sizes = {"d_model": WIDTH, "dropout": 0.0, **BOTH, "bos_token_id": 1, **others}
    for side in ("encoder", "decoder"):
        sizes |= {
            f"{side}_layers": LAYERS,
            f"{side}_attention_heads": HEADS,
            f"{side}_ffn_dim": 4 * WIDTH,
        }
    return sizes


def bart():
    config = hf.BartConfig(
        vocab_size=VOCABULARY, max_position_embeddings=2 * TOKENS, **layered()
    )
    names = "input_ids", "decoder_input_ids"
    return Field(hf.BartForConditionalGeneration(config), "logits", *names, use_cache=False)


MELS, FRAMES = 80, 200


def whisper():
    config = hf.WhisperConfig(
        vocab_size=VOCABULARY, num_mel_bins=MELS, max_source_positions=FRAMES // 2,
        max_target_positions=2 * TOKENS, **layered(),
    )  # fmt: skip
    names = "input_features", "decoder_input_ids"
    model = hf.WhisperForConditionalGeneration(config)
    return Field(model, "logits", *names, use_cache=False)


def speech_and_text(batch, generator):
    features = signals(MELS, FRAMES)(batch, generator)
    return (*features, *tokens(VOCABULARY, 32)(batch, generator))


def wav2vec2():
    dry = ("hidden_dropout", "attention_dropout", "activation_dropout", "feat_proj_dropout")
    dry += ("final_dropout", "layerdrop", "mask_time_prob", "mask_feature_prob")
    config = hf.Wav2Vec2Config(
        hidden_size=WIDTH, num_hidden_layers=LAYERS, num_attention_heads=HEADS,
        intermediate_size=4 * WIDTH, conv_dim=[128] * 7, num_labels=32,
        classifier_proj_size=128, **dict.fromkeys(dry, 0.0),
    )  # fmt: skip
    return Field(hf.Wav2Vec2ForSequenceClassification(config), "logits", "input_values")


def waves(batch, generator):
    return (torch.randn(batch, 8000, generator=generator),)


PIXELS = 128
VISION = {"image_size": PIXELS, "patch_size": 16, "num_labels": 100}


def picture_encoder(family, **sizes):
    config = getattr(hf, family + "Config")(**sizes)
    model = getattr(hf, family + "ForImageClassification")(config)
    return Field(model, "logits", "pixel_values")


def vit_like(family):
    sizes = {key: SIZES[key] for key in list(SIZES)[1:5]}
    return functools.partial(picture_encoder, family, **sizes, **VISION, **DRY)


def segformer():
    dry = ("classifier_dropout_prob", "drop_path_rate")
    return picture_encoder("Segformer", num_labels=100, **DRY, **dict.fromkeys(dry, 0.0))


def language(make, *lengths):
    return Net(make, tokens(VOCABULARY, *(lengths or (TOKENS,))), "causal_lm")


partial = functools.partial
NETS = {
    "bert": language(partial(encoder, "Bert")),
    "electra": language(partial(encoder, "Electra", embedding_size=128)),
    "deberta_v2": language(partial(encoder, "DebertaV2", relative_attention=True, pos_att_type=["c2p", "p2c"])),
    "distilbert": language(distilbert),
    "gpt2_small": language(gpt2),
    "gpt_neox": language(partial(decoder, "GPTNeoX")),
    "llama": language(partial(decoder, "Llama", num_key_value_heads=2)),
    "qwen3": language(partial(decoder, "Qwen3", num_key_value_heads=2, head_dim=64)),
    "gemma": language(partial(decoder, "Gemma", num_key_value_heads=1, head_dim=64)),
    "mixtral": language(mixtral, 32),
    "t5": language(t5, TOKENS, TOKENS // 2),
    "bart": language(bart, TOKENS, TOKENS // 2),
    "whisper": Net(whisper, speech_and_text, "causal_lm"),
    "wav2vec2": Net(wav2vec2, waves),
    "vit": Net(vit_like("ViT"), images(PIXELS)),
    "dinov2": Net(vit_like("Dinov2"), images(PIXELS)),
    "segformer": Net(segformer, images(PIXELS)),
}
