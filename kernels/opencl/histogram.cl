// Counts per bin: each group counts its segment in local memory, then the groups' are added up.

// Group g has elements g·length to (g + 1)·length, and BINS bins from the one its second number
// gives. `parts` is (groups, bins).
__kernel void histogram_parts(const index n, const index length, const index bins, const real low,
                              const real high, const real scale, BUFFER(const real, x),
                              BUFFER(uint, parts)) {
    OFFSET(x);
    OFFSET(parts);
    __local uint counts[BINS];
    const index lane = get_local_id(0), group = get_group_id(0);
    const index first = get_group_id(1) * BINS, some = min((index)BINS, bins - first);
    for (index b = lane; b < some; b += LANES) counts[b] = 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    const index last = min(n, (group + 1) * length);
    for (index i = group * length + lane; i < last; i += LANES) {
        const real value = x[i];
        if (!(value >= low && value <= high)) continue;
        const index bin = min((index)((value - low) * scale), bins - 1) - first;
        if (bin >= 0 && bin < some) {
#if LANES == 1
            counts[bin]++;
#else
            atomic_inc(&counts[bin]);
#endif
        }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (index b = lane; b < some; b += LANES) parts[group * bins + first + b] = counts[b];
}

__kernel void histogram_finish(const index groups, const index bins, BUFFER(const uint, parts),
                               BUFFER(index, counts)) {
    OFFSET(parts);
    OFFSET(counts);
    const index b = get_global_id(0);
    if (b >= bins) return;
    index sum = 0;
    for (index g = 0; g < groups; g++) sum += parts[g * bins + b];
    counts[b] = sum;
}
