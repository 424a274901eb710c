"""ResNet-50 v1.5 for the race of training steps (He et al., arXiv 1512.03385, stride on the first 3x3 convolution of a stage)
in idiomatic PyTorch: NHWC ("channels last"), its faster layout."""
import torch
import torch.nn.functional as F
from torch import nn


def normalized(inputs, outputs, size, stride):
    return nn.Sequential(nn.Conv2d(inputs, outputs, size, stride, size // 2, bias=False), nn.BatchNorm2d(outputs))


class Bottleneck(nn.Module):
    """x: [n, inputs, h, h] -> [n, 4 width, h / stride, h / stride]."""

    def __init__(self, inputs, width, stride):
        super().__init__()
        relu = nn.ReLU(inplace=True)
        self.residual = nn.Sequential(*normalized(inputs, width, 1, 1), relu, *normalized(width, width, 3, stride), relu,
                                      *normalized(width, 4 * width, 1, 1))
        projects = stride != 1 or inputs != 4 * width
        self.shortcut = normalized(inputs, 4 * width, 1, stride) if projects else nn.Identity()

    def forward(self, x):
        return torch.relu_(self.residual(x) + self.shortcut(x))


def resnet50(classes):
    layers = [*normalized(3, 64, 7, 2), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1)]
    inputs = 64
    for stage, count in enumerate((3, 4, 6, 3)):
        for block in range(count):
            layers.append(Bottleneck(inputs, 64 << stage, 2 if stage > 0 and block == 0 else 1))
            inputs = 4 * (64 << stage)
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inputs, classes))


def training_step(device, n, image, classes, recipe):
    """A function that runs one step: f32 weights, autocast for bf16, label smoothing of 0.1, SGD with momentum."""
    model = resnet50(classes).to(device, memory_format=torch.channels_last)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.125, momentum=0.9, weight_decay=1e-4, foreach=True)
    images = torch.randn(n, 3, image, image, device=device).contiguous(memory_format=torch.channels_last)
    labels = torch.randint(classes, (n,), device=device)

    def step():
        with torch.autocast(torch.device(device).type, dtype=torch.bfloat16, enabled=recipe == "bf16"):
            loss = F.cross_entropy(model(images), labels, label_smoothing=0.1)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        return loss

    return step
