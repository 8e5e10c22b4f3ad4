"""Three-way merge of whole graphs: three snapshots come in, staged changes or conflicts go out."""
