"""The code location: every graph that has a folder below `defs`."""

import importlib
import warnings
from pathlib import Path

import dagster as dg

from omnigraph_core.startup import without_pandas

# Parts of Dagster that are young, and used on purpose.
warnings.filterwarnings("ignore", category=dg.BetaWarning)
warnings.filterwarnings("ignore", category=dg.PreviewWarning)

# Every run is a process that imports the engine, and pandas would be half of that. The component
# is what imports it; definitions and steps that use pandas import it as ever, and Arrow knows it
# from then on.
with without_pandas():
    importlib.import_module("omnigraph_assets.components.graph")


@dg.definitions
def defs() -> dg.Definitions:
    return dg.load_from_defs_folder(path_within_project=Path(__file__).parent)
