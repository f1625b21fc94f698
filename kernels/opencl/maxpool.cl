// The largest value of each side × side window of images (N, height, width, channels), and its
// gradient.

__kernel void maxpool(const index size, const index height, const index width,
                      const index channels, const index side, BUFFER(const real, x),
                      BUFFER(real, y)) {
    OFFSET(x);
    OFFSET(y);
    const index i = get_global_id(0), out_height = height / side, out_width = width / side;
    if (i >= size) return;
    index rest = i;
    const index c = rest % channels;
    rest /= channels;
    const index q = rest % out_width;
    rest /= out_width;
    const index p = rest % out_height, n = rest / out_height;
    x += ((n * height + p * side) * width + q * side) * channels + c;
    real best = x[0];
    for (index u = 0; u < side; u++)
        for (index v = 0; v < side; v++) {
            const real value = x[(u * width + v) * channels];
            if (value > best || value != value) best = value; // a NaN is largest
        }
    y[i] = best;
}

// An item per window and channel, windows cut off by the border counted too: they get 0.
__kernel void maxpool_grad(const index size, const index height, const index width,
                           const index channels, const index side, BUFFER(const real, x),
                           BUFFER(const real, dy), BUFFER(real, dx)) {
    OFFSET(x);
    OFFSET(dy);
    OFFSET(dx);
    const index i = get_global_id(0), out_height = height / side, out_width = width / side;
    if (i >= size) return;
    index rest = i;
    const index c = rest % channels;
    rest /= channels;
    const index across = (width + side - 1) / side, down = (height + side - 1) / side;
    const index q = rest % across;
    rest /= across;
    const index p = rest % down, n = rest / down;
    const index origin = ((n * height + p * side) * width + q * side) * channels + c;
    const index rows = min(side, height - p * side), columns = min(side, width - q * side);
    index first = -1;
    if (p < out_height && q < out_width) {
        real best = x[origin];
        first = 0;
        for (index k = 1; k < side * side; k++) {
            const real value = x[origin + (k / side * width + k % side) * channels];
            if (value > best || (value != value && best == best)) {
                best = value;
                first = k;
            }
        }
    }
    for (index u = 0; u < rows; u++)
        for (index v = 0; v < columns; v++)
            dx[origin + (u * width + v) * channels] =
                u * side + v == first ? dy[((n * out_height + p) * out_width + q) * channels + c] : 0;
}
