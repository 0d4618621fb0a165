"""Architectures of torchvision: classification, segmentation, detection, video."""

import functools

import torch
from bench.nets.net import Net, images
from torch import nn
from torchvision import models
from torchvision.models import detection, segmentation, video

PIXELS = 224
TRAINING_PIXELS = 160

CLASSIFIERS = [
    "alexnet", "vgg11_bn", "resnet18", "resnet50", "resnext50_32x4d", "densenet121",
    "mobilenet_v2", "mobilenet_v3_small", "mobilenet_v3_large", "mnasnet1_0",
    "efficientnet_b0", "efficientnet_v2_s", "shufflenet_v2_x1_0", "squeezenet1_1",
    "regnet_x_400mf", "regnet_y_400mf", "convnext_tiny", "swin_t", "swin_v2_t",
]  # fmt: skip
# Their patches and windows fit one size of picture.
OF_ONE_SIZE = ["vit_b_16", "maxvit_t"]
# Without the classifiers beside, which only training has.
WITHOUT_OTHERS = ["googlenet", "inception_v3"]
SEGMENTERS = ["fcn_resnet50", "deeplabv3_mobilenet_v3_large", "lraspp_mobilenet_v3_large"]
VIDEO = ["r3d_18", "mc3_18"]


class Entry(nn.Module):
    """One of the tensors of a dictionary."""

    def __init__(self, module, key):
        super().__init__()
        self.module, self.key = module, key

    def forward(self, x):
        return self.module(x)[self.key]


class Pyramid(nn.Module):
    """All levels of a detector's backbone as rows of one tensor."""

    def __init__(self, module):
        super().__init__()
        self.module = module

    def forward(self, x):
        return torch.cat([level.flatten(2) for level in self.module(x).values()], 2)


def segmenter(name):
    make = getattr(segmentation, name)
    return Entry(make(weights=None, weights_backbone=None, num_classes=21), "out")


def pyramid(name):
    backbones = detection.backbone_utils
    if name == "resnet50_fpn":
        make = functools.partial(backbones.resnet_fpn_backbone, backbone_name="resnet50")
    else:
        make = functools.partial(
            backbones.mobilenet_backbone, backbone_name="mobilenet_v3_large", fpn=True
        )
    return Pyramid(make(weights=None, trainable_layers=6 if "mobile" in name else 5, norm_layer=nn.BatchNorm2d))


def clips(batch, generator):
    return (torch.rand(batch, 3, 8, 64, 64, generator=generator) * 2 - 1,)


def picture_net(make, loss="cross_entropy"):
    return Net(make, images(PIXELS), loss, training_inputs=images(TRAINING_PIXELS))


NETS = {
    **{name: picture_net(getattr(models, name)) for name in CLASSIFIERS},
    **{name: Net(getattr(models, name), images(PIXELS), batch=4) for name in OF_ONE_SIZE},
    **{
        name: picture_net(
            functools.partial(getattr(models, name), aux_logits=False, init_weights=True)
        )
        for name in WITHOUT_OTHERS
    },
    **{name: picture_net(functools.partial(segmenter, name)) for name in SEGMENTERS},
    **{
        name: picture_net(functools.partial(pyramid, name), "mse")
        for name in ("resnet50_fpn", "mobilenet_v3_large_fpn")
    },
    # PyTorch 2.15 gives 3-D convolutions a bias of two columns in ONNX.
    **{
        name: Net(getattr(video, name), clips, batch=4, training_file="model.pt2")
        for name in VIDEO
    },
}
