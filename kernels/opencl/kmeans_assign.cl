// The nearest centre of each point and the squared distance to it, an item per point.
__kernel void kmeans_assign(const index n, const index k, const index dimensions,
                            BUFFER(const real, points), BUFFER(const real, centres),
                            BUFFER(int, labels), BUFFER(real, distances)) {
    OFFSET(points);
    OFFSET(centres);
    OFFSET(labels);
    OFFSET(distances);
    const index i = get_global_id(0);
    if (i >= n) return;
    points += i * dimensions;
    real nearest = INFINITY;
    int label = 0;
    for (index c = 0; c < k; c++) {
        real sum = 0;
        for (index d = 0; d < dimensions; d++) {
            const real off = points[d] - centres[c * dimensions + d];
            sum += off * off;
        }
        // A NaN counts as nearest, as NumPy's argmin has it. Only a NaN differs from itself.
        if (c == 0 || sum < nearest || (sum != sum && nearest == nearest)) {
            nearest = sum;
            label = (int)c;
        }
    }
    labels[i] = label;
    distances[i] = nearest;
}
