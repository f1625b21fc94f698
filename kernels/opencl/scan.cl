// Prefix sums: each group sums its segment, one item turns the sums into what goes before each
// segment, then each group scans its segment, one element per lane at a time.

// Group g has elements g·length to (g + 1)·length.
__kernel void scan_sums(const index n, const index length, BUFFER(const real, x),
                        BUFFER(wide, sums)) {
    OFFSET(x);
    OFFSET(sums);
    __local wide shared[LANES];
    const index lane = get_local_id(0), group = get_group_id(0);
    const index last = min(n, (group + 1) * length);
    wide sum = 0;
    for (index i = group * length + lane; i < last; i += LANES) sum += x[i];
    shared[lane] = sum;
    COMBINE_LANES(shared, lane, ADD);
    if (lane == 0) sums[group] = shared[0];
}

__kernel void scan_offsets(const index groups, BUFFER(wide, sums)) {
    OFFSET(sums);
    wide before = 0;
    for (index g = 0; g < groups; g++) {
        const wide sum = sums[g];
        sums[g] = before;
        before += sum;
    }
}

__kernel void scan_segments(const index n, const index length, const index exclusive,
                            BUFFER(const real, x), BUFFER(const wide, sums), BUFFER(real, y)) {
    OFFSET(x);
    OFFSET(sums);
    OFFSET(y);
    __local wide shared[LANES];
    const index lane = get_local_id(0), group = get_group_id(0);
    const index last = min(n, (group + 1) * length);
    wide before = sums[group];
    for (index start = group * length; start < last; start += LANES) {
        const index i = start + lane;
        shared[lane] = i < last ? x[i] : 0;
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int step = 1; step < LANES; step *= 2) {
            const wide other = lane >= step ? shared[lane - step] : 0;
            barrier(CLK_LOCAL_MEM_FENCE);
            shared[lane] += other;
            barrier(CLK_LOCAL_MEM_FENCE);
        }
        if (i < last) {
            if (!exclusive)
                y[i] = (real)(before + shared[lane]);
            else
                y[i] = (real)(lane > 0 ? before + shared[lane - 1] : before);
        }
        before += shared[LANES - 1];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
}
