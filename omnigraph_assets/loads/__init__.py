"""Planning, batching, the publish guard and run records: functions that know nothing of Dagster."""
