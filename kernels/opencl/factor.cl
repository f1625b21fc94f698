// The small blocks on the diagonal of a factorisation; gemm does the rest.

// The lower Cholesky factor over a block of up to any size, by one group. A pivot that is not
// positive leaves NaN in what follows it.
__kernel void potrf_block(const index size, BUFFER(real, a), const index a_row) {
    OFFSET(a);
    const index lane = get_local_id(0);
    for (index k = 0; k < size; k++) {
        __global real *column = a + k;
        if (lane == 0) column[k * a_row] = sqrt(column[k * a_row]);
        barrier(CLK_GLOBAL_MEM_FENCE);
        for (index i = k + 1 + lane; i < size; i += LANES) column[i * a_row] /= column[k * a_row];
        barrier(CLK_GLOBAL_MEM_FENCE);
        for (index i = k + 1 + lane; i < size; i += LANES)
            for (index j = k + 1; j <= i; j++)
                a[i * a_row + j] -= column[i * a_row] * column[j * a_row];
        barrier(CLK_GLOBAL_MEM_FENCE);
    }
}

// x·lowerᵀ = b over b, for a lower triangle of at most BLOCK rows; an item per row of b.
__kernel void trsm_block(const index rows, const index size, BUFFER(const real, lower),
                         const index lower_row, BUFFER(real, b), const index b_row) {
    OFFSET(lower);
    OFFSET(b);
    const index i = get_global_id(0);
    if (i >= rows) return;
    b += i * b_row;
    real x[BLOCK];
    for (index j = 0; j < size; j++) {
        real sum = b[j];
        for (index k = 0; k < j; k++) sum -= x[k] * lower[j * lower_row + k];
        x[j] = sum / lower[j * lower_row + j];
        b[j] = x[j];
    }
}
