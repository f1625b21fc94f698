// One step of a five-point stencil, an item per point; the border stays as it is.
__kernel void stencil2d(const index height, const index width, const real centre, const real side,
                        BUFFER(const real, u), BUFFER(real, v)) {
    OFFSET(u);
    OFFSET(v);
    const index column = get_global_id(0), row = get_global_id(1);
    if (row >= height || column >= width) return;
    const index i = row * width + column;
    if (row == 0 || column == 0 || row == height - 1 || column == width - 1)
        v[i] = u[i];
    else
        v[i] = centre * u[i] + side * ((u[i - width] + u[i + width]) + (u[i - 1] + u[i + 1]));
}
