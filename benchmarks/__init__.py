"""Speed, measured as ratios within one run; never part of the test suite."""
