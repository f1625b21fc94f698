"""Factorises a random symmetric positive definite matrix, tile by tile, as a task graph."""
