"""What a graph does, whichever way it is reached."""

import pytest

pytest.register_assert_rewrite("tests.support.ways")
