"""What tests share: views, kernels, problems, computations written out, and tools."""
