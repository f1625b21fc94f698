// The largest value of each side × side window of images (N, height, width, channels), and its
// gradient; an item per window and lane. The lanes share the channels.

__kernel void maxpool(const index count, const index height, const index width,
                      const index channels, const index side, BUFFER(const real, x),
                      BUFFER(real, y)) {
    OFFSET(x);
    OFFSET(y);
    const index lane = get_local_id(0), window = get_global_id(1);
    const index out_height = height / side, out_width = width / side;
    if (window >= count) return;
    const index q = window % out_width, p = window / out_width % out_height;
    const index n = window / out_width / out_height;
    x += ((n * height + p * side) * width + q * side) * channels;
    y += window * channels;
    for (index c = lane; c < channels; c += LANES) y[c] = x[c];
    for (index u = 0; u < side; u++)
        for (index v = 0; v < side; v++) {
            __global const real *values = x + (u * width + v) * channels;
            for (index c = lane; c < channels; c += LANES) y[c] = LARGER(y[c], values[c]);
        }
}

// Windows that the border cuts off are counted, too: they get 0.
__kernel void maxpool_grad(const index count, const index height, const index width,
                           const index channels, const index side, BUFFER(const real, x),
                           BUFFER(const real, dy), BUFFER(real, dx)) {
    OFFSET(x);
    OFFSET(dy);
    OFFSET(dx);
    const index lane = get_local_id(0), window = get_global_id(1);
    const index out_height = height / side, out_width = width / side;
    const index across = (width + side - 1) / side, down = (height + side - 1) / side;
    if (window >= count) return;
    const index q = window % across, p = window / across % down, n = window / across / down;
    const index origin = ((n * height + p * side) * width + q * side) * channels;
    const index rows = min(side, height - p * side), columns = min(side, width - q * side);
    const int whole = p < out_height && q < out_width;
    dy += ((n * out_height + p) * out_width + q) * channels;
    for (index c = lane; c < channels; c += LANES) {
        real best = 0;
        index first = -1;
        for (index u = 0; whole && u < side; u++)
            for (index v = 0; v < side; v++) {
                const real value = x[origin + (u * width + v) * channels + c];
                // A NaN is largest, and the first one stays.
                if (first < 0 || value > best || (value != value && best == best)) {
                    best = value;
                    first = u * side + v;
                }
            }
        for (index u = 0; u < rows; u++)
            for (index v = 0; v < columns; v++)
                dx[origin + (u * width + v) * channels + c] = u * side + v == first ? dy[c] : 0;
    }
}
