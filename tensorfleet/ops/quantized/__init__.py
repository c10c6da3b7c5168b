"""Quantized arithmetic: fake quantization, conversions, layers on 8-bit numbers."""
