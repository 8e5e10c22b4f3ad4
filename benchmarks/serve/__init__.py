"""What a server adds to the engine, and how it stands many clients at a time."""
