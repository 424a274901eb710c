"""The races against PyTorch, see ../race-pytorch. Only peers.py, gpt2.py and resnet.py need torch."""
