// A batch of images (count, height, width, channels), each cut out of a larger one, and their
// classes; an item per row of an image and lane. A pick or a corner out of range gives NaN, and the
// class -1.
__kernel void collect(const index rows, const index images, const index tall, const index broad,
                      const index height, const index width, const index channels,
                      BUFFER(const real, x), BUFFER(const WHOLE, classes),
                      BUFFER(const WHOLE, picks), BUFFER(const WHOLE, corners), BUFFER(real, y),
                      BUFFER(WHOLE, labels)) {
    OFFSET(x);
    OFFSET(classes);
    OFFSET(picks);
    OFFSET(corners);
    OFFSET(y);
    OFFSET(labels);
    const index lane = get_local_id(0), row = get_global_id(1);
    if (row >= rows) return;
    const index n = row / height, p = row % height, pick = picks[n];
    const index top = corners[2 * n], left = corners[2 * n + 1];
    const int there = pick >= 0 && pick < images && top >= 0 && top + height <= tall && left >= 0 &&
                      left + width <= broad;
    if (lane == 0 && p == 0) labels[n] = there ? classes[pick] : -1;
    const index origin = ((pick * tall + top + p) * broad + left) * channels;
    y += row * width * channels;
    for (index i = lane; i < width * channels; i += LANES) y[i] = there ? x[origin + i] : NAN;
}
