// One step of stochastic gradient descent with momentum, an item per weight.
__kernel void sgd(const index n, const real rate, const real momentum, const real decay,
                  BUFFER(real, weights), BUFFER(real, velocity), BUFFER(const real, gradient)) {
    OFFSET(weights);
    OFFSET(velocity);
    OFFSET(gradient);
    const index i = get_global_id(0);
    if (i >= n) return;
    velocity[i] = momentum * velocity[i] + gradient[i] + decay * weights[i];
    weights[i] -= rate * velocity[i];
}
