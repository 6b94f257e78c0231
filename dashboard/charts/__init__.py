"""Charts as pure functions: a small frame and a palette in, a chart and its sentence out."""
