"""The loop that a beginner writes: beginner_loop.py MODEL.npz TRAIN TEST STEPS

Trains the network of examples/train-images on a folder of classes, and says how many of another
one it knows. Nothing is tuned: f32, the loader's defaults, a loss that is printed after each step.
"""

import sys

import numpy as np
import torch
from torch import nn
from torchvision import datasets, transforms

SIDE, BATCH = 64, 32


def make_model(parameters):
    layers, channels = [], (3, 16, 32, 64)
    for before, after in zip(channels, channels[1:]):
        layers += [nn.Conv2d(before, after, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)]
    model = nn.Sequential(*layers, nn.AdaptiveMaxPool2d(1), nn.Flatten(), nn.Linear(channels[-1], 4))
    modules = [module for module in model if hasattr(module, "weight")]
    for module, name in zip(modules, ("conv1", "conv2", "conv3", "linear")):
        for kind in ("weight", "bias"):
            getattr(module, kind).data = torch.from_numpy(parameters[f"{name}.{kind}"])
    return model


def train(model, folder, steps):
    transform = transforms.Compose([
        transforms.RandomResizedCrop(SIDE, scale=(0.6, 1)),
        transforms.RandomHorizontalFlip(),
        transforms.ToTensor(),
    ])  # fmt: skip
    loader = torch.utils.data.DataLoader(datasets.ImageFolder(folder, transform), BATCH,
                                         shuffle=True, drop_last=True)  # fmt: skip
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=5e-3, total_steps=steps)
    loss_function = nn.CrossEntropyLoss()
    step = 0
    while step < steps:
        for images, labels in loader:
            optimizer.zero_grad()
            loss = loss_function(model(images), labels)
            loss.backward()
            optimizer.step()
            schedule.step()
            step += 1
            print(step, loss.item(), file=sys.stderr)
            if step == steps:
                break


def test(model, folder):
    transform = transforms.Compose([transforms.Resize((SIDE, SIDE)), transforms.ToTensor()])
    loader = torch.utils.data.DataLoader(datasets.ImageFolder(folder, transform), BATCH)
    right = total = 0
    with torch.no_grad():
        for images, labels in loader:
            right += (model(images).argmax(1) == labels).sum().item()
            total += len(labels)
    return right / total


if __name__ == "__main__":
    path, train_folder, test_folder, steps = sys.argv[1:]
    model = make_model(dict(np.load(path)))
    train(model, train_folder, int(steps))
    print(test(model, test_folder))
