"""Images and audio: codecs, resizing, colors, boxes, spectrograms."""
