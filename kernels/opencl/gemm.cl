// c = alpha·op(a)·op(b) + beta·c. Element (i, k) of op(a) is a[i·a_row + k·a_column], and so on;
// so one kernel serves every transpose and every block of a larger matrix. With beta 0, c is not
// read. With `lower`, only elements on and under the diagonal are written.

#define KEEP(i, j) (!lower || (j) <= (i))

#ifdef __OPENCL_VERSION__
// For CPUs: an item holds ROWS × PANEL elements of c in vector registers and goes through op(b) as
// gemm_pack laid it out: panels of PANEL columns, each row of a panel contiguous, padded by zeros.
// op(a) is read in rows; where its rows are columns in memory, gemm_pack lays out its transpose in
// panels of ROWS.
#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)
#define PANEL (VECTORS * VECTOR)
typedef JOIN(real, VECTOR) vector;

// Panels of `width` columns; an item per row of a panel.
__kernel void gemm_pack(const index inner, const index columns, const index width,
                        BUFFER(const real, b), const index b_row, const index b_column,
                        __global real *packed) {
    OFFSET(b);
    const index panel = get_global_id(0), k = get_global_id(1), left = panel * width;
    if (left >= columns || k >= inner) return;
    packed += (panel * inner + k) * width;
    b += k * b_row + left * b_column;
    if (left + width > columns)
        for (int j = 0; j < width; j++) packed[j] = left + j < columns ? b[j * b_column] : 0;
    else if (b_column == 1)
        for (int j = 0; j < width; j++) packed[j] = b[j];
    else
        for (int j = 0; j < width; j++) packed[j] = b[j * b_column];
}

__kernel void gemm_registers(const index rows, const index columns, const index inner,
                             const real alpha, BUFFER(const real, a), const index a_row,
                             const index a_column, const index a_block,
                             __global const vector *packed, const real beta, BUFFER(real, c),
                             const index c_row, const index lower) {
    OFFSET(a);
    OFFSET(c);
    const index top = get_global_id(0) * ROWS, left = get_global_id(1) * PANEL;
    if (top >= rows || left >= columns || !KEEP(top + ROWS - 1, left)) return;
    packed += get_global_id(1) * inner * VECTORS;
    vector sums[ROWS][VECTORS];
    __global const real *line[ROWS];
    // The last rows again, where there are fewer than ROWS: reading twice is cheaper than asking.
#pragma unroll
    for (int r = 0; r < ROWS; r++) {
        const index i = min(top + r, rows - 1);
        line[r] = a + i / ROWS * a_block + i % ROWS * a_row;
#pragma unroll
        for (int v = 0; v < VECTORS; v++) sums[r][v] = 0;
    }
    for (index k = 0; k < inner; k++) {
#pragma unroll
        for (int r = 0; r < ROWS; r++) {
            const real x = line[r][k * a_column];
            // Not fma(): to PoCL it is a function to call, for which the registers are saved.
#pragma unroll
            for (int v = 0; v < VECTORS; v++) sums[r][v] += x * packed[k * VECTORS + v];
        }
    }
#pragma unroll
    for (int r = 0; r < ROWS; r++) {
        real sum[PANEL];
#pragma unroll
        for (int v = 0; v < VECTORS; v++) JOIN(vstore, VECTOR)(alpha * sums[r][v], v, sum);
        const index i = top + r, some = i < rows ? min((index)PANEL, columns - left) : 0;
        __global real *out = c + i * c_row + left;
        for (index j = 0; j < some; j++)
            if (KEEP(i, left + j)) out[j] = beta == 0 ? sum[j] : sum[j] + beta * out[j];
    }
}
#endif

// For GPUs: a group computes a SIDE × SIDE tile of c, EACH × EACH elements per item, from tiles of
// op(a) and op(b) that it loads into local memory, DEPTH of the inner dimension at a time.
#define SIDE (GROUP * EACH)

__kernel void gemm_tiles(const index rows, const index columns, const index inner,
                         const real alpha, BUFFER(const real, a), const index a_row,
                         const index a_column, BUFFER(const real, b), const index b_row,
                         const index b_column, const real beta, BUFFER(real, c),
                         const index c_row, const index lower) {
    OFFSET(a);
    OFFSET(b);
    OFFSET(c);
    __local real tile_a[DEPTH][SIDE + 1], tile_b[DEPTH][SIDE + 1];
    const int x = get_local_id(0), y = get_local_id(1), item = y * GROUP + x;
    const index left = get_group_id(0) * SIDE, top = get_group_id(1) * SIDE;
    if (!KEEP(top + SIDE - 1, left)) return; // the whole group
    real sums[EACH][EACH];
    for (int i = 0; i < EACH; i++)
        for (int j = 0; j < EACH; j++) sums[i][j] = 0;
    for (index first = 0; first < inner; first += DEPTH) {
        // Neighbouring items read neighbouring elements, whichever way the matrix lies.
        for (int e = item; e < SIDE * DEPTH; e += GROUP * GROUP) {
            int i = a_column == 1 ? e / DEPTH : e % SIDE, k = a_column == 1 ? e % DEPTH : e / SIDE;
            tile_a[k][i] = top + i < rows && first + k < inner
                               ? a[(top + i) * a_row + (first + k) * a_column] : 0;
            i = b_column == 1 ? e % SIDE : e / DEPTH, k = b_column == 1 ? e / SIDE : e % DEPTH;
            tile_b[k][i] = left + i < columns && first + k < inner
                               ? b[(first + k) * b_row + (left + i) * b_column] : 0;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int k = 0; k < DEPTH; k++)
            for (int i = 0; i < EACH; i++)
                for (int j = 0; j < EACH; j++)
                    sums[i][j] += tile_a[k][y + i * GROUP] * tile_b[k][x + j * GROUP];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    for (int i = 0; i < EACH; i++)
        for (int j = 0; j < EACH; j++) {
            const index row = top + y + i * GROUP, column = left + x + j * GROUP;
            if (row >= rows || column >= columns || !KEEP(row, column)) continue;
            const real sum = alpha * sums[i][j];
            const index at = row * c_row + column;
            c[at] = beta == 0 ? sum : sum + beta * c[at];
        }
}
