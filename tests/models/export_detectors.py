"""Exports torchvision's detectors, post-processing included: fixtures/NAME.onnx.gz.

  export_detectors.py [NAME...]

The weights are random and not in the files, which say how they are drawn
(detectors.load): each convolution's results have a deviation of about 1. The biases of
the scores let 10 to 100 boxes remain.
"""

import functools
import gzip
import os
import re
import sys
import warnings

import numpy as np
import onnx
import torch
import torchvision
from onnx import helper
from torchvision.models import detection
from torchvision.models.detection import anchor_utils, backbone_utils, ssdlite

from models import detectors

OPSET = 17
# The last convolutions, by the names of their weights.
HEADS = r"cls_logits.weight|bbox_reg.weight|_head.module_list.\d.1.weight"
CLASSES = 4
# What the boxes' regressions deviate by, and the gates of squeeze and excitation, which
# are the same for all boxes.
BOX_DEVIATION, GATE_DEVIATION = 0.2, 0.1


def pyramid():
    """Few channels, three levels of features."""
    features = torchvision.models.mobilenet_v2(width_mult=0.25).features
    layers = {"6": "0", "13": "1"}
    channels = [features[int(i)].out_channels for i in layers]
    return backbone_utils.BackboneWithFPN(features, layers, channels, 32)


def retinanet_small():
    anchors = anchor_utils.AnchorGenerator(
        ((24,), (48,), (96,)), ((0.5, 1.0, 2.0),) * 3
    )
    return detection.RetinaNet(
        pyramid(), CLASSES, min_size=128, max_size=224, anchor_generator=anchors,
        score_thresh=0.3, topk_candidates=100, detections_per_img=100,
    )  # fmt: skip


def ssdlite_small():
    backbone = pyramid()
    anchors = anchor_utils.DefaultBoxGenerator([[2, 3]] * 3, min_ratio=0.15, max_ratio=0.7)
    norm = functools.partial(torch.nn.BatchNorm2d, eps=0.001)
    locations = anchors.num_anchors_per_location()
    head = ssdlite.SSDLiteHead([32] * 3, locations, CLASSES, norm)
    return detection.ssd.SSD(
        backbone, anchors, (128, 128), CLASSES, head=head, score_thresh=0.3,
        nms_thresh=0.55, detections_per_img=100, topk_candidates=100,
        image_mean=[0.5] * 3, image_std=[0.5] * 3,
    )  # fmt: skip


def retinanet_real():
    return detection.retinanet_resnet50_fpn(
        weights=None, weights_backbone=None, num_classes=CLASSES,
        min_size=320, max_size=512,
        score_thresh=0.3,
    )


def ssdlite_real():
    return detection.ssdlite320_mobilenet_v3_large(
        weights=None, weights_backbone=None, num_classes=CLASSES, score_thresh=0.3
    )


# How to make each, how many boxes remain on average, and what logits deviate by.
MAKERS = {
    "retinanet": (retinanet_small, 34, 5),
    "ssdlite": (ssdlite_small, 28, 5),
    "retinanet_resnet50_fpn": (retinanet_real, 20, 5),
    "ssdlite320_mobilenet_v3_large": (ssdlite_real, 34, 1.5),
}


def export(module, path):
    image = torch.rand(3, 160, 200)
    with torch.no_grad():  # equal tensors would be stored once
        for parameter in module.parameters():
            parameter.normal_()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(
            module.eval(), ([image],), path, dynamo=False, opset_version=OPSET,
            input_names=["image"], output_names=["boxes", "scores", "labels"],
            dynamic_axes={"image": {1: "height", 2: "width"}},
        )  # fmt: skip
    return onnx.load(path)


def describe(weight, deviation):
    """Leaves the numbers out but for how they are drawn."""
    weight.ClearField("raw_data")
    weight.doc_string = f"{deviation:.4g}"


def run_to(model, names, images):
    """Inner values of the model, [number, channel, place] of all images."""
    cut = detectors.draw(model)
    del cut.graph.output[:]
    for name in names:
        cut.graph.output.append(helper.make_empty_tensor_value_info(name))
    session = detectors.open_session(cut)
    found = [y for image in images for y in session.run(None, {"image": image})]
    return np.concatenate([y.reshape(*y.shape[:2], -1) for y in found], axis=2)


def find_layers(model):
    """The results of the convolutions by the names of weights and biases."""
    layers = {}
    for node in model.graph.node:
        if node.op_type == "Conv":
            key = (node.input[1], node.input[2] if len(node.input) > 2 else None)
            layers.setdefault(key, []).append(node.output[0])
    return layers


def scale_weights(model, images, score_deviation):
    """Draws weights, layer by layer, so that results deviate by about 1, and scores by
    the same for each class and shape of boxes. Returns the biases of scores."""
    weights = {w.name: w for w in model.graph.initializer}
    layers, biases = find_layers(model), {}
    gates = {n.input[0] for n in model.graph.node if n.op_type == "HardSigmoid"}
    for weight, bias in layers:
        describe(weights[weight], 1)
        if bias:
            describe(weights[bias], 0 if re.search(HEADS, weight) else 0.1)
    for (weight, bias), names in layers.items():
        is_head = re.search(HEADS, weight)
        is_score = is_head and "classification" in weight
        wanted = GATE_DEVIATION if gates.intersection(names) else 1
        if is_head:
            wanted = score_deviation if is_score else BOX_DEVIATION
        found = run_to(model, names, images)
        mean = found.mean((0, 2), keepdims=True)
        scale = wanted / max(float((found - mean if is_head else found).std()), 1e-6)
        describe(weights[weight], scale)
        if is_score:
            biases[bias] = -scale * mean.ravel()
    return biases


def set_biases(model, biases, value):
    """`biases` and `value`, less for the background where it is a class."""
    for weight in model.graph.initializer:
        if weight.name in biases:
            bias = biases[weight.name]
            if "cls_logits" in weight.name:
                bias = bias + value
            else:
                bias = bias - np.where(np.arange(bias.size) % CLASSES == 0, value, 0)
            weight.doc_string = ""
            weight.raw_data = bias.astype(np.float32).tobytes()


def count_boxes(model, images):
    session = detectors.open_session(detectors.draw(model))
    return [len(session.run(None, {"image": image})[1]) for image in images]


def main(names):
    for name in names or MAKERS:
        torch.manual_seed(0)
        path = os.path.join(detectors.FIXTURES, name + ".onnx")
        make, wanted, deviation = MAKERS[name]
        model = export(make(), path)
        os.remove(path)
        images = [detectors.make_image(1000 + number) for number in range(10)]
        biases = scale_weights(model, images[:5], deviation)
        low, high = -40.0, 20.0
        for _ in range(14):
            bias = (low + high) / 2
            set_biases(model, biases, bias)
            counts = count_boxes(model, images)
            low, high = (bias, high) if np.mean(counts) < wanted else (low, bias)
        print(f"{name}: bias {bias:.3f}, boxes {sorted(counts)}", flush=True)
        with open(path + ".gz", "wb") as stream:
            stream.write(gzip.compress(model.SerializeToString(), 9, mtime=0))


if __name__ == "__main__":
    main(sys.argv[1:])
