"""Trusted timing of callables on a GPU or a CPU; knows neither our kernels nor the tracker."""
