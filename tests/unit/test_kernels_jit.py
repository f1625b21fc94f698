"""Compilation on the first call: what it spares, and that threads may race to it."""

import subprocess
import sys
import threading
from typing import Any

import numpy as np
import numpy.typing as npt

from legato_rt.kernels.jit import lazy_njit

Array = npt.NDArray[Any]


def test_lazy_njit_compiles_once_for_many_threads() -> None:
    def fill(x: Array, value: float) -> None:
        for i in range(x.size):
            x[i] = value

    lazy = lazy_njit(fill)
    barrier = threading.Barrier(4)
    outputs = [np.zeros(3) for _ in range(4)]

    def work(x: Array) -> None:
        barrier.wait()
        lazy(x, 2.0)

    threads = [threading.Thread(target=work, args=(x,)) for x in outputs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [x.tolist() for x in outputs] == [[2.0] * 3] * 4
    assert lazy.__name__ == "fill"


def test_import_loads_no_numba() -> None:
    names = "conv2d", "dense", "maxpool", "relu", "sgd", "softmax_cross_entropy"
    code = "import sys\n"
    code += "".join(f"import legato_rt.kernels.{name}\n" for name in names)
    code += "sys.exit('numba' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
