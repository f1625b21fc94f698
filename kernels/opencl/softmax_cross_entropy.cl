// log Σ exp(scores) - scores[class] of each row, and its gradient; a group per row.

// Writes the largest score and Σ exp(score - largest) of a row into `largest` and `sum`.
#define SOFTMAX_OF_ROW(scores, columns, lane, shared, largest, sum)                             \
    for (index k = lane; k < columns; k += LANES) largest = LARGER(largest, scores[k]);         \
    shared[lane] = largest;                                                                     \
    COMBINE_LANES(shared, lane, LARGER);                                                        \
    largest = (real)shared[0];                                                                  \
    barrier(CLK_LOCAL_MEM_FENCE);                                                               \
    for (index k = lane; k < columns; k += LANES) sum += exp(scores[k] - largest);              \
    shared[lane] = sum;                                                                         \
    COMBINE_LANES(shared, lane, ADD);                                                           \
    sum = shared[0]

__kernel void softmax_cross_entropy(const index columns, BUFFER(const real, scores),
                                    BUFFER(const CLASS, classes), BUFFER(real, loss)) {
    OFFSET(scores);
    OFFSET(classes);
    OFFSET(loss);
    __local wide shared[LANES];
    const index lane = get_local_id(0), row = get_group_id(0);
    scores += row * columns;
    real largest = -INFINITY;
    wide sum = 0;
    SOFTMAX_OF_ROW(scores, columns, lane, shared, largest, sum);
    const index k = classes[row];
    if (lane == 0)
        loss[row] = k >= 0 && k < columns ? (real)(log(sum) - (scores[k] - largest)) : NAN;
}

__kernel void softmax_cross_entropy_grad(const index columns, const real scale,
                                         BUFFER(const real, scores), BUFFER(const CLASS, classes),
                                         BUFFER(real, dscores)) {
    OFFSET(scores);
    OFFSET(classes);
    OFFSET(dscores);
    __local wide shared[LANES];
    const index lane = get_local_id(0), row = get_group_id(0);
    scores += row * columns;
    dscores += row * columns;
    real largest = -INFINITY;
    wide sum = 0;
    SOFTMAX_OF_ROW(scores, columns, lane, shared, largest, sum);
    const index hit = classes[row];
    for (index k = lane; k < columns; k += LANES) {
        const real part = exp(scores[k] - largest) / (real)sum;
        dscores[k] = (k == hit ? part - 1 : part) * scale;
    }
}
