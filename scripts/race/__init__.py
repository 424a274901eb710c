"""The races against PyTorch, see ../race-pytorch. Everything but peers.py and gpt2.py works without torch."""
