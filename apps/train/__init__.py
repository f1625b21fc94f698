"""Trains a small convolutional network on real handwritten digits, as a task graph."""
