// A convolution as a matrix product: row (n, p, q) of `patches` holds the pixels that output pixel
// (p, q) of image n meets, in the order (u, v, c) of the filters. Images are (N, height, width,
// channels).

// An item per element of the patches.
__kernel void patches_gather(const index size, const index height, const index width,
                             const index channels, const index out_height, const index out_width,
                             const index filter_height, const index filter_width, const index pad,
                             const index stride, BUFFER(const real, x), BUFFER(real, patches)) {
    OFFSET(x);
    OFFSET(patches);
    const index i = get_global_id(0);
    if (i >= size) return;
    index rest = i;
    const index c = rest % channels;
    rest /= channels;
    const index v = rest % filter_width;
    rest /= filter_width;
    const index u = rest % filter_height;
    rest /= filter_height;
    const index q = rest % out_width;
    rest /= out_width;
    const index p = rest % out_height, n = rest / out_height;
    const index row = p * stride + u - pad, column = q * stride + v - pad;
    const int inside = row >= 0 && row < height && column >= 0 && column < width;
    patches[i] = inside ? x[((n * height + row) * width + column) * channels + c] : 0;
}

// The reverse: each pixel the sum of its places in the patches; an item per element of dx.
__kernel void patches_scatter(const index size, const index height, const index width,
                              const index channels, const index out_height, const index out_width,
                              const index filter_height, const index filter_width,
                              const index pad, const index stride, BUFFER(const real, patches),
                              BUFFER(real, dx)) {
    OFFSET(patches);
    OFFSET(dx);
    const index i = get_global_id(0);
    if (i >= size) return;
    index rest = i;
    const index c = rest % channels;
    rest /= channels;
    const index column = rest % width + pad;
    rest /= width;
    const index row = rest % height + pad, n = rest / height;
    wide sum = 0;
    for (index u = row % stride; u < filter_height && u <= row; u += stride) {
        const index p = (row - u) / stride;
        if (p >= out_height) continue;
        for (index v = column % stride; v < filter_width && v <= column; v += stride) {
            const index q = (column - v) / stride;
            if (q >= out_width) continue;
            const index patch = (n * out_height + p) * out_width + q;
            sum += patches[((patch * filter_height + u) * filter_width + v) * channels + c];
        }
    }
    dx[i] = (real)sum;
}
