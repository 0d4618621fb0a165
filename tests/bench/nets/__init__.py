"""Architectures that the zoo measures."""

from bench.nets import language, small, vision

ALL = vision.NETS | language.NETS | small.NETS

# What torch.compile is measured on too: it takes minutes.
COMPILED = [
    "resnet18", "mobilenet_v3_small", "efficientnet_b0", "swin_t", "shufflenet_v2_x1_0",
    "bert", "llama", "t5", "unet", "tcn",
]  # fmt: skip
# A third of all has an open batch too.
DYNAMIC = list(ALL)[::3]
