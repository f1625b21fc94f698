// y = A x for a sparse A in rows (CSR), a group per row. A column outside x makes y NaN.
__kernel void spmv(const index columns_of_a, BUFFER(const real, values),
                   BUFFER(const COLUMN, columns), BUFFER(const START, starts),
                   BUFFER(const real, x), BUFFER(real, y)) {
    OFFSET(values);
    OFFSET(columns);
    OFFSET(starts);
    OFFSET(x);
    OFFSET(y);
    __local wide shared[LANES];
    const index lane = get_local_id(0), row = get_group_id(0);
    const index last = starts[row + 1];
    wide sum = 0;
    for (index i = starts[row] + lane; i < last; i += LANES) {
        const index column = columns[i];
        if (column >= 0 && column < columns_of_a)
            sum += (wide)values[i] * x[column];
        else
            sum = NAN;
    }
    shared[lane] = sum;
    COMBINE_LANES(shared, lane, ADD);
    if (lane == 0) y[row] = (real)shared[0];
}
