// A convolution as a matrix product: row (n, p, q) of `patches` holds the pixels that output pixel
// (p, q) of image n meets, in the order (u, v, c) of the filters. Images are (N, height, width,
// channels). The lanes of a patch or a pixel share its elements.

// An item per patch and lane. The pixels of a line of the patch lie side by side in the image.
__kernel void patches_gather(const index count, const index height, const index width,
                             const index channels, const index out_height, const index out_width,
                             const index filter_height, const index filter_width, const index pad,
                             const index stride, BUFFER(const real, x), BUFFER(real, patches)) {
    OFFSET(x);
    OFFSET(patches);
    const index lane = get_local_id(0), patch = get_global_id(1);
    if (patch >= count) return;
    const index q = patch % out_width, p = patch / out_width % out_height;
    const index n = patch / out_width / out_height;
    const index run = filter_width * channels, line = width * channels;
    const index left = (q * stride - pad) * channels;
    patches += patch * filter_height * run;
    for (index u = 0; u < filter_height; u++) {
        const index row = p * stride + u - pad;
        __global const real *source = x + (n * height + row) * line + left;
        const int inside = row >= 0 && row < height;
        for (index j = lane; j < run; j += LANES)
            patches[u * run + j] = inside && left + j >= 0 && left + j < line ? source[j] : 0;
    }
}

// The reverse: each pixel the sum of its places in the patches; an item per pixel of dx and lane.
__kernel void patches_scatter(const index count, const index height, const index width,
                              const index channels, const index out_height, const index out_width,
                              const index filter_height, const index filter_width,
                              const index pad, const index stride, BUFFER(const real, patches),
                              BUFFER(real, dx)) {
    OFFSET(patches);
    OFFSET(dx);
    const index lane = get_local_id(0), pixel = get_global_id(1);
    if (pixel >= count) return;
    const index column = pixel % width + pad, row = pixel / width % height + pad;
    const index n = pixel / width / height;
    dx += pixel * channels;
    for (index c = lane; c < channels; c += LANES) dx[c] = 0;
    for (index u = row % stride; u < filter_height && u <= row; u += stride) {
        const index p = (row - u) / stride;
        if (p >= out_height) continue;
        for (index v = column % stride; v < filter_width && v <= column; v += stride) {
            const index q = (column - v) / stride;
            if (q >= out_width) continue;
            const index patch = (n * out_height + p) * out_width + q;
            __global const real *source =
                patches + ((patch * filter_height + u) * filter_width + v) * channels;
            for (index c = lane; c < channels; c += LANES) dx[c] += source[c];
        }
    }
}
