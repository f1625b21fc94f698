"""A task that is a pipeline of kernels on an FPGA, connected by channels."""
