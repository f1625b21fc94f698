// What layers do to a matrix's rows besides products.

// The same vector into every row of y; an item per row and lane, which share the columns.
__kernel void rows_fill(const index count, const index columns, BUFFER(const real, b),
                        BUFFER(real, y)) {
    OFFSET(b);
    OFFSET(y);
    const index row = get_global_id(1);
    if (row >= count) return;
    for (index j = get_local_id(0); j < columns; j += LANES) y[row * columns + j] = b[j];
}

// Sums down the columns, an item per column and segment of `length` rows.
__kernel void rows_sum_parts(const index rows, const index columns, const index length,
                             BUFFER(const real, x), BUFFER(wide, parts)) {
    OFFSET(x);
    OFFSET(parts);
    const index column = get_global_id(0), segment = get_global_id(1);
    if (column >= columns || segment * length >= rows) return;
    const index last = min(rows, (segment + 1) * length);
    wide sum = 0;
    for (index i = segment * length; i < last; i++) sum += x[i * columns + column];
    parts[segment * columns + column] = sum;
}

__kernel void rows_sum_finish(const index segments, const index columns, BUFFER(const wide, parts),
                              BUFFER(real, out)) {
    OFFSET(parts);
    OFFSET(out);
    const index column = get_global_id(0);
    if (column >= columns) return;
    wide sum = 0;
    for (index s = 0; s < segments; s++) sum += parts[s * columns + column];
    out[column] = (real)sum;
}
