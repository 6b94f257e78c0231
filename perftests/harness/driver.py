"""The NVIDIA driver's library, which torch and CuPy call too."""

DRIVER = "libcuda.so.1"
