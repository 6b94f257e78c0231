"""Record, store, judge and report what a measuring suite found; knows no kernel."""
