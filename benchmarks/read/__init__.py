"""What reading costs beside other engines and beside plain arrays."""
