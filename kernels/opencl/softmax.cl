// y = exp(x) / Σ exp(x) of each row, a group per row.
__kernel void softmax(const index columns, BUFFER(const real, x), BUFFER(real, y)) {
    OFFSET(x);
    OFFSET(y);
    __local wide shared[LANES];
    const index lane = get_local_id(0), row = get_group_id(0);
    x += row * columns;
    y += row * columns;
    real largest = -INFINITY;
    for (index k = lane; k < columns; k += LANES) largest = LARGER(largest, x[k]);
    shared[lane] = largest;
    COMBINE_LANES(shared, lane, LARGER);
    largest = (real)shared[0];
    barrier(CLK_LOCAL_MEM_FENCE);
    wide sum = 0;
    for (index k = lane; k < columns; k += LANES) {
        const real e = exp(x[k] - largest);
        y[k] = e;
        sum += e;
    }
    shared[lane] = sum;
    COMBINE_LANES(shared, lane, ADD);
    const real total = (real)shared[0];
    for (index k = lane; k < columns; k += LANES) y[k] /= total;
}
