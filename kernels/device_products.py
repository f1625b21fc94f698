"""Matrix products on a device, which the kernels of linear algebra and of networks are made of.

On CUDA they are cuBLAS's, through CuPy.  On OpenCL they are our own: for processors a kernel that
keeps a block of the result in vector registers, after the right operand was laid out in panels;
for GPUs one that loads tiles into local memory.
"""

from __future__ import annotations

from typing import Any

from legato_rt.kernels.device_launch import Program, build, traits
from legato_rt.kernels.device_source import Source

GEMM = Source("gemm", ROWS=4, VECTORS=3, VECTOR=4, GROUP=16, EACH=4, DEPTH=16)
PACK_GROUP = 1, 16


def multiply(
    a: Any,
    b: Any,
    c: Any,
    alpha: float = 1.0,
    beta: float = 1.0,
    transpose_a: bool = False,
    transpose_b: bool = False,
    lower: bool = False,
) -> None:
    """Enqueue c ← alpha·op(a)·op(b) + beta·c.

    Parameters
    ----------
    a, b, c : device arrays of one precision, two-dimensional
        Blocks of larger arrays will do.  With ``beta=0`` what `c` holds is not read.
    alpha, beta : float
    transpose_a, transpose_b : bool
        Whether op transposes.
    lower : bool
        Leave `c` as it is above its diagonal.

    Raises
    ------
    ValueError
        If the shapes do not fit.
    """
    sizes = _sizes(a, b, c, transpose_a, transpose_b)
    device = traits(c)
    if min(sizes[:2]) == 0:
        return
    if device.kind == "cuda":
        _cublas(a.T if transpose_a else a, b.T if transpose_b else b, c, alpha, beta, lower)
        return
    left, right = (a, *_steps(a, transpose_a)), (b, *_steps(b, transpose_b))
    tail = float(beta), c, _steps(c, False)[0], lower
    enqueue = _registers if device.scalar else tiles
    enqueue(sizes, left, right, float(alpha), tail)


def _sizes(a: Any, b: Any, c: Any, transpose_a: bool, transpose_b: bool) -> tuple[int, int, int]:
    """Return rows, columns and the inner dimension."""
    rows, inner = a.shape[::-1] if transpose_a else a.shape
    inner_b, columns = b.shape[::-1] if transpose_b else b.shape
    if inner != inner_b or c.shape != (rows, columns):
        raise ValueError(f"a {a.shape}, b {b.shape} and c {c.shape} do not fit")
    return rows, columns, inner


def _steps(array: Any, transposed: bool) -> tuple[int, int]:
    """Return how many elements apart rows and columns are."""
    row, column = (stride // array.dtype.itemsize for stride in array.strides)
    return (column, row) if transposed else (row, column)


def _cublas(a: Any, b: Any, c: Any, alpha: float, beta: float, lower: bool) -> None:
    product = a @ b
    if alpha != 1:
        product *= alpha
    if beta != 0:
        product += c if beta == 1 else beta * c
    if lower:
        import cupy

        cupy.copyto(c, product, where=cupy.tri(*c.shape, dtype=bool))
    else:
        c[...] = product


def _registers(
    sizes: tuple[int, int, int],
    a: tuple[Any, int, int],
    b: tuple[Any, int, int],
    alpha: float,
    tail: tuple[Any, ...],
) -> None:
    rows, columns, inner = sizes
    like = tail[1]
    block = register_block(traits(like).vector_bytes, like.dtype.itemsize, columns)
    program = build(GEMM, like, **block)
    panel = block["VECTOR"] * block["VECTORS"]
    array, row, column = a
    high = block["ROWS"]
    left: tuple[Any, ...] = array, row, column, high * row
    if column != 1:
        left = _packed(program, (inner, rows), high, (array, column, row)), 1, high, inner * high
    right = _packed(program, (inner, columns), panel, b).base_data
    items = -(-rows // high), -(-columns // panel)
    program.launch("gemm_registers", items, (1, 1), *sizes, alpha, *left, right, *tail)


def _packed(
    program: Program, shape: tuple[int, int], width: int, matrix: tuple[Any, int, int]
) -> Any:
    """Return a matrix in panels of columns, the last one filled up with zeros."""
    inner, columns = shape
    panels = -(-columns // width)
    packed = program.scratch(max(1, panels * width * inner), matrix[0].dtype)
    program.launch(
        "gemm_pack", (panels, inner), PACK_GROUP, inner, columns, width, *matrix, packed.base_data
    )
    return packed


def register_block(vector_bytes: int, itemsize: int, columns: int) -> dict[str, int]:
    """Return the constants of the block of c that an item holds in registers.

    AVX-512 has 32 registers of 64 bytes: 16 hold the block, others its operands.  Of narrower
    registers there may be 16 only: 12 hold the block.
    """
    vector = vector_bytes // itemsize
    rows, vectors = (8, 2) if vector_bytes >= 64 else (4, 3)
    return {"VECTOR": vector, "VECTORS": 1 if columns <= vector else vectors, "ROWS": rows}


def tiles(
    sizes: tuple[int, int, int],
    a: tuple[Any, int, int],
    b: tuple[Any, int, int],
    alpha: float,
    tail: tuple[Any, ...],
) -> None:
    """Enqueue the product through tiles in local memory; what `multiply` does on a GPU."""
    rows, columns, _ = sizes
    group, each = int(GEMM.constants["GROUP"]), int(GEMM.constants["EACH"])
    program: Program = build(GEMM, tail[1])
    items = -(-columns // each), -(-rows // each)
    program.launch("gemm_tiles", items, (group, group), *sizes, alpha, *a, *b, *tail)
