"""Writes fixtures/: archives whose modules call operators of their own. Needs torch."""

import os

import torch
from frontends.archives import make
from frontends.plugin.operators import Custom

FIXTURES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "fixtures")


def main():
    os.makedirs(FIXTURES, exist_ok=True)
    torch.manual_seed(0)
    module, inputs = Custom().eval(), (torch.randn(4, 6),)
    make.save_data(module, inputs, f"{FIXTURES}/custom.npz")
    make.save_program(module, inputs, f"{FIXTURES}/custom.pt2")
    traced = torch.jit.trace(module, inputs, check_trace=False)
    make.save_script(traced, f"{FIXTURES}/custom.traced.pt")
    make.save_script(torch.jit.script(module), f"{FIXTURES}/custom.scripted.pt")


if __name__ == "__main__":
    main()
