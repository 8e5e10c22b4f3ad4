"""The code location: every graph that has a folder below `defs`."""

import warnings
from pathlib import Path

import dagster as dg

# Parts of Dagster that are young, and used on purpose.
warnings.filterwarnings("ignore", category=dg.BetaWarning)
warnings.filterwarnings("ignore", category=dg.PreviewWarning)


@dg.definitions
def defs() -> dg.Definitions:
    return dg.load_from_defs_folder(path_within_project=Path(__file__).parent)
