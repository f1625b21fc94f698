// max(x, 0) and its gradient, an item per element.

__kernel void relu(const index n, BUFFER(const real, x), BUFFER(real, y)) {
    OFFSET(x);
    OFFSET(y);
    const index i = get_global_id(0);
    if (i < n) y[i] = x[i] < 0 ? 0 : x[i]; // a NaN is not less
}

__kernel void relu_grad(const index n, BUFFER(const real, y), BUFFER(const real, dy),
                        BUFFER(real, dx)) {
    OFFSET(y);
    OFFSET(dy);
    OFFSET(dx);
    const index i = get_global_id(0);
    if (i < n) dx[i] = y[i] > 0 ? dy[i] : 0;
}
