"""Your test, with gpubench's bounds in place of a tolerance: pip install gpubench pytest torch; pytest"""
import torch


def test_gelu_of_pytorch_is_right_in_bf16(gpubench_check):
    x = torch.randn(64, 256, dtype=torch.bfloat16)
    y = torch.nn.functional.gelu(x.float(), approximate="tanh").bfloat16()
    gpubench_check("gelu_forward", inputs={"x": x}, outputs={"y": y})
