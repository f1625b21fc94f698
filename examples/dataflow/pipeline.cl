// A pipeline of three kernels that run at the same time: each hands a sample on as soon as it has
// it, through a channel, and no sample goes back to memory on the way.  The depth is what an
// emulator likes: it goes from one stage to the next when a channel is full.
#pragma OPENCL EXTENSION cl_intel_channels : enable

channel float samples __attribute__((depth(1024)));
channel float filtered __attribute__((depth(1024)));

kernel void produce(global const float *restrict x, int n) {
    for (int i = 0; i < n; i++) write_channel_intel(samples, x[i]);
}

kernel void filter(global const float *restrict taps, int count, int n) {
    float weights[MOST_TAPS], window[MOST_TAPS];
    for (int k = 0; k < MOST_TAPS; k++) {
        weights[k] = k < count ? taps[k] : 0.0f;
        window[k] = 0.0f;
    }
    for (int i = 0; i < n; i++) {
        float sum = 0.0f;
#pragma unroll
        for (int k = MOST_TAPS - 1; k > 0; k--) window[k] = window[k - 1];
        window[0] = read_channel_intel(samples);
#pragma unroll
        for (int k = 0; k < MOST_TAPS; k++) sum += weights[k] * window[k];
        write_channel_intel(filtered, sum);
    }
}

kernel void consume(global float *restrict y, int n) {
    for (int i = 0; i < n; i++) y[i] = read_channel_intel(filtered);
}
