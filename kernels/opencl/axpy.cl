// y += alpha x, an item per element.
__kernel void axpy(const index n, const real alpha, BUFFER(const real, x), BUFFER(real, y)) {
    OFFSET(x);
    OFFSET(y);
    const index i = get_global_id(0);
    if (i < n) y[i] += alpha * x[i];
}
