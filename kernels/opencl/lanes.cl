// Several items of a group, its lanes, share a row or a segment. On a GPU there are many, so that
// neighbours read neighbouring elements; on a CPU there is one, which goes through them in order.

#ifdef LANES
// Combine shared[0] to shared[LANES - 1], of which each lane has written its own, into shared[0].
// Every lane of the group must come here, and must not write to `shared` again before a barrier.
#define COMBINE_LANES(shared, lane, combine)                                                 \
    for (int half_lanes = LANES / 2; half_lanes > 0; half_lanes /= 2) {                      \
        barrier(CLK_LOCAL_MEM_FENCE);                                                        \
        if (lane < half_lanes) shared[lane] = combine(shared[lane], shared[lane + half_lanes]); \
    }                                                                                        \
    barrier(CLK_LOCAL_MEM_FENCE)

#define ADD(a, b) ((a) + (b))
// A NaN counts as the largest and as the smallest. Only a NaN differs from itself.
#define LARGER(a, b) ((b) > (a) || (b) != (b) ? (b) : (a))
#define SMALLER(a, b) ((b) < (a) || (b) != (b) ? (b) : (a))
#endif
