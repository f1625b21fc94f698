// Sum, least or largest of all elements: a part per group, then one item over the parts.

#if OPERATION == 0
#define COMBINE ADD
#define NEUTRAL 0
#elif OPERATION == 1
#define COMBINE SMALLER
#define NEUTRAL INFINITY
#else
#define COMBINE LARGER
#define NEUTRAL -INFINITY
#endif

// Independent chains, since one has to wait for the result of every operation.
#define CHAINS 8

// Group g has elements g·length to (g + 1)·length.
__kernel void reduce_parts(const index n, const index length, BUFFER(const real, x),
                           BUFFER(wide, parts)) {
    OFFSET(x);
    OFFSET(parts);
    __local wide shared[LANES];
    const index lane = get_local_id(0), group = get_group_id(0);
    const index last = min(n, (group + 1) * length);
    index i = group * length + lane;
    wide found[CHAINS];
    for (int c = 0; c < CHAINS; c++) found[c] = NEUTRAL;
    for (; i + (CHAINS - 1) * LANES < last; i += CHAINS * LANES)
        for (int c = 0; c < CHAINS; c++) found[c] = COMBINE(found[c], (wide)x[i + c * LANES]);
    for (; i < last; i += LANES) found[0] = COMBINE(found[0], (wide)x[i]);
    for (int c = 1; c < CHAINS; c++) found[0] = COMBINE(found[0], found[c]);
    shared[lane] = found[0];
    COMBINE_LANES(shared, lane, COMBINE);
    if (lane == 0) parts[group] = shared[0];
}

__kernel void reduce_finish(const index groups, BUFFER(const wide, parts), BUFFER(real, out)) {
    OFFSET(parts);
    OFFSET(out);
    wide found = NEUTRAL;
    for (index g = 0; g < groups; g++) found = COMBINE(found, parts[g]);
    out[0] = (real)found;
}
