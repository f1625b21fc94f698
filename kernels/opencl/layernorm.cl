// Each row to mean 0 and variance 1, then times gamma plus beta; a group per row.
__kernel void layernorm(const index columns, const real epsilon, BUFFER(const real, x),
                        BUFFER(const real, gamma), BUFFER(const real, beta), BUFFER(real, y)) {
    OFFSET(x);
    OFFSET(gamma);
    OFFSET(beta);
    OFFSET(y);
    __local wide shared[LANES];
    const index lane = get_local_id(0), row = get_group_id(0);
    x += row * columns;
    y += row * columns;
    wide sum = 0;
    for (index k = lane; k < columns; k += LANES) sum += x[k];
    shared[lane] = sum;
    COMBINE_LANES(shared, lane, ADD);
    const wide mean = shared[0] / columns;
    barrier(CLK_LOCAL_MEM_FENCE);
    sum = 0;
    for (index k = lane; k < columns; k += LANES) sum += (x[k] - mean) * (x[k] - mean);
    shared[lane] = sum;
    COMBINE_LANES(shared, lane, ADD);
    const wide scale = 1 / sqrt(shared[0] / columns + epsilon);
    for (index k = lane; k < columns; k += LANES)
        y[k] = (real)((x[k] - mean) * scale) * gamma[k] + beta[k];
}
