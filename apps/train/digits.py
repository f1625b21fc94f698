"""The handwritten digits that scikit-learn ships: 1,797 scans of 8 × 8 pixels, ten classes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

SIDE = 8
CLASSES = 10
SHIFT = 1
"""A training image is moved by up to this many pixels, each way."""

Floats = npt.NDArray[np.float32]
Integers = npt.NDArray[np.intp]


@dataclass(frozen=True)
class Digits:
    """Images (N, 8, 8, 1) with values from 0 to 1, and their classes (N,)."""

    images: Floats
    classes: Integers

    def __len__(self) -> int:
        return len(self.classes)


def load_digits(seed: int) -> tuple[Digits, Digits]:
    """Return training and test digits: four fifths and one fifth of each class.

    Raises
    ------
    SystemExit
        If scikit-learn is missing.
    """
    try:
        from sklearn import datasets, model_selection
    except ImportError:
        raise SystemExit("apps/train needs scikit-learn: pip install 'legato_rt[demo]'") from None
    images, classes = datasets.load_digits(return_X_y=True)
    images = (images / 16).astype(np.float32).reshape(-1, SIDE, SIDE, 1)
    train, test = model_selection.train_test_split(
        np.arange(len(classes)), test_size=0.2, stratify=classes, random_state=seed
    )
    return Digits(images[train], classes[train]), Digits(images[test], classes[test])


def with_margin(images: Floats) -> Floats:
    """Return the images with `SHIFT` empty pixels around each, to collect moved images from."""
    return np.pad(images, ((0, 0), (SHIFT, SHIFT), (SHIFT, SHIFT), (0, 0)))
